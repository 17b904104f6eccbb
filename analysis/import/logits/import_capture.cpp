// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/logits/import_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/capture/capture.h"
#include "analysis/capture/json_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostIds = std::int64_t{1} << 24;  // of a capture's vocabulary
constexpr std::int64_t kRowsToSum = 8;
constexpr double kSumSlack = 1e-3;
constexpr std::size_t kLongestStop = 63;

template <class Visit>
void each_token(const ImportSide& side, const Visit& visit) {
  for (const ImportStep& step : side.steps) {
    visit(step.token);
    for (const auto& [token, value] : step.listed) visit(token);
  }
}

// Ids of the lists' tokens: the tokenizer's where every token has one, else places in a table of
// the pieces that occur.
class TokenTable {
 public:
  explicit TokenTable(const std::vector<ImportSide>& sides) {
    for (const ImportSide& side : sides) {
      each_token(side, [&](const TokenText& token) {
        m_interned = m_interned || !token.id || *token.id < 0 || *token.id >= kMostIds;
      });
    }
    for (const ImportSide& side : sides) {
      each_token(side, [&](const TokenText& token) { note(token); });
    }
  }
  [[nodiscard]] bool interned() const { return m_interned; }
  [[nodiscard]] std::int64_t size() const { return std::max<std::int64_t>(m_size, 1); }
  [[nodiscard]] std::int32_t id_of(const TokenText& token) const {
    return m_interned ? m_ids.at(key_of(token)) : static_cast<std::int32_t>(*token.id);
  }
  // Empty where no text is known.
  [[nodiscard]] std::vector<std::string> pieces() const {
    if (m_pieces.empty()) return {};
    std::vector<std::string> pieces(static_cast<std::size_t>(size()));
    for (const auto& [id, piece] : m_pieces) pieces[static_cast<std::size_t>(id)] = piece;
    return pieces;
  }

 private:
  static std::string key_of(const TokenText& token) {
    if (!token.bytes.empty()) return token.bytes;
    if (!token.text.empty()) return token.text;
    return token.id ? fmt::format("token {}", *token.id) : std::string();
  }
  void note(const TokenText& token) {
    std::int32_t id = 0;
    if (m_interned) {
      id = m_ids.try_emplace(key_of(token), static_cast<std::int32_t>(m_ids.size())).first->second;
      m_pieces[id] = key_of(token);
    } else {
      id = static_cast<std::int32_t>(*token.id);
      if (!token.bytes.empty()) m_pieces[id] = token.bytes;
    }
    m_size = std::max<std::int64_t>(m_size, std::int64_t{id} + 1);
  }
  bool m_interned = false;
  std::map<std::string, std::int32_t> m_ids;
  std::map<std::int32_t, std::string> m_pieces;
  std::int64_t m_size = 0;
};

std::int64_t steps_of(const ImportSide& side, const ImportOptions& options) {
  const std::int64_t all =
      side.rows ? side.rows->rows : static_cast<std::int64_t>(side.steps.size());
  return options.most_steps > 0 ? std::min(all, options.most_steps) : all;
}

// Rows whose probabilities add up to 1 as they stand are log probabilities.
Result<bool> rows_are_normalised(const LogitFile& file) {
  std::vector<float> row(static_cast<std::size_t>(file.vocabulary));
  for (std::int64_t i = 0; i < std::min(file.rows, kRowsToSum); ++i) {
    if (auto read = file.read(i, row); !read) return tl::unexpected<Error>(read.error());
    double sum = 0.0;
    for (const float value : row) {
      if (value > 1.0F || std::isnan(value)) return false;
      sum += std::exp(double{value});
    }
    if (std::abs(sum - 1.0) > kSumSlack) return false;
  }
  return true;
}

Json findings_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"id", finding.id},
                    {"severity", name_of(finding.severity)},
                    {"text", json_text::from_bytes(finding.text)}});
  }
  return list;
}

