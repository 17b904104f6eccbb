// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/compare/findings.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/version_evidence.h"
#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

// JSON holds text, not bytes: what is no UTF-8 is shown escaped and its bytes are listed.
Json text_json(const std::string& text) {
  return find_invalid_utf8(text) == std::string::npos ? text : escape_for_display(text);
}

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json logprob_json(const Logprob& value) {
  if (value.usable()) return value.value;
  if (value.state == LogprobState::missing || value.state == LogprobState::null) return nullptr;
  return std::string(logprob_state_name(value.state));
}

Json token_json(const TokenText& token) {
  Json json{{"text", text_json(token.text)}};
  if (token.id) json["id"] = *token.id;
  if (token.bytes_given && token.bytes != token.text) {
    json["bytes"] = std::vector<unsigned char>(token.bytes.begin(), token.bytes.end());
  }
  if (token.lossy) json["lossy"] = true;
  return json;
}

Json step_json(const ResponseStep& step) {
  Json json = token_json(step.token);
  json["logprob"] = logprob_json(step.logprob);
  if (step.sampling_logprob) json["sampling_logprob"] = logprob_json(*step.sampling_logprob);
  if (step.special) json["special"] = true;
  if (step.text_of_group) json["text_of_group"] = true;
  if (const auto rank = rank_of_chosen(step)) {
    json["rank"] = Json::array({rank->first, rank->last == 0 ? Json() : Json(rank->last)});
  }
  Json others = Json::array();
  for (const TokenAlternative& other : step.alternatives) {
    Json entry = token_json(other.token);
    entry["logprob"] = logprob_json(other.logprob);
    others.push_back(std::move(entry));
  }
  json["alternatives"] = std::move(others);
  return json;
}

Json steps_json(const std::vector<ResponseStep>& steps) {
  Json list = Json::array();
  for (const ResponseStep& step : steps) list.push_back(step_json(step));
  return list;
}

Json channel_json(const ResponseChannel& channel, bool steps) {
  if (!channel.has_text && !channel.has_steps) return nullptr;
  std::string joined;
  bool known = channel.has_steps && channel.has_text;
  for (const ResponseStep& step : channel.steps) {
    if (step.special) continue;
    joined += step.token.bytes;
    const bool shown = !step.token.bytes.empty() || step.token.bytes_given || step.text_of_group;
    known = known && shown;
  }
  Json json{{"text", channel.has_text ? text_json(channel.text) : Json()},
            {"tokens", channel.has_steps ? Json(channel.steps.size()) : Json()},
            {"bytes_join_to_text", known ? Json(joined == channel.text) : Json()}};
  if (steps && channel.has_steps) json["steps"] = steps_json(channel.steps);
  return json;
}

Json choice_json(const ResponseChoice& choice, bool steps) {
  Json tools = Json::array();
  for (const ToolCall& call : choice.tool_calls) {
    tools.push_back({{"name", text_json(call.name)}, {"arguments", text_json(call.arguments)}});
  }
  return {
      {"index", choice.index},
      {"content", channel_json(choice.content, steps)},
      {"reasoning", channel_json(choice.reasoning, steps)},
      {"refusal", channel_json(choice.refusal, steps)},
      {"tool_calls", tools},
      {"finish_reason", choice.finish_reason.empty() ? Json() : text_json(choice.finish_reason)},
      {"finish", std::string(normalised_finish_reason(choice.finish_reason))},
      {"mean_logprob", optional_json(choice.mean_logprob)},
      {"token_ids", choice.token_ids.empty() ? Json() : Json(choice.token_ids)},
      {"seed", optional_json(choice.seed)}};
}

Json findings_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"id", finding.id},
                    {"severity", std::string(name_of(finding.severity))},
                    {"text", finding.text},
                    {"evidence", Json::parse(finding.evidence, nullptr, false)}});
  }
  return list;
}

Json similarity_json(const std::optional<Similarity>& similarity) {
  if (!similarity) return nullptr;
  return {{"edit", optional_json(similarity->edit)},
          {"chrf", similarity->chrf},
          {"numbers_equal", similarity->numbers_equal},
          {"numbers_a", similarity->numbers_a},
          {"numbers_b", similarity->numbers_b}};
}

