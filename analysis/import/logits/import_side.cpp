// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/import/logits/import_capture.h"
#include "analysis/responses/response_lint.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

// A refusal stands in for the answer where there is nothing else.
const ResponseChannel& answering_channel(const ResponseChoice& choice) {
  const bool refused =
      choice.content.steps.empty() && choice.content.text.empty() && choice.refusal.has_steps;
  return refused ? choice.refusal : choice.content;
}

// What the field holds as a logarithm of a probability, or as a logit where the server sends
// logits.
std::optional<double> value_of(const Logprob& logprob, LogprobScale scale) {
  if (!logprob.usable()) return std::nullopt;
  if (scale != LogprobScale::probability) return logprob.value;
  if (!(logprob.value > 0.0)) return std::nullopt;
  return std::log(logprob.value);
}

ImportStep import_step(const ResponseStep& step, LogprobScale scale) {
  ImportStep out;
  out.token = step.token;
  const auto chosen = value_of(step.logprob, scale);
  for (const TokenAlternative& other : step.alternatives) {
    const auto value = value_of(other.logprob, scale);
    // Two tokens under one text: the value of the chosen one is known apart and holds for it.
    if (!value || (chosen && same_token(other.token, step.token))) continue;
    out.listed.emplace_back(other.token, *value);
  }
  if (chosen) out.listed.emplace_back(step.token, *chosen);
  return out;
}

// Ids of the whole answer that go on where the list of logprobs was cut: tokens without values.
void add_unlisted(ImportSide& side, const ResponseChoice& answer,
                  const std::vector<ResponseStep>& steps) {
  if (answer.token_ids.size() <= steps.size()) return;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].token.id && *steps[i].token.id != answer.token_ids[i]) return;
  }
  for (std::size_t i = steps.size(); i < answer.token_ids.size(); ++i) {
    ImportStep step;
    step.token.id = answer.token_ids[i];
    side.steps.push_back(std::move(step));
  }
}

void add_fact(ImportSide& side, std::string name, const std::string& value) {
  if (!value.empty()) side.facts.emplace_back(std::move(name), value);
}

template <class T>
void add_number(ImportSide& side, std::string name, const std::optional<T>& value) {
  if (value) side.facts.emplace_back(std::move(name), fmt::format("{}", *value));
}

void add_facts(ImportSide& side, const Response& response, const ResponseChoice* choice) {
  add_fact(side, "model", response.model);
  add_fact(side, "system_fingerprint", response.fingerprint);
  add_fact(side, "provider", response.provider);
  add_fact(side, "service_tier", response.service_tier);
  add_fact(side, "region", response.region);
  add_fact(side, "weight_version", response.weight_version);
  add_fact(side, "created", response.created);
  add_fact(side, "request_id", response.request_id);
  add_number(side, "temperature", response.temperature);
  add_number(side, "top_p", response.top_p);
  if (response.seed) add_fact(side, "seed", *response.seed);
  add_number(side, "usage.prompt_tokens", response.usage.prompt_tokens);
  add_number(side, "usage.completion_tokens", response.usage.completion_tokens);
  if (choice != nullptr) add_fact(side, "finish_reason", choice->finish_reason);
}

}  // namespace

Result<ImportSide> import_side(const Response& response, std::size_t choice) {
  const ResponseChoice* answer =
      choice < response.choices.size() ? &response.choices[choice] : nullptr;
  const ResponseChannel* channel = answer == nullptr ? nullptr : &answering_channel(*answer);
  const bool by_prompt =
      (channel == nullptr || channel->steps.empty()) && !response.prompt_steps.empty();
  if (!by_prompt && (channel == nullptr || channel->steps.empty())) {
    return fail(ErrorKind::inconclusive,
                fmt::format("{}: holds {}; a capture is made of tokens, so compare such answers "
                            "with: driftscope vendor A B",
                            escape_for_display(response.source),
                            !response.error.empty() ? "an error instead of an answer"
                                                    : "a text without its tokens"));
  }
  ImportSide side;
  side.format = response.format;
  side.values = response.scale == LogprobScale::logit ? "logit" : "log_probability";
  side.model = response.model;
  side.scored = by_prompt;
  side.placeholders = response.fake_certainty;
  if (response.prompt_text) side.prompt_text = *response.prompt_text;
  side.request_prompt = response.request.prompt;
  if (!by_prompt) side.prompt_ids = response.prompt_ids;
  if (answer != nullptr && !answer->finish_reason.empty()) side.stop = answer->finish_reason;
  for (const ResponseStep& step : by_prompt ? response.prompt_steps : channel->steps) {
    if (step.special && !by_prompt) continue;
    side.lossy = side.lossy || step.token.lossy;
    side.steps.push_back(import_step(step, response.scale));
  }
  if (answer != nullptr && !by_prompt) add_unlisted(side, *answer, channel->steps);
  add_facts(side, response, answer);
  if (response.scale == LogprobScale::probability) {
    side.import_facts.emplace_back("converted",
                                   "logarithms of the probabilities that the file has");
  }
  if (response.after_sampling) {
    side.import_facts.emplace_back("after_sampling", "values are of what the samplers left");
  }
  side.findings = lint_response(response);
  return side;
}

ImportSide import_side(LogitFile file) {
  ImportSide side;
  side.format = file.format;
  side.values = file.values;
  side.model = file.model;
  side.scored = file.scored || file.tokens.empty();
  for (const std::int32_t id : file.prompt) side.prompt_ids.push_back(id);
  side.import_facts = file.facts;
  side.import_facts.emplace_back("element", file.element);
  for (const LogitFinding& finding : file.findings) {
    side.findings.push_back(
        {.id = finding.id, .severity = Severity::info, .text = finding.text, .evidence = "{}"});
  }
  if (file.element == "f64") {
    side.findings.push_back({.id = "rounded_to_f32",
                             .severity = Severity::notice,
                             .text =
                                 "the file's f64 numbers were rounded to f32: differences below "
                                 "that are lost",
                             .evidence = "{}"});
  }
  side.rows = std::move(file);
  return side;
}

}  // namespace driftscope
