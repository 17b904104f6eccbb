// SPDX-License-Identifier: Apache-2.0
#include "response_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <set>
#include <string_view>
#include <vector>

namespace driftscope::bench {
namespace {

constexpr std::size_t kWords = 8192;
constexpr double kNearTie = 0.0625;
constexpr double kBeyond = 3.0;

std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) { return mixed(mixed(a) ^ b); }
double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11U) * 0x1p-53; }

// A token as it stands in the file: what comes before and after its logprob.
struct Word {
  std::string text;
  std::string before, after;
};

std::vector<Word> make_words() {
  constexpr std::string_view kFirst = "bcdfghjklmnprstvwz";
  constexpr std::string_view kSecond = "aeiouy";
  const std::vector<std::string_view> wide{"\u00e9", "\u6f22", "\U0001F600", "\u00df"};
  std::vector<Word> words(kWords);
  std::set<std::string> known;  // no two tokens have one text
  for (std::size_t i = 0; i < kWords; ++i) {
    std::uint64_t bits = mixed(i);
    std::string text = bits % 4 != 0 ? " " : "";
    bits /= 4;
    for (std::uint64_t syllables = 1 + bits % 3; syllables > 0; --syllables) {
      bits = mixed(bits);
      text += kFirst[bits % kFirst.size()];
      text += kSecond[(bits >> 8U) % kSecond.size()];
    }
    if (i % 50 == 0) text += wide[(i / 50) % wide.size()];
    if (i == 97) text = "\n";
    while (!known.insert(text).second) text += kSecond[known.size() % kSecond.size()];
    std::string shown;
    std::string bytes;
    for (const char c : text) {
      shown += c == '\n' ? std::string("\\n") : std::string(1, c);
      bytes += fmt::format("{}{}", bytes.empty() ? "" : ", ", static_cast<unsigned char>(c));
    }
    words[i] = {text, fmt::format(R"({{"token": "{}", "logprob": )", shown),
                fmt::format(R"(, "bytes": [{}])", bytes)};
  }
  return words;
}

void add_number(std::string& out, double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, static_cast<float>(value));
  out.append(digits, end.ptr);
}

enum class Kind { equal, drift, near_tie, beyond };
Kind kind_of(std::int64_t number) {
  const std::int64_t group = number % 10;
  return group < 4   ? Kind::equal
         : group < 7 ? Kind::drift
         : group < 9 ? Kind::near_tie
                     : Kind::beyond;
}

class Writer {
 public:
  Writer(const CorpusShape& shape, bool side_b)
      : m_shape(shape), m_b(side_b), m_words(make_words()) {}

  void line(std::string& out, std::int64_t number) {
    m_text.clear();
    m_steps.clear();
    const std::int64_t parting = parting_step(m_shape, number);
    for (std::int64_t step = 0; step < m_shape.tokens; ++step) add_step(number, step, parting);
    const std::int64_t prompt = m_shape.prompts > 0 ? number % m_shape.prompts : number;
    if (m_shape.batch) {
      out += fmt::format(R"({{"id": "batch_req_{0:08x}", "custom_id": "request-{0}", )"
                         R"("response": {{"status_code": 200, "request_id": "{1:016x}", "body": )",
                         prompt, mixed(static_cast<std::uint64_t>(number), m_b ? 1 : 0));
    }
    out +=
        fmt::format(R"({{"id": "chatcmpl-{:016x}", "object": "chat.completion", )"
                    R"("created": {}, "model": "gpt-4o-2024-08-06", "choices": [{{"index": 0, )"
                    R"("message": {{"role": "assistant", "content": "{}", "refusal": null}}, )"
                    R"("logprobs": {{"content": [{}], "refusal": null}}, )"
                    R"("finish_reason": "length"}}], "usage": {{"prompt_tokens": 23, )"
                    R"("completion_tokens": {}, "total_tokens": {}}}, )"
                    R"("system_fingerprint": "fp_1bb46167f9"}})",
                    mixed(static_cast<std::uint64_t>(number), m_b ? 3 : 2), 1'700'000'000 + number,
                    m_text, m_steps, m_shape.tokens, m_shape.tokens + 23);
    if (m_shape.batch) out += R"(}, "error": null})";
    out += '\n';
  }

