// SPDX-License-Identifier: Apache-2.0
#include "engine/text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "engine/model/checkpoint.h"
#include "engine/model/files.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxConfigBytes = std::size_t{64} << 20U;
constexpr std::size_t kMaxTemplateBytes = std::size_t{4} << 20U;
constexpr std::array<std::string_view, 8> kTokenNames{
    "bos_token", "eos_token", "unk_token",  "sep_token",
    "pad_token", "cls_token", "mask_token", "additional_special_tokens"};

bool is_there(const fs::path& path) {
  std::error_code code;
  return fs::exists(path, code);
}

// An object, or null where the file is missing.
Result<Json> read_object(const fs::path& path) {
  if (!is_there(path)) return Json();
  auto text = read_whole_file(path, kMaxConfigBytes);
  if (!text) return tl::unexpected(text.error());
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: not a JSON object; download it again", display_path(path)));
  }
  return json;
}

// "text" or {"content": "text", …}; null where it is neither.
Json token_text(const Json& token) {
  if (token.is_string()) return token;
  if (token.is_object()) {
    const auto content = token.find("content");
    if (content != token.end() && content->is_string()) return *content;
  }
  return {};
}

void take_tokens(const Json& file, bool replaces, Json& tokens) {
  if (!file.is_object()) return;
  for (const std::string_view name : kTokenNames) {
    const auto found = file.find(name);
    if (found == file.end() || (!replaces && tokens.contains(name))) continue;
    Json value = token_text(*found);
    if (found->is_array()) {
      value = Json::array();
      for (const Json& entry : *found) value.push_back(token_text(entry));
    }
    if (!value.is_null()) tokens[std::string(name)] = std::move(value);
  }
}

// A template, or a list of {"name", "template"}.
Result<void> take_templates(const Json& config, const std::string& file, ChatTemplates& chat) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return {};
  chat.origin = file;
  if (found->is_string()) {
    chat.templates.push_back(make_template("default", found->get<std::string>()));
    return {};
  }
  const auto wrong = [&] {
    return fail(ErrorKind::malformed,
                fmt::format("{}: chat_template is neither a text nor a list of {{\"name\", "
                            "\"template\"}}; fix the file",
                            file));
  };
  if (!found->is_array()) return wrong();
  for (const Json& entry : *found) {
    const bool named = entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                       entry.contains("template") && entry["template"].is_string();
    if (!named) return wrong();
    chat.templates.push_back(
        make_template(entry["name"].get<std::string>(), entry["template"].get<std::string>()));
  }
  return {};
}

// chat_template.jinja and additional_chat_templates/NAME.jinja.
Result<void> take_template_files(const fs::path& directory, ChatTemplates& chat) {
  auto text = read_whole_file(directory / "chat_template.jinja", kMaxTemplateBytes);
  if (!text) return tl::unexpected(text.error());
  chat.origin = "chat_template.jinja";
  chat.templates.push_back(make_template("default", std::move(*text)));
  std::error_code code;
  std::vector<fs::path> more;
  for (const auto& entry : fs::directory_iterator(directory / "additional_chat_templates", code)) {
    if (entry.path().extension() == ".jinja") more.push_back(entry.path());
  }
  std::sort(more.begin(), more.end());
  for (const fs::path& path : more) {
    auto source = read_whole_file(path, kMaxTemplateBytes);
    if (!source) return tl::unexpected(source.error());
    chat.templates.push_back(make_template(path.stem().string(), std::move(*source)));
  }
  return {};
}

std::string names_of(const std::vector<NamedTemplate>& templates) {
  std::string names;
  for (const NamedTemplate& entry : templates) {
    names += (names.empty() ? "" : ", ") + escape_for_display(entry.name);
  }
  return names;
}

}  // namespace

NamedTemplate make_template(std::string name, std::string source) {
  std::string sha256 = sha256_of_bytes(source);
  return {.name = std::move(name), .source = std::move(source), .sha256 = std::move(sha256)};
}

ChatTemplates chat_templates_of(std::string_view source, std::string origin, Json special_tokens) {
  ChatTemplates chat;
  chat.origin = std::move(origin);
  chat.templates.push_back(make_template("default", std::string(source)));
  chat.special_tokens = std::move(special_tokens);
  return chat;
}