std::string envelope_of(const ImportSide& side, const std::string& values, bool interned,
                        std::int64_t steps) {
  Json import{{"format", side.format},
              {"file", json_text::from_bytes(side.file)},
              {"sha256", side.sha256},
              {"values", values},
              {"rows", side.rows ? "full" : "listed"},
              {"ids", interned ? "interned" : "of the file"},
              {"tokens", side.rows && side.rows->tokens.empty() ? "best of each row" : "given"},
              {"scored", side.scored},
              {"lossy", side.lossy}};
  if (side.placeholders) import["placeholders"] = true;
  for (const auto& [name, value] : side.import_facts) import[name] = json_text::from_bytes(value);
  if (!side.prompt_text.empty()) import["prompt_text"] = json_text::from_bytes(side.prompt_text);
  if (!side.request_prompt.empty()) {
    import["request_prompt"] = json_text::from_bytes(side.request_prompt);
  }
  // Also where /prompt/ids has none, as its ids would be read as places in /vocab.
  if (!side.prompt_ids.empty()) import["prompt_ids"] = side.prompt_ids;
  if (side.rows && steps < side.rows->rows) {
    import["rows_of_file"] = side.rows->rows;
  }
  import["findings"] = findings_json(side.findings);
  Json envelope{{"import", std::move(import)}};
  for (const auto& [name, value] : side.facts) envelope[name] = json_text::from_bytes(value);
  return json_text::dump(envelope);
}

// Not known on one side is not known: two prompts are kept only where both are.
std::vector<TokenId> prompt_of(const ImportSide& side, const std::vector<ImportSide>& sides,
                               bool interned) {
  std::vector<TokenId> prompt;
  for (const ImportSide& each : sides) {
    if (each.prompt_ids.empty() || interned) return {};
  }
  for (const std::int64_t id : side.prompt_ids) {
    if (!std::in_range<std::int32_t>(id) || id < 0) return {};
    prompt.push_back(TokenId{static_cast<std::int32_t>(id)});
  }
  return prompt;
}

std::string model_of(const ImportSide& side) {
  if (!side.model.empty()) return side.model;
  return std::filesystem::path(side.file).filename().string();
}

struct Plan {
  std::int64_t vocabulary = 0;
  std::int64_t top_k = 1;
  bool listed = false;
  std::optional<TokenTable> table;
};

Result<Plan> plan_of(const std::vector<ImportSide>& sides) {
  Plan plan;
  plan.listed = !sides.front().rows;
  if (sides.size() == 2 && plan.listed != !sides.back().rows) {
    return fail(ErrorKind::inconclusive,
                "import: one file lists a few tokens of each step and the other has whole rows; "
                "give two of one kind");
  }
  if (!plan.listed) {
    plan.vocabulary = sides.front().rows->vocabulary;
    if (sides.back().rows->vocabulary != plan.vocabulary) {
      return fail(
          ErrorKind::inconclusive,
          fmt::format("import: vocabularies of {} and {} tokens cannot be compared; give two "
                      "files of one tokenizer",
                      plan.vocabulary, sides.back().rows->vocabulary));
    }
    return plan;
  }
  plan.table.emplace(sides);
  plan.vocabulary = plan.table->size();
  for (const ImportSide& side : sides) {
    for (const ImportStep& step : side.steps) {
      plan.top_k = std::max(plan.top_k, static_cast<std::int64_t>(step.listed.size()));
    }
  }
  plan.top_k = std::min(plan.top_k, plan.vocabulary);
  return plan;
}

Result<void> write_rows(CaptureWriter& writer, Lane lane, const LogitFile& file,
                        std::int64_t steps) {
  std::vector<float> row(static_cast<std::size_t>(file.vocabulary));
  for (std::int64_t step = 0; step < steps; ++step) {
    if (auto read = file.read(step, row); !read) return read;
    const auto best = top_tokens(row, 1);
    StepRecord record;
    record.lane = lane;
    record.step = step;
    record.choice = best.empty() ? TokenId{-1} : best.front().token;
    const std::int32_t given =
        file.tokens.empty() ? -1 : file.tokens[static_cast<std::size_t>(step)];
    record.emitted = given < 0 ? record.choice : TokenId{given};
    record.logits = row;
    if (auto accepted = writer.accept(record); !accepted) return accepted;
  }
  return {};
}

Result<void> write_lists(CaptureWriter& writer, Lane lane, const ImportSide& side, const Plan& plan,
                         std::int64_t steps) {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> row(static_cast<std::size_t>(plan.vocabulary), kNone);
  std::vector<std::size_t> touched;
  for (std::int64_t i = 0; i < steps; ++i) {
    const ImportStep& step = side.steps[static_cast<std::size_t>(i)];
    // The chosen token stands last: its own value holds.
    for (const auto& [token, value] : step.listed) {
      touched.push_back(static_cast<std::size_t>(plan.table->id_of(token)));
      row[touched.back()] = static_cast<float>(value);
    }
    StepRecord record;
    record.lane = lane;
    record.step = i;
    record.emitted = record.choice = TokenId{plan.table->id_of(step.token)};
    record.logits = row;
    if (auto accepted = writer.accept(record); !accepted) return accepted;
    for (const std::size_t index : touched) row[index] = kNone;
    touched.clear();
  }
  return {};
}