 private:
  // Tokens and values are functions of the answer and the step, so that both sides agree on them
  // up to where the answers part.
  void add_step(std::int64_t number, std::int64_t step, std::int64_t parting) {
    const auto side = static_cast<std::uint64_t>(m_b ? 1 : 0);
    const bool after = parting >= 0 && step > parting;
    // Samples of a prompt are all drawn apart.
    const bool apart = after || m_shape.prompts > 0;
    const std::uint64_t stream =
        mixed(mixed(m_shape.seed, static_cast<std::uint64_t>(number)), apart ? 7 + side : 5);
    const std::uint64_t here = mixed(stream, static_cast<std::uint64_t>(step));
    const auto count = static_cast<std::size_t>(m_shape.top);
    const std::size_t first = here % kWords;
    const std::size_t stride = 2 * (mixed(here) % (kWords / 2)) + 1;
    const bool parts = step == parting;
    const Kind kind = kind_of(number);
    const double gap = !parts                 ? 0.5 + 6.0 * unit(mixed(here, 1))
                       : kind == Kind::beyond ? kBeyond
                                              : kNearTie;
    const bool swapped = parts && m_b;
    // The rest of the mass beside the two largest falls off; the sum stays below 1.
    m_values.clear();
    m_tokens.clear();
    const double top = -std::log1p(std::exp(-gap) + 0.2 * std::exp(-gap));
    double value = top;
    for (std::size_t i = 0; i < count; ++i) {
      m_tokens.push_back((first + i * stride) % kWords);
      m_values.push_back(value);
      value = i == 0 ? top - gap : value - 2.0 - 0.3 * unit(mixed(here, 2 + i));
    }
    if (swapped && count > 1) std::swap(m_tokens[0], m_tokens[1]);
    if (m_b && !after && (kind != Kind::equal)) {
      for (std::size_t i = 0; i < count; ++i) {
        m_values[i] += 0.002 * (unit(mixed(here, 100 + i)) - 0.5);
        m_values[i] = std::min(m_values[i], 0.0);
      }
    }
    write_step();
  }

  void write_entry(std::size_t i) {
    const Word& word = m_words[m_tokens[i]];
    m_steps += word.before;
    add_number(m_steps, m_values[i]);
    m_steps += word.after;
  }
  void write_step() {
    const Word& chosen = m_words[m_tokens[0]];
    m_text += chosen.text == "\n" ? std::string("\\n") : chosen.text;
    if (!m_steps.empty()) m_steps += ", ";
    write_entry(0);
    m_steps += R"(, "top_logprobs": [)";
    for (std::size_t i = 0; i < m_tokens.size(); ++i) {
      if (i > 0) m_steps += ", ";
      write_entry(i);
      m_steps += '}';
    }
    m_steps += "]}";
  }

  const CorpusShape& m_shape;
  bool m_b;
  std::vector<Word> m_words;
  std::string m_text, m_steps;
  std::vector<double> m_values;
  std::vector<std::size_t> m_tokens;
};

struct Close {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

Result<void> write_side(const std::string& path, const CorpusShape& shape, bool side_b) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wb"));
  if (!file) return fail(ErrorKind::output, path + ": cannot be written");
  std::vector<std::int64_t> order(static_cast<std::size_t>(shape.responses));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (side_b && shape.shuffle) {
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[mixed(shape.seed, i) % i]);
    }
  }
  Writer writer(shape, side_b);
  std::string line;
  for (const std::int64_t number : order) {
    line.clear();
    writer.line(line, number);
    if (std::fwrite(line.data(), 1, line.size(), file.get()) != line.size()) {
      return fail(ErrorKind::output, path + ": cannot be written");
    }
  }
  if (std::fflush(file.get()) != 0) return fail(ErrorKind::output, path + ": cannot be written");
  return {};
}

}  // namespace

CorpusTruth truth_of(const CorpusShape& shape) {
  CorpusTruth truth;
  for (std::int64_t i = 0; i < shape.responses; ++i) {
    const Kind kind = kind_of(i);
    ++(kind == Kind::equal      ? truth.equal
       : kind == Kind::drift    ? truth.drift
       : kind == Kind::near_tie ? truth.near_tie
                                : truth.beyond_rounding);
  }
  return truth;
}

std::int64_t parting_step(const CorpusShape& shape, std::int64_t number) {
  const Kind kind = kind_of(number);
  if (kind == Kind::equal || kind == Kind::drift) return -1;
  return static_cast<std::int64_t>(mixed(shape.seed + 17, static_cast<std::uint64_t>(number)) %
                                   static_cast<std::uint64_t>(shape.tokens));
}

Result<void> write_corpus(const std::string& folder, const CorpusShape& shape) {
  if (auto done = write_side(folder + "/A.jsonl", shape, false); !done) return done;
  return write_side(folder + "/B.jsonl", shape, true);
}

}  // namespace driftscope::bench