Json drift_json(const LogprobDrift& drift) {
  if (drift.per_step.empty() && drift.count == 0) return nullptr;
  Json json{{"compared", drift.count},
            {"first_difference", optional_json(drift.first_step)},
            {"max_abs", drift.max_abs},
            {"argmax", drift.argmax_step < 0 ? Json() : Json(drift.argmax_step)},
            {"mean_abs", drift.mean_abs},
            {"mean", drift.mean},
            {"positive", drift.positive},
            {"negative", drift.negative},
            {"print_tolerance", drift.print_tolerance}};
  if (drift.per_step.empty()) return json;  // they were not kept
  Json steps = Json::array();
  for (const auto& value : drift.per_step) steps.push_back(value ? json_number(*value) : Json());
  json["per_step"] = std::move(steps);
  return json;
}

std::string scale_name(const Response& response) {
  if (response.after_sampling) return "probability after sampling";
  switch (response.scale) {
    case LogprobScale::log_probability:
      return "log_probability";
    case LogprobScale::probability:
      return "probability";
    case LogprobScale::logit:
      return "logit";
  }
  return "";
}

std::string quoted(const std::string& text) {
  return text.empty() ? "the end" : fmt::format("\"{}\"", escape_for_display(text));
}

// In percent; less than all is not rounded up to all.
std::string share_text(double share) {
  if (share < 0.999 || share >= 1.0) return fmt::format("{:.1f}%", 100.0 * share);
  return fmt::format("{:.4f}%", std::min(100.0 * share, 99.9999));
}

}  // namespace

Json response_json(const Response& response, bool steps) {
  Json choices = Json::array();
  for (const ResponseChoice& choice : response.choices)
    choices.push_back(choice_json(choice, steps));
  Json versions = Json::array();
  for (const VersionEvidence& evidence : version_evidence(response)) {
    versions.push_back({{"field", evidence.field},
                        {"value", text_json(evidence.value)},
                        {"grade", std::string(name_of(evidence.grade))},
                        {"meaning", evidence.meaning}});
  }
  Json headers = Json::array();
  for (const ResponseHeader& header : response.headers) {
    headers.push_back(Json::array({text_json(header.name), text_json(header.value)}));
  }
  const auto field = [](const std::string& text) {
    return text.empty() ? Json() : text_json(text);
  };
  return {{"source", text_json(response.source)},
          {"format", response.format},
          {"model", field(response.model)},
          {"system_fingerprint", field(response.fingerprint)},
          {"provider", field(response.provider)},
          {"service_tier", field(response.service_tier)},
          {"region", field(response.region)},
          {"request_id", field(response.request_id)},
          {"custom_id", field(response.custom_id)},
          {"created", field(response.created)},
          {"temperature", optional_json(response.temperature)},
          {"seed", response.seed ? text_json(*response.seed) : Json()},
          {"logprob_scale", scale_name(response)},
          {"speculative", response.speculative},
          {"usage",
           {{"prompt_tokens", optional_json(response.usage.prompt_tokens)},
            {"completion_tokens", optional_json(response.usage.completion_tokens)},
            {"reasoning_tokens", optional_json(response.usage.reasoning_tokens)},
            {"cached_tokens", optional_json(response.usage.cached_tokens)}}},
          {"prompt",
           {{"text", response.prompt_text ? text_json(*response.prompt_text) : Json()},
            {"ids", response.prompt_ids.empty() ? Json() : Json(response.prompt_ids)},
            {"tokens", response.prompt_steps.size()},
            {"steps", steps ? steps_json(response.prompt_steps) : Json()}}},
          {"choices", choices},
          {"http_status", optional_json(response.http_status)},
          {"error", field(response.error)},
          {"version_evidence", versions},
          {"headers", headers},
          {"findings", findings_json(lint_response(response))}};
}

Json comparison_json(const ResponseComparison& comparison) {
  Json divergence;
  if (comparison.divergence) {
    const ResponseDivergence& d = *comparison.divergence;
    divergence = {{"step", d.step < 0 ? Json() : Json(d.step)},
                  {"step_b", d.step_b < 0 ? Json() : Json(d.step_b)},
                  {"byte", d.byte},
                  {"text_a", text_json(d.text_a)},
                  {"text_b", text_json(d.text_b)},
                  {"token_a", optional_json(d.id_a)},
                  {"token_b", optional_json(d.id_b)},
                  {"margin_a", optional_json(d.margin_a)},
                  {"margin_b", optional_json(d.margin_b)},
                  {"cause", std::string(name_of(d.cause))},
                  {"reason", d.reason},
                  {"joined_again_byte", optional_json(d.joined_again_byte)}};
  }
  Json versions = Json::array();
  for (const FieldDifference& difference : comparison.versions) {
    versions.push_back({{"field", difference.field},
                        {"a", text_json(difference.a)},
                        {"b", text_json(difference.b)}});
  }
  return {{"a", text_json(comparison.source_a)},
          {"b", text_json(comparison.source_b)},
          {"choice_a", comparison.choice_a},
          {"choice_b", comparison.choice_b},
          {"verdict", std::string(name_of(comparison.tier))},
          {"sentence", comparison.verdict},
          {"aligned_by", std::string(name_of(comparison.alignment))},
          {"tokens_a", comparison.tokens_a},
          {"tokens_b", comparison.tokens_b},
          {"tokens_equal", comparison.equal_tokens},
          {"bytes_equal", comparison.equal_bytes},
          {"texts_equal", comparison.texts_equal},
          {"tool_calls_equal", comparison.tools_equal},
          {"similarity", similarity_json(comparison.similarity)},
          {"first_divergence", divergence},
          {"drift", drift_json(comparison.drift)},
          {"prompt_drift", drift_json(comparison.prompt_drift)},
          {"version_diff", versions},
          {"findings", findings_json(comparison.findings)}};
}