Result<ChatTemplates> read_chat_templates(const fs::path& directory) {
  ChatTemplates chat;
  auto config = read_object(directory / "tokenizer_config.json");
  if (!config) return tl::unexpected(config.error());
  auto map = read_object(directory / "special_tokens_map.json");
  if (!map) return tl::unexpected(map.error());
  take_tokens(*config, true, chat.special_tokens);
  // A file of before added_tokens_decoder defers to the map.
  const bool modern = config->is_object() && config->contains("added_tokens_decoder");
  take_tokens(*map, !modern, chat.special_tokens);
  if (config->is_object()) {
    const auto adds = config->find("add_bos_token");
    if (adds != config->end() && adds->is_boolean()) chat.add_bos_token = adds->get<bool>();
  }
  Result<void> taken;
  if (is_there(directory / "chat_template.jinja")) {
    taken = take_template_files(directory, chat);
  } else if (config->is_object()) {
    taken = take_templates(*config, "tokenizer_config.json", chat);
  }
  if (!taken) return tl::unexpected(taken.error());
  return chat;
}

Result<NamedTemplate> ChatTemplates::choose(std::string_view name, bool with_tools) const {
  const auto find = [&](std::string_view wanted) {
    return std::find_if(templates.begin(), templates.end(),
                        [&](const NamedTemplate& entry) { return entry.name == wanted; });
  };
  if (templates.empty()) {
    return fail(ErrorKind::usage,
                "the model has no chat template; give one with --template FILE, or leave the "
                "messages as they are with --no-template");
  }
  auto found = templates.end();
  if (!name.empty()) {
    found = find(name);
  } else {
    if (with_tools) found = find("tool_use");
    if (found == templates.end()) found = find("default");
    if (found == templates.end() && templates.size() == 1) found = templates.begin();
  }
  if (found != templates.end()) return *found;
  return fail(ErrorKind::usage,
              fmt::format("{}: no chat template \"{}\"; there are {}", origin,
                          name.empty() ? std::string("default") : escape_for_display(name),
                          names_of(templates)));
}

std::string ChatTemplates::special_token(std::string_view name) const {
  const auto found = special_tokens.find(name);
  return found != special_tokens.end() && found->is_string() ? found->get<std::string>()
                                                             : std::string();
}

bool ChatRequest::has_tools() const {
  const auto tools = names.find("tools");
  return tools != names.end() && !tools->is_null() && !tools->empty();
}

Result<ChatRequest> parse_chat_request(std::string_view text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  const auto wrong = [&](std::string_view what) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: {}; write [{{\"role\": \"user\", \"content\": \"…\"}}], or an "
                            "object with \"messages\"",
                            name, what));
  };
  if (json.is_discarded()) return wrong("is not JSON");
  ChatRequest request;
  if (json.is_array()) {
    request.messages = json;
  } else if (json.is_object() && json.contains("messages") && json["messages"].is_array()) {
    for (const auto& [key, value] : json.items()) {
      if (key == "messages") {
        request.messages = value;
      } else if (key == "add_generation_prompt" && value.is_boolean()) {
        request.add_generation_prompt = value.get<bool>();
      } else if (key == "chat_template_kwargs" && value.is_object()) {
        request.names.update(value);
      } else {
        request.names[key] = value;
      }
    }
  } else {
    return wrong("holds no list of messages");
  }
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    const Json& message = request.messages[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      return wrong(fmt::format("message {} has no \"role\"", i + 1));
    }
  }
  return request;
}

Result<RenderedChat> render_chat(const NamedTemplate& chosen, const Json& special_tokens,
                                 const ChatRequest& request, const jinja::Date& date) {
  auto parsed = jinja::Template::parse(
      chosen.source, fmt::format("chat template \"{}\"", escape_for_display(chosen.name)));
  if (!parsed) return tl::unexpected(parsed.error());
  Json context = special_tokens;
  context["messages"] = request.messages;
  context["tools"] = nullptr;
  context["documents"] = nullptr;
  context["add_generation_prompt"] = request.add_generation_prompt;
  for (const auto& [key, value] : request.names.items()) context[key] = value;
  auto rendered = parsed->render(context, date);
  if (!rendered) return tl::unexpected(rendered.error());
  return RenderedChat{.text = std::move(rendered->text),
                      .template_name = chosen.name,
                      .template_sha256 = chosen.sha256,
                      .date = date,
                      .date_used = rendered->date_used};
}

}  // namespace driftscope
