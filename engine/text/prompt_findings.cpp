// SPDX-License-Identifier: Apache-2.0
#include "engine/text/prompt_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "engine/text/prompt_text_findings.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

std::string token_name(const PromptFacts& facts, TokenId id) {
  const std::string piece = facts.tokenizer != nullptr ? facts.tokenizer->piece(id) : std::string();
  return piece.empty() ? fmt::format("id {}", id.value)
                       : fmt::format("{} (id {})", escape_for_display(piece), id.value);
}

void find_double_bos(const PromptFacts& facts, std::vector<PromptFinding>& findings) {
  if (!facts.bos) return;
  const auto run = std::find_if(facts.ids.begin(), facts.ids.end(),
                                [&](TokenId id) { return id != *facts.bos; });
  const auto count = run - facts.ids.begin();
  if (count < 2) return;
  Json positions = Json::array();
  std::string places;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    positions.push_back(i);
    places += fmt::format("{}{}", i == 0 ? "" : ",", i);
  }
  findings.push_back(
      {.id = "double_bos",
       .severity = PromptSeverity::warning,
       .text =
           fmt::format("The prompt begins with {} BOS tokens, {}, at {}: the template writes one "
                       "and the tokenizer adds another. Every later token stands {} further "
                       "along (its RoPE position too) than in the reference; tokenise a rendered "
                       "template without special tokens",
                       count, token_name(facts, *facts.bos), places,
                       count == 2 ? "1 position" : fmt::format("{} positions", count - 1)),
       .evidence = {{"bos", facts.bos->value}, {"positions", positions}}});
}

void find_missing_bos(const PromptFacts& facts, std::vector<PromptFinding>& findings) {
  if (!facts.bos || !facts.bos_expected.value_or(false) || facts.ids.empty() ||
      facts.ids.front() == *facts.bos) {
    return;
  }
  findings.push_back(
      {.id = "missing_bos",
       .severity = PromptSeverity::warning,
       .text = fmt::format(
           "The prompt has no BOS token in front, and the tokenizer's configuration "
           "adds one, {}: {}. Models trained with it answer worse without it",
           token_name(facts, *facts.bos),
           facts.rendered ? "the template does not write it" : "it was left out of these ids"),
       .evidence = {{"bos", facts.bos->value}, {"first_id", facts.ids.front().value}}});
}

Json first_difference(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto value = [](auto at, auto end) { return at == end ? Json(nullptr) : Json(at->value); };
  return {{"position", left - a.begin()},
          {"id", value(left, a.end())},
          {"other_id", value(right, b.end())},
          {"count", a.size()},
          {"other_count", b.size()}};
}

void find_retokenised(const PromptFacts& facts, std::vector<PromptFinding>& findings) {
  if (!facts.vendor_ids.empty() && facts.vendor_ids != facts.ids) {
    const Json evidence = first_difference(facts.ids, facts.vendor_ids);
    findings.push_back(
        {.id = "retokenised_ids_differ",
         .severity = PromptSeverity::warning,
         .text = fmt::format("The text gives other ids here ({}) than the vendor's ({}), first at "
                             "position {}: another tokenizer, template or BOS",
                             facts.ids.size(), facts.vendor_ids.size(),
                             evidence["position"].get<std::int64_t>()),
         .evidence = evidence});
    return;
  }
  if (!facts.ids_given || facts.tokenizer == nullptr || facts.ids.empty()) return;
  const std::vector<TokenId> again = retokenised(facts);
  if (again.empty() || again == facts.ids) return;
  const Json evidence = first_difference(facts.ids, again);
  findings.push_back(
      {.id = "retokenised_ids_differ",
       .severity = PromptSeverity::notice,
       .text = fmt::format("The given ids, as text and tokenised again, are other ids, first at "
                           "position {}: they are not what this tokenizer makes of that text",
                           evidence["position"].get<std::int64_t>()),
       .evidence = evidence});
}

// Ids of special tokens with how often they occur.
std::map<std::int32_t, std::int64_t> special_counts(const Tokenizer& tokenizer,
                                                    const std::vector<TokenId>& ids) {
  std::map<std::int32_t, std::int64_t> counts;
  for (const TokenId id : ids) {
    if (tokenizer.is_special(id)) ++counts[id.value];
  }
  return counts;
}

