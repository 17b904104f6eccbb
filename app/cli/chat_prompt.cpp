// SPDX-License-Identifier: Apache-2.0
#include "app/cli/chat_prompt.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/cli/experiment.h"
#include "engine/model/gguf_checkpoint.h"
#include "engine/text/gguf_vocabulary.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

using Json = nlohmann::ordered_json;

Result<ChatRequest> make_request(const ChatOptions& options) {
  ChatRequest request;
  if (options.messages) {
    auto text = read_text_file(*options.messages);
    if (!text) return tl::unexpected(text.error());
    auto parsed = parse_chat_request(*text, *options.messages);
    if (!parsed) return parsed;
    request = std::move(*parsed);
  }
  if (options.system) {
    request.messages.insert(request.messages.begin(),
                            Json{{"role", "system"}, {"content", *options.system}});
  }
  if (options.user) request.messages.push_back({{"role", "user"}, {"content", *options.user}});
  return request;
}

// The messages' texts, a line each.
Result<std::string> plain_text(const ChatRequest& request) {
  std::string text;
  for (const Json& message : request.messages) {
    const auto content = message.find("content");
    if (content == message.end() || !content->is_string()) {
      return fail(ErrorKind::usage,
                  "--no-template: a message has no plain text as content; leave the flag out");
    }
    if (!text.empty()) text += '\n';
    text += content->get<std::string>();
  }
  return text;
}

Result<NamedTemplate> choose_template(const ChatOptions& options, const ModelChat& chat,
                                      const ChatRequest& request) {
  const std::string name = options.chat_template.value_or("");
  std::error_code code;
  auto chosen = chat.templates.choose(name, request.has_tools());
  if (chosen) return chosen;
  if (!name.empty() && std::filesystem::exists(name, code)) {
    auto source = read_text_file(name);
    if (!source) return tl::unexpected(source.error());
    return make_template(std::filesystem::path(name).filename().string(), std::move(*source));
  }
  if (!name.empty()) {
    return fail(ErrorKind::usage,
                fmt::format("--template \"{}\": neither a template of the model nor a file; {}",
                            escape_for_display(name), chosen.error().message));
  }
  if (!chat.problem.empty()) return fail(ErrorKind::malformed, chat.problem);
  return chosen;
}

}  // namespace

void declare_chat(CLI::App& app, ChatOptions& options) {
  app.add_option("--messages", options.messages,
                 "JSON file with messages [{\"role\", \"content\"}], or an object with messages, "
                 "tools and what else the template takes; - for stdin");
  app.add_option("--system", options.system, "A system message, in front");
  app.add_option("--user", options.user, "A user message, at the end");
  auto* none = app.add_flag("--no-template", options.no_template,
                            "The messages' texts as they are, without the chat template");
  app.add_option("--template", options.chat_template,
                 "Chat template: one of the model's by name, or a Jinja file")
      ->excludes(none);
  app.add_option("--template-date", options.date,
                 "The day that templates take for today, YYYY-MM-DD; default 2024-07-26");
}

namespace {

ModelChat load_gguf_chat(const std::string& file) {
  ModelChat chat;
  const auto read = open_gguf_chat(file);
  if (!read) {
    chat.problem = read.error().message;
  } else if (read->chat_template) {
    auto special_tokens = nlohmann::ordered_json::object();
    for (const auto& [name, text] : read->special_tokens) special_tokens[name] = text;
    chat.templates = chat_templates_of(*read->chat_template, file, std::move(special_tokens));
  }
  return chat;
}

}  // namespace

ModelChat load_chat(const std::string& directory) {
  ModelChat chat;
  if (std::error_code code; !std::filesystem::is_directory(directory, code)) {
    return is_gguf(directory) ? load_gguf_chat(directory) : chat;
  }
  if (auto templates = read_chat_templates(directory)) {
    chat.templates = std::move(*templates);
  } else {
    chat.problem = templates.error().message;
  }
  return chat;
}

std::string default_template_sha256(const ModelChat& chat) {
  if (chat.templates.empty()) return {};
  const auto chosen = chat.templates.choose("", false);
  return chosen ? chosen->sha256 : chat.templates.templates.front().sha256;
}

Result<ChatPrompt> make_chat_prompt(const ChatOptions& options, const ModelChat& chat) {
  auto date = options.date ? jinja::Date::parse(*options.date) : Result<jinja::Date>(jinja::Date{});
  if (!date) return fail(ErrorKind::usage, "--template-date: " + date.error().message);
  auto request = make_request(options);
  if (!request) return tl::unexpected(request.error());
  ChatPrompt prompt;
  prompt.request = std::move(*request);
  if (options.no_template) {
    auto text = plain_text(prompt.request);
    if (!text) return tl::unexpected(text.error());
    prompt.text = std::move(*text);
    return prompt;
  }
  auto chosen = choose_template(options, chat, prompt.request);
  if (!chosen) return tl::unexpected(chosen.error());
  auto rendered = render_chat(*chosen, chat.templates.special_tokens, prompt.request, *date);
  if (!rendered) return tl::unexpected(rendered.error());
  prompt.text = rendered->text;
  prompt.rendered = std::move(*rendered);
  return prompt;
}

std::string findings_text(const std::vector<PromptFinding>& findings) {
  std::string out;
  for (const PromptFinding& finding : findings) {
    out += fmt::format("{:<8} {}: {}\n", name_of(finding.severity), finding.id, finding.text);
  }
  return out;
}

}  // namespace driftscope::cli