std::string response_text(const Response& response) {
  std::string out = fmt::format("{}: {}", escape_for_display(response.source), response.format);
  if (!response.model.empty()) out += fmt::format(", model {}", escape_for_display(response.model));
  if (!response.fingerprint.empty()) {
    out += fmt::format(", fingerprint {}", escape_for_display(response.fingerprint));
  }
  out += '\n';
  for (const ResponseChoice& choice : response.choices) {
    const ResponseChannel& channel =
        choice.content.has_text || choice.content.has_steps ? choice.content : choice.refusal;
    out += fmt::format(
        "  choice {}: {} bytes, {} tokens, ended by {}\n", choice.index, channel.text.size(),
        channel.has_steps ? std::to_string(channel.steps.size()) : "unknown",
        choice.finish_reason.empty() ? "unknown" : escape_for_display(choice.finish_reason));
    constexpr std::size_t kShown = 300;
    std::string text = channel.text.substr(0, kShown);
    if (!text.empty())
      out += fmt::format("    \"{}\"{}\n", escape_for_display(text),
                         channel.text.size() > kShown ? " …" : "");
    for (const ToolCall& call : choice.tool_calls) {
      out += fmt::format("    calls {}({})\n", escape_for_display(call.name),
                         escape_for_display(call.arguments));
    }
  }
  for (const VersionEvidence& evidence : version_evidence(response)) {
    out += fmt::format("  {:<18} {} ({}: {})\n", evidence.field, escape_for_display(evidence.value),
                       name_of(evidence.grade), evidence.meaning);
  }
  return out + findings_text(lint_response(response));
}

std::string comparison_text(const ResponseComparison& comparison) {
  std::string out = fmt::format("{}: {}\n", name_of(comparison.tier), comparison.verdict);
  out += fmt::format("  A {}\n  B {}\n", escape_for_display(comparison.source_a),
                     escape_for_display(comparison.source_b));
  const bool lost = comparison.alignment == ResponseAlignment::positions;
  out +=
      fmt::format("  aligned by {}: {} token{} {} (A has {}, B has {}), {} bytes of text equal\n",
                  name_of(comparison.alignment), comparison.equal_tokens,
                  comparison.equal_tokens == 1 ? "" : "s",
                  lost ? "equal as far as their bytes are known" : "equal", comparison.tokens_a,
                  comparison.tokens_b, comparison.equal_bytes);
  if (comparison.divergence) {
    const ResponseDivergence& d = *comparison.divergence;
    const auto margin = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.5g}", *value) : std::string("not known");
    };
    out += fmt::format("  A {} margin {}; B {} margin {}\n", quoted(d.text_a), margin(d.margin_a),
                       quoted(d.text_b), margin(d.margin_b));
    if (d.joined_again_byte)
      out += fmt::format("  the texts run together again at byte {} of A\n", *d.joined_again_byte);
  }
  if (comparison.similarity) {
    const Similarity& s = *comparison.similarity;
    out += fmt::format("  the texts {}, chrF {}; the numbers in them {}\n",
                       s.edit ? fmt::format("agree by {} in characters", share_text(*s.edit))
                              : "are too long and too far apart to count their edits",
                       share_text(s.chrf), s.numbers_equal ? "are the same" : "differ");
  }
  if (comparison.drift.count > 0) {
    out += fmt::format("  drift over {} equal tokens: mean {:.4g}, largest {:.4g} at token {}\n",
                       comparison.drift.count, comparison.drift.mean_abs, comparison.drift.max_abs,
                       comparison.drift.argmax_step);
  }
  return out + findings_text(comparison.findings);
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("  {:<8} {}  [{}]\n", name_of(finding.severity), finding.text, finding.id);
  }
  return text;
}

}  // namespace driftscope
