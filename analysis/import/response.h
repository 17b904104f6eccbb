// SPDX-License-Identifier: Apache-2.0
// What a server answered, in one form for all of them. Everything unknown stays unknown: no field
// is filled in by a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace driftscope {

// What stands in a logprob field. Only `number` takes part in differences, means and margins.
enum class LogprobState : std::uint8_t {
  missing,
  null,
  number,
  sentinel,        // -9999: outside of what the server kept
  clipped,         // exactly -100 or -1000: a floor that some servers put in
  lowest_float,    // -FLT_MAX, printed for a probability of 0
  minus_infinity,  // also as text, or digits beyond double
  not_a_number,
  placeholder,  // 0 where a draft's token was accepted: certainty was not measured
};
[[nodiscard]] std::string_view logprob_state_name(LogprobState state);

struct Logprob {
  LogprobState state = LogprobState::missing;
  double value = 0.0;  // of `number`; natural logarithm unless the response's `scale` says else
  int decimals = -1;   // digits after the point as printed; -1: shortest or with an exponent
  [[nodiscard]] bool usable() const { return state == LogprobState::number; }
};

struct TokenText {
  std::string text;          // as shown
  std::string bytes;         // what the token stands for; `text` where not given apart
  bool bytes_given = false;  // the server said the bytes
  bool lossy = false;        // the bytes hold U+FFFD in place of others, or are left out
  std::optional<std::int64_t> id = {};
};

struct TokenAlternative {
  TokenText token;
  Logprob logprob;
};

struct ResponseStep {
  TokenText token;
  Logprob logprob;
  std::optional<Logprob> sampling_logprob = {};  // after temperature and filters, where told apart
  std::vector<TokenAlternative> alternatives;    // in the order of the file
  // Alternatives that stand in the file and were not read (LineReader): how many, and their text,
  // valid as long as the file's.
  std::uint32_t alternatives_left_out = 0;
  std::string_view alternatives_text = {};
  bool special = false;        // an end mark, not part of the text
  bool text_of_group = false;  // several tokens share one text, which stands at the first
};

// What one kind of output says. Channels are never joined before they are compared.
struct ResponseChannel {
  std::string text;
  std::vector<ResponseStep> steps;
  bool has_text = false;   // the field was there, empty or not
  bool has_steps = false;  // there is a list of tokens
};

struct ToolCall {
  std::string name;
  std::string arguments;  // canonical JSON where it parses, else as it came
  std::string id = {};    // random for each answer; joins the pieces of a stream, never compared
};

struct ResponseChoice {
  std::int64_t index = 0;
  ResponseChannel content, reasoning, refusal;
  std::vector<ToolCall> tool_calls;
  std::string finish_reason;                 // as sent; empty: none
  std::optional<double> mean_logprob = {};   // where only that is given
  std::vector<std::int64_t> token_ids = {};  // of the whole answer, where listed apart
  std::optional<std::int64_t> seed = {};
  bool may_echo = false;  // of a layout whose list of tokens may begin with the prompt's
};

// stop, length, content_filter, tool_calls, error, or "" where unknown.
[[nodiscard]] std::string_view normalised_finish_reason(std::string_view sent);

// What the values in logprob fields are.
enum class LogprobScale : std::uint8_t { log_probability, probability, logit };

struct ResponseUsage {
  std::optional<std::int64_t> prompt_tokens = {}, completion_tokens = {}, reasoning_tokens = {},
                              cached_tokens = {};
};

struct ResponseHeader {
  std::string name;  // lower case
  std::string value;
};

// What was asked for, where a file tells.
struct ResponseRequest {
  std::string model;
  std::optional<double> temperature = {}, top_p = {};
  std::optional<std::string> seed = {};
  std::optional<std::int64_t> alternatives = {};  // for each token
  std::optional<std::int64_t> most_tokens = {};   // of the answer
  std::optional<bool> echo = {};                  // whether the prompt is to be repeated
  std::string prompt;                             // a text, or messages as canonical JSON
};

struct ResponseWarning {
  std::string id;
  std::string text;
};

struct Response {
  std::string source;  // file, and line or entry in it: "a.jsonl:3"
  std::string format;  // row of the table of formats
  std::string request_id;
  std::string custom_id;  // of a batch line
  std::string model, fingerprint, provider, service_tier, region, weight_version;
  std::string created;  // as sent
  std::optional<double> temperature = {}, top_p = {};
  std::optional<std::string> seed = {};  // as sent or echoed
  std::vector<ResponseChoice> choices;   // by rising index
  // The prompt, where the server repeats it.
  std::optional<std::string> prompt_text = {};
  std::vector<std::int64_t> prompt_ids = {};
  std::vector<ResponseStep> prompt_steps = {};
  std::optional<std::int64_t> bos = {};  // the vocabulary's mark of a beginning, where told
  ResponseUsage usage;
  ResponseRequest request = {};
  LogprobScale scale = LogprobScale::log_probability;
  bool after_sampling = false;  // probabilities of what was left after the samplers
  bool speculative = false;     // drafts were accepted: certain tokens may be placeholders
  bool fake_certainty = false;  // logprob 0 without alternatives throughout
  std::optional<std::int64_t> http_status = {};
  std::string error;  // what the server said instead of an answer; empty: it answered
  std::vector<ResponseHeader> headers = {};
  std::vector<ResponseWarning> warnings = {};

  void warn(std::string id, std::string text) {
    warnings.push_back({std::move(id), std::move(text)});
  }
};

}  // namespace driftscope