void find_special_as_text(const PromptFacts& facts, std::vector<PromptFinding>& findings) {
  if (facts.tokenizer == nullptr || facts.ids.empty()) return;
  const std::vector<TokenId> again = retokenised(facts);
  const auto here = special_counts(*facts.tokenizer, facts.ids);
  for (const auto& [id, count] : special_counts(*facts.tokenizer, again)) {
    const auto found = here.find(id);
    const std::int64_t kept = found == here.end() ? 0 : found->second;
    if (kept >= count) continue;
    findings.push_back(
        {.id = "special_tokens_as_text",
         .severity = PromptSeverity::warning,
         .text = fmt::format("The text of the special token {} stands {} in the prompt as ordinary "
                             "text, so the model does not see the token; tokenise with special "
                             "tokens",
                             token_name(facts, TokenId{id}),
                             count - kept == 1 ? "once" : fmt::format("{} times", count - kept)),
         .evidence = {{"id", id}, {"as_text", count - kept}, {"as_token", kept}}});
    return;
  }
}

void find_date(const PromptFacts& facts, std::vector<PromptFinding>& findings) {
  if (!facts.rendered || !facts.rendered->date_used) return;
  const std::string date = facts.rendered->date.text();
  findings.push_back(
      {.id = "date_in_template",
       .severity = PromptSeverity::notice,
       .text = fmt::format("The template writes today's date into the prompt, so servers answer "
                           "another prompt every day; here it is {} (--template-date)",
                           date),
       .evidence = {{"date", date}, {"template", facts.rendered->template_name}}});
}

void find_unknown_template(const PromptFacts& facts, std::vector<PromptFinding>& findings) {
  if (facts.template_problem.empty()) return;
  findings.push_back(
      {.id = "unknown_template",
       .severity = PromptSeverity::warning,
       .text = fmt::format("The chat template cannot be used: {}", facts.template_problem),
       .evidence = {{"problem", facts.template_problem}}});
}

constexpr std::array kKinds{
    PromptFindingKind{"double_bos", "More than one BOS token in front", &find_double_bos},
    PromptFindingKind{"missing_bos", "No BOS token where the tokenizer's configuration adds one",
                      &find_missing_bos},
    PromptFindingKind{"template_twice", "A chat template applied to text that it was applied to",
                      &find_template_twice},
    PromptFindingKind{"retokenised_ids_differ", "The text tokenised again gives other ids",
                      &find_retokenised},
    PromptFindingKind{"special_tokens_as_text", "Text of special tokens tokenised as plain text",
                      &find_special_as_text},
    PromptFindingKind{"date_in_template", "The template writes the date of the day", &find_date},
    PromptFindingKind{"trailing_whitespace", "White space at the end of the prompt",
                      &find_trailing_whitespace},
    PromptFindingKind{"unknown_template", "No chat template, or one that cannot be used",
                      &find_unknown_template}};

}  // namespace

std::string_view name_of(PromptSeverity severity) {
  switch (severity) {
    case PromptSeverity::notice:
      return "notice";
    case PromptSeverity::warning:
      return "warning";
    case PromptSeverity::error:
      return "error";
  }
  return "notice";
}

std::span<const PromptFindingKind> prompt_finding_kinds() { return kKinds; }

std::vector<PromptFinding> find_prompt_findings(const PromptFacts& facts) {
  std::vector<PromptFinding> findings;
  for (const PromptFindingKind& kind : kKinds) kind.find(facts, findings);
  return findings;
}

Json to_json(const std::vector<PromptFinding>& findings) {
  Json list = Json::array();
  for (const PromptFinding& finding : findings) {
    list.push_back({{"id", finding.id},
                    {"severity", name_of(finding.severity)},
                    {"text", finding.text},
                    {"evidence", finding.evidence}});
  }
  return list;
}

void take_bos_facts(const ChatTemplates& chat, const Tokenizer& tokenizer, PromptFacts& facts) {
  facts.chat = &chat;
  facts.tokenizer = &tokenizer;
  const std::string text = chat.special_token("bos_token");
  if (!text.empty()) facts.bos = tokenizer.id_of(text);
  const auto empty = tokenizer.encode("", {});
  const bool adds = empty && !empty->empty();
  // Some tokenizers put a token in front that is not called BOS.
  if (!facts.bos && text.empty() && adds) facts.bos = empty->front().id;
  if (facts.bos) facts.bos_expected = adds && empty->front().id == *facts.bos;
  if (facts.bos && chat.add_bos_token) {
    facts.bos_expected = *facts.bos_expected || *chat.add_bos_token;
  }
}

}  // namespace driftscope