Result<void> write_sides(CaptureWriter& writer, const std::vector<ImportSide>& sides,
                         const Plan& plan, const ImportOptions& options) {
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const ImportSide& side = sides[i];
    const Lane lane = i == 0 ? Lane::a : Lane::b;
    const std::int64_t steps = steps_of(side, options);
    auto written = side.rows ? write_rows(writer, lane, *side.rows, steps)
                             : write_lists(writer, lane, side, plan, steps);
    if (!written) return written;
    const std::string stop = side.stop.substr(0, kLongestStop);
    if (auto ended = writer.finish_lane(lane, TraceState::complete, stop); !ended) return ended;
  }
  return writer.finish(TraceState::complete, nullptr);
}

Result<CaptureHeader> header_of(const std::vector<ImportSide>& sides, const Plan& plan,
                                const ImportOptions& options) {
  const bool interned = plan.table && plan.table->interned();
  CaptureHeader header;
  header.created = options.created;
  header.vocabulary = plan.vocabulary;
  header.prompt_a = prompt_of(sides.front(), sides, interned);
  header.prompt_b = prompt_of(sides.back(), sides, interned);
  header.prompt_text =
      !sides.front().prompt_text.empty() ? sides.front().prompt_text : sides.front().request_prompt;
  if (plan.table) header.pieces = plan.table->pieces();
  Json lanes = Json::array();
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const ImportSide& side = sides[i];
    std::string values = side.values;
    if (side.rows && values == "not_stated") {
      auto normalised = rows_are_normalised(*side.rows);
      if (!normalised) return tl::unexpected<Error>(normalised.error());
      if (*normalised) values = "log_probability";
    }
    const std::int64_t steps = steps_of(side, options);
    longest = std::max(longest, steps);
    const Lane lane = i == 0 ? Lane::a : Lane::b;
    lanes.push_back(lane_name(lane));
    CaptureLane entry;
    entry.lane = lane;
    entry.steps = steps;
    entry.envelope_json = envelope_of(side, values, interned, steps);
    header.lanes.push_back(std::move(entry));
  }
  Json envelope{{"command", json_text::from_bytes(options.command)},
                {"vocabulary", plan.vocabulary},
                {"planned_steps", longest},
                {"lanes", std::move(lanes)},
                {"prompt_a", json_text::from_tokens(header.prompt_a)},
                {"prompt_b", json_text::from_tokens(header.prompt_b)},
                {"model_a", json_text::from_bytes(model_of(sides.front()))},
                {"model_b", json_text::from_bytes(model_of(sides.back()))}};
  header.envelope_json = json_text::dump(envelope);
  return header;
}

}  // namespace

Result<ImportSummary> write_import(const std::filesystem::path& path,
                                   const std::vector<ImportSide>& sides,
                                   const ImportOptions& options) {
  auto plan = plan_of(sides);
  if (!plan) return tl::unexpected<Error>(plan.error());
  auto header = header_of(sides, *plan, options);
  if (!header) return tl::unexpected<Error>(header.error());
  // A cut-off import is worth nothing: it is flushed rarely.
  constexpr std::int64_t kFlushEvery = 4096;
  auto writer = CaptureWriter::create(path, *header,
                                      {.keep = plan->listed ? KeepMode::topk : KeepMode::full,
                                       .top_k = plan->top_k,
                                       .deflate = options.deflate,
                                       .flush_every = kFlushEvery});
  if (!writer) return tl::unexpected<Error>(writer.error());
  ImportSummary summary{.vocabulary = plan->vocabulary, .steps = {}, .listed = plan->listed};
  for (const ImportSide& side : sides) summary.steps.push_back(steps_of(side, options));
  if (auto written = write_sides(**writer, sides, *plan, options); !written) {
    // What is left would be a capture of half a file.
    writer->reset();
    std::error_code ignored;
    std::filesystem::remove(path.string() + ".part", ignored);
    return tl::unexpected<Error>(written.error());
  }
  return summary;
}

}  // namespace driftscope
