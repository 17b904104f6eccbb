// SPDX-License-Identifier: Apache-2.0
// Prompts given as messages: the flags, and the text that a chat template makes of them.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/prompt_findings.h"
#include "kernels/base/result.h"

namespace driftscope::cli {

struct ChatOptions {
  std::optional<std::string> messages = {};       // JSON file, or - for stdin
  std::optional<std::string> system = {};         // a system message in front
  std::optional<std::string> user = {};           // a user message at the end
  std::optional<std::string> chat_template = {};  // the name of one of the model's, or a file
  std::optional<std::string> date = {};           // of the clock that templates see
  bool no_template = false;
  [[nodiscard]] bool given() const { return messages || system || user; }
};
void declare_chat(CLI::App& app, ChatOptions& options);

// A model's templates, or why they cannot be read.
struct ModelChat {
  ChatTemplates templates;
  std::string problem;
};
// `directory`: of the checkpoint, or a GGUF file.
[[nodiscard]] ModelChat load_chat(const std::string& directory);
// SHA-256 of the template that is used unless asked otherwise; empty: none.
[[nodiscard]] std::string default_template_sha256(const ModelChat& chat);

struct ChatPrompt {
  std::string text;
  ChatRequest request;
  std::optional<RenderedChat> rendered;  // empty: --no-template
};
// Errors: usage (no template, unknown name), malformed (messages, template).
[[nodiscard]] Result<ChatPrompt> make_chat_prompt(const ChatOptions& options,
                                                  const ModelChat& chat);

// "warning  double_bos  The prompt …", a line each.
[[nodiscard]] std::string findings_text(const std::vector<PromptFinding>& findings);

}  // namespace driftscope::cli
