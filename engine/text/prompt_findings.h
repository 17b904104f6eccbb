// SPDX-License-Identifier: Apache-2.0
// What is wrong with a prompt before any number is computed: half of the reports of "same prompt,
// different answer" are about a BOS token or a template.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "kernels/base/types.h"

namespace driftscope {

enum class PromptSeverity : std::uint8_t { notice, warning, error };
[[nodiscard]] std::string_view name_of(PromptSeverity severity);

struct PromptFinding {
  std::string id;  // one of prompt_finding_kinds()
  PromptSeverity severity = PromptSeverity::warning;
  std::string text;                 // one sentence: what, what it does, what to do
  nlohmann::ordered_json evidence;  // an object
};
[[nodiscard]] nlohmann::ordered_json to_json(const std::vector<PromptFinding>& findings);

// What is known of a prompt; what is not stays empty and gives no finding.
struct PromptFacts {
  std::vector<TokenId> ids;
  std::optional<TokenId> bos;
  std::optional<bool> bos_expected;  // the tokenizer's configuration puts one in front
  const Tokenizer* tokenizer = nullptr;
  std::optional<std::string> text;  // what was tokenised, the template's text included
  bool ids_given = false;           // the ids come from elsewhere, not from this tokenizer
  std::vector<TokenId> vendor_ids;  // what a vendor says the same text is
  const ChatTemplates* chat = nullptr;
  std::optional<ChatRequest> request;    // rendered through a template
  std::optional<RenderedChat> rendered;  // what came of it
  std::string template_problem;          // why the template could not be used
};
[[nodiscard]] std::vector<PromptFinding> find_prompt_findings(const PromptFacts& facts);

// The BOS of a checkpoint and whether its tokenizer puts one in front, from its configuration and
// from what the tokenizer does with an empty text.
void take_bos_facts(const ChatTemplates& chat, const Tokenizer& tokenizer, PromptFacts& facts);

struct PromptFindingKind {
  std::string_view id;
  std::string_view what;
  void (*find)(const PromptFacts& facts, std::vector<PromptFinding>& findings);
};
// In the order in which they are told.
[[nodiscard]] std::span<const PromptFindingKind> prompt_finding_kinds();

}  // namespace driftscope
