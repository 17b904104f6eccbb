// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_stream.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "analysis/responses/compared_answer.h"
#include "analysis/responses/response_lint.h"

namespace driftscope {
namespace {

// Keys in the order of the lines; as keyed() of response_set.cpp has them.
std::vector<std::string> keys_of(const LineSide& side, bool by_id, std::int64_t& repeated) {
  std::unordered_map<std::string, int> seen;
  std::vector<std::string> keys;
  keys.reserve(side.lines.lines.size());
  for (std::size_t i = 0; i < side.lines.lines.size(); ++i) {
    const ResponseLine& line = side.lines.lines[i];
    std::string key = by_id ? line.custom_id : std::to_string(i);
    if (key.empty()) key = fmt::format("{}:{}", side.name, line.number);
    if (const int count = ++seen[key]; count > 1) {
      key += fmt::format("#{}", count);
      ++repeated;
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

// What a worker keeps from line to line.
struct SideReader {
  LineReader reader;
  std::string buffer;
};

std::vector<Response> read_line(const LineSide& side, std::size_t place, SideReader& own) {
  const ResponseLine& line = side.lines.lines[place];
  const std::string_view text = side.fetch ? side.fetch(line.text, own.buffer) : line.text;
  std::vector<Response> responses =
      own.reader.read_without_alternatives({.text = text, .number = line.number}, side.name);
  for (Response& response : responses) grade_response(response);
  return responses;
}

PairedSides compare_pair(const std::string& key, const std::vector<Response>& a,
                         const std::vector<Response>& b) {
  PairedSides out;
  const std::size_t both = std::min(a.size(), b.size());
  const auto name = [&](std::size_t i) { return i == 0 ? key : fmt::format("{}[{}]", key, i); };
  for (std::size_t i = 0; i < both; ++i) pair_choices(name(i), a[i], b[i], out);
  for (std::size_t i = both; i < a.size(); ++i) out.only_a.push_back(name(i));
  for (std::size_t i = both; i < b.size(); ++i) out.only_b.push_back(name(i));
  return out;
}

// The alternatives of the step at which a choice parts, where they were left out.
bool add_alternatives(std::vector<Response>& responses, const std::string& source,
                      std::int64_t choice_index, std::int64_t step, LineReader& reader) {
  bool added = false;
  for (Response& response : responses) {
    if (response.source != source) continue;
    for (ResponseChoice& choice : response.choices) {
      if (choice.index != choice_index) continue;
      const auto places = places_of_visible_steps(compared_channel(choice));
      if (step < 0 || static_cast<std::size_t>(step) >= places.size()) continue;
      // A step of `responses`, which are ours to change.
      auto& place = const_cast<ResponseStep&>(*places[static_cast<std::size_t>(step)]);
      if (place.alternatives_left_out == 0) continue;
      reader.add_alternatives(place);
      added = true;
    }
    if (added) grade_response(response);
  }
  return added;
}

std::vector<ResponseStep*> steps_of(std::vector<Response>& responses, const std::string& source,
                                    std::int64_t choice_index) {
  std::vector<ResponseStep*> steps;
  for (Response& response : responses) {
    for (ResponseChoice& choice : response.choices) {
      if (response.source != source || choice.index != choice_index) continue;
      for (const ResponseStep* step : places_of_visible_steps(compared_channel(choice))) {
        steps.push_back(const_cast<ResponseStep*>(step));  // of `responses`, which are ours
      }
    }
  }
  return steps;
}

// Of steps with equal values: the alternatives whose text differs.
bool add_differing_alternatives(std::vector<Response>& a, std::vector<Response>& b,
                                const ResponseComparison& c, LineReader& reader_a,
                                LineReader& reader_b) {
  const std::vector<ResponseStep*> of_a = steps_of(a, c.source_a, c.choice_a);
  const std::vector<ResponseStep*> of_b = steps_of(b, c.source_b, c.choice_b);
  bool added = false;
  std::size_t count = std::min(of_a.size(), of_b.size());
  if (c.divergence) count = std::min(count, static_cast<std::size_t>(c.equal_tokens));
  for (std::size_t i = 0; i < count; ++i) {
    if (of_a[i]->alternatives_text == of_b[i]->alternatives_text) continue;
    if (of_a[i]->alternatives_left_out > 0) reader_a.add_alternatives(*of_a[i]);
    if (of_b[i]->alternatives_left_out > 0) reader_b.add_alternatives(*of_b[i]);
    added = true;
  }
  if (!added) return false;
  for (Response& response : a) grade_response(response);
  for (Response& response : b) grade_response(response);
  return true;
}

// Where two answers part, the step's alternatives say why: only those are read, and the answers
// compared again.
PairedSides compare_with_alternatives(const std::string& key, std::vector<Response>& a,
                                      std::vector<Response>& b, LineReader& reader_a,
                                      LineReader& reader_b) {
  PairedSides out = compare_pair(key, a, b);
  bool added = false;
  for (const AnswerPair& pair : out.pairs) {
    const ResponseComparison& c = pair.comparison;
    if ((c.tier <= Tier::token || c.divergence) && !c.drift.first_step && c.drift.count > 0) {
      added |= add_differing_alternatives(a, b, c, reader_a, reader_b);
    }
    if (!c.divergence) continue;
    added |= add_alternatives(a, c.source_a, c.choice_a, c.divergence->step, reader_a);
    added |= add_alternatives(b, c.source_b, c.choice_b, c.divergence->step_b, reader_b);
  }
  return added ? compare_pair(key, a, b) : std::move(out);
}

void drop_steps(PairedSides& sides) {
  for (AnswerPair& pair : sides.pairs) {
    for (LogprobDrift* drift : {&pair.comparison.drift, &pair.comparison.prompt_drift}) {
      drift->per_step = {};
    }
  }
}

// Results come in any order and leave in order.
class InOrder {
 public:
  InOrder(const PairTaker& take, const StreamOptions& options, std::size_t total)
      : m_take(take), m_options(options), m_total(static_cast<std::int64_t>(total)) {}

  void give(std::size_t index, PairedSides&& result) {
    const std::scoped_lock lock(m_mutex);
    m_waiting.emplace(index, std::move(result));
    while (!m_waiting.empty() && m_waiting.begin()->first == m_next) {
      m_take(std::move(m_waiting.begin()->second));
      m_waiting.erase(m_waiting.begin());
      ++m_next;
    }
    if (m_options.progress) m_options.progress(++m_done, m_total);
  }
  [[nodiscard]] std::size_t given() const { return m_next; }

 private:
  const PairTaker& m_take;
  const StreamOptions& m_options;
  std::int64_t m_total;
  std::int64_t m_done = 0;
  std::mutex m_mutex;
  std::map<std::size_t, PairedSides> m_waiting;
  std::size_t m_next = 0;
};

struct WorkerReaders {
  SideReader a, b;
};

}  // namespace

LinePairs pair_lines(const LineSide& a, const LineSide& b) {
  LinePairs out;
  out.by_custom_id = a.lines.by_custom_id && b.lines.by_custom_id;
  std::vector<std::string> left = keys_of(a, out.by_custom_id, out.repeated_a);
  std::vector<std::string> right = keys_of(b, out.by_custom_id, out.repeated_b);
  std::unordered_map<std::string_view, std::size_t> partners;
  for (std::size_t i = 0; i < right.size(); ++i) partners.emplace(right[i], i);
  std::vector<bool> paired(right.size(), false);
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto found = partners.find(left[i]);
    if (found == partners.end()) {
      out.only_a.push_back(std::move(left[i]));
      continue;
    }
    paired[found->second] = true;
    out.pairs.push_back({.key = std::move(left[i]), .a = i, .b = found->second});
  }
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (!paired[i]) out.only_b.push_back(std::move(right[i]));
  }
  return out;
}

std::size_t compare_lines(const LineSide& a, const LineSide& b, const LinePairs& pairs,
                          Parallel& parallel, const StreamOptions& options, const PairTaker& take) {
  std::vector<WorkerReaders> readers(static_cast<std::size_t>(parallel.workers()));
  InOrder results(take, options, pairs.pairs.size());
  const auto task = [&](std::size_t index, int worker) {
    if (options.stop.stop_requested()) return;
    WorkerReaders& own = readers[static_cast<std::size_t>(worker)];
    const LinePairs::Pair& pair = pairs.pairs[index];
    std::vector<Response> of_a = read_line(a, pair.a, own.a);
    std::vector<Response> of_b = read_line(b, pair.b, own.b);
    PairedSides result =
        compare_with_alternatives(pair.key, of_a, of_b, own.a.reader, own.b.reader);
    if (!options.keep_steps) drop_steps(result);
    results.give(index, std::move(result));
  };
  parallel.run(pairs.pairs.size(), task);
  return results.given();
}

std::vector<SampleRecord> read_samples(const LineSide& side, Parallel& parallel,
                                       const StreamOptions& options) {
  const std::size_t count = side.lines.lines.size();
  std::vector<std::vector<SampleRecord>> by_line(count);
  std::vector<SideReader> readers(static_cast<std::size_t>(parallel.workers()));
  std::mutex mutex;
  std::int64_t done = 0;
  const auto task = [&](std::size_t index, int worker) {
    if (options.stop.stop_requested()) return;
    for (const Response& response :
         read_line(side, index, readers[static_cast<std::size_t>(worker)])) {
      by_line[index].push_back(sample_record(response));
    }
    if (!options.progress) return;
    const std::scoped_lock lock(mutex);
    options.progress(++done, static_cast<std::int64_t>(count));
  };
  parallel.run(count, task);
  std::vector<SampleRecord> records;
  for (std::vector<SampleRecord>& of_line : by_line) {
    for (SampleRecord& record : of_line) records.push_back(std::move(record));
  }
  return records;
}

}  // namespace driftscope
