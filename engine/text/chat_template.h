// SPDX-License-Identifier: Apache-2.0
// Messages to prompt text, through the chat template that comes with a checkpoint.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/template.h"
#include "kernels/base/result.h"

namespace driftscope {

struct NamedTemplate {
  std::string name;  // "default", "tool_use", "rag", …
  std::string source;
  std::string sha256;
};

// What a checkpoint brings for chats.
struct ChatTemplates {
  std::string origin;  // the file they come from; empty: there are none
  std::vector<NamedTemplate> templates;
  // bos_token, eos_token and the others by name, as the template sees them.
  nlohmann::ordered_json special_tokens = nlohmann::ordered_json::object();
  std::optional<bool> add_bos_token;  // as tokenizer_config.json says; empty: it does not

  [[nodiscard]] bool empty() const { return templates.empty(); }
  // `name` empty: "tool_use" where there are tools and there is one of the name, else "default",
  // else the only one. Errors: usage, naming those that there are.
  [[nodiscard]] Result<NamedTemplate> choose(std::string_view name, bool with_tools) const;
  // bos_token and the like; empty: unknown.
  [[nodiscard]] std::string special_token(std::string_view name) const;
};

// chat_template.jinja (with additional_chat_templates/) before tokenizer_config.json; special
// tokens of tokenizer_config.json and special_tokens_map.json. Files that are missing leave it
// empty. Errors: malformed, naming the file.
[[nodiscard]] Result<ChatTemplates> read_chat_templates(const std::filesystem::path& directory);
// From one text, as a GGUF file holds it (tokenizer.chat_template); special tokens by name.
[[nodiscard]] ChatTemplates chat_templates_of(std::string_view source, std::string origin,
                                              nlohmann::ordered_json special_tokens);
[[nodiscard]] NamedTemplate make_template(std::string name, std::string source);

// What is to be rendered.
struct ChatRequest {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();  // [{role, content, …}]
  nlohmann::ordered_json names = nlohmann::ordered_json::object();    // tools, documents, others
  bool add_generation_prompt = true;
  [[nodiscard]] bool has_tools() const;
};
// A list of messages, or an object with "messages" and besides them tools, documents,
// add_generation_prompt, and chat_template_kwargs, whose entries the template sees by name.
// `name` begins the messages. Errors: malformed.
[[nodiscard]] Result<ChatRequest> parse_chat_request(std::string_view text,
                                                     const std::string& name);

struct RenderedChat {
  std::string text;
  std::string template_name;
  std::string template_sha256;
  jinja::Date date;
  bool date_used = false;
};
// Errors: malformed, with the template's line; what the template itself refuses is quoted.
[[nodiscard]] Result<RenderedChat> render_chat(const NamedTemplate& chosen,
                                               const nlohmann::ordered_json& special_tokens,
                                               const ChatRequest& request, const jinja::Date& date);

}  // namespace driftscope
