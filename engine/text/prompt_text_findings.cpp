// SPDX-License-Identifier: Apache-2.0
#include "engine/text/prompt_text_findings.h"

#include <fmt/format.h>

#include <string>

#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const PromptFacts& facts) {
  if (facts.text) return *facts.text;
  if (facts.tokenizer == nullptr) return {};
  return facts.tokenizer->decode(facts.ids, false);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// What the template writes right before a user's text, without BOS and white space: the mark by
// which a rendered prompt is known. Empty: no template, or it writes nothing of its own.
std::string user_mark(const PromptFacts& facts) {
  if (facts.chat == nullptr || facts.chat->empty()) return {};
  constexpr std::string_view kProbe = "0f8b5d2e";  // a text that no template holds
  ChatRequest request;
  request.messages = Json::array({{{"role", "user"}, {"content", kProbe}}});
  const auto chosen = facts.chat->choose("", false);
  if (!chosen) return {};
  const auto rendered = render_chat(*chosen, facts.chat->special_tokens, request, {});
  if (!rendered) return {};
  const std::size_t at = rendered->text.find(kProbe);
  if (at == std::string::npos) return {};
  std::string_view before = trimmed(std::string_view(rendered->text).substr(0, at));
  // The header of the user's turn: behind what ends the turn before it.
  const std::string bos = facts.chat->special_token("bos_token");
  const std::string eos = facts.chat->special_token("eos_token");
  for (const std::string& edge : {bos, eos}) {
    const std::size_t found = edge.empty() ? std::string_view::npos : before.rfind(edge);
    if (found != std::string_view::npos) before = trimmed(before.substr(found + edge.size()));
  }
  if (const std::size_t line = before.find_last_of("<["); line != std::string_view::npos) {
    // <|start|>user<|end|>: from the first mark of the last line that begins with one.
    const std::size_t start = before.rfind('\n', line);
    if (start != std::string_view::npos && start + 1 < before.size() &&
        (before[start + 1] == '<' || before[start + 1] == '[')) {
      before = before.substr(start + 1);
    }
  }
  return before.size() >= 3 ? std::string(before) : std::string();
}

void report_twice(const std::string& mark, std::string_view where, Json place,
                  std::vector<PromptFinding>& findings) {
  place["mark"] = mark;
  findings.push_back({.id = "template_twice",
                      .severity = PromptSeverity::warning,
                      .text = fmt::format(
                          "The chat template was applied twice: {} holds its own mark \"{}\"; give "
                          "the plain message, or the rendered text with --prompt",
                          where, escape_for_display(mark)),
                      .evidence = std::move(place)});
}

}  // namespace

std::vector<TokenId> retokenised(const PromptFacts& facts) {
  if (facts.tokenizer == nullptr) return {};
  const auto encode = [&](const std::string& text) {
    std::vector<TokenId> ids;
    if (const auto encoded = facts.tokenizer->encode(text, {.add_special_tokens = false})) {
      for (const EncodedToken& token : *encoded) ids.push_back(token.id);
    }
    return ids;
  };
  if (facts.text) return encode(*facts.text);
  // A BOS in front is a token of its own; the text behind it may begin a word.
  std::size_t front = 0;
  while (facts.bos && front < facts.ids.size() && facts.ids[front] == *facts.bos) ++front;
  const std::span<const TokenId> rest = std::span(facts.ids).subspan(front);
  const std::string text = facts.tokenizer->decode(rest, false);
  if (find_invalid_utf8(text) != std::string_view::npos) return {};
  std::vector<TokenId> ids(facts.ids.begin(),
                           facts.ids.begin() + static_cast<std::ptrdiff_t>(front));
  const std::vector<TokenId> encoded = encode(text);
  ids.insert(ids.end(), encoded.begin(), encoded.end());
  return ids;
}

namespace {

// A mark of plain words ("user:") may stand inside any text; one in brackets may not.
bool holds_mark(std::string_view text, const std::string& mark, const std::string& bos) {
  if (mark.find_first_of("<[") != std::string::npos) {
    return text.find(mark) != std::string_view::npos;
  }
  text = trimmed(text);
  while (!bos.empty() && text.starts_with(bos)) text = trimmed(text.substr(bos.size()));
  return text.starts_with(mark);
}

}  // namespace

void find_template_twice(const PromptFacts& facts, std::vector<PromptFinding>& findings) {
  const std::string mark = user_mark(facts);
  if (mark.empty()) return;
  const std::string bos = facts.chat->special_token("bos_token");
  if (facts.request) {
    std::size_t index = 0;
    for (const Json& message : facts.request->messages) {
      const auto content = message.find("content");
      const bool holds = content != message.end() && content->is_string() &&
                         holds_mark(content->get_ref<const std::string&>(), mark, bos);
      if (holds) {
        return report_twice(mark, fmt::format("message {}", index + 1), {{"message", index}},
                            findings);
      }
      ++index;
    }
    return;
  }
  // Only ids or a text: a header right behind a header, with nothing but BOS and space between.
  const std::string text = text_of(facts);
  for (std::size_t at = text.find(mark); at != std::string::npos;) {
    std::string_view rest = trimmed(std::string_view(text).substr(at + mark.size()));
    while (!bos.empty() && rest.starts_with(bos)) rest = trimmed(rest.substr(bos.size()));
    if (rest.starts_with(mark)) {
      return report_twice(mark, "the prompt", {{"byte", at}}, findings);
    }
    at = text.find(mark, at + mark.size());
  }
}

void find_trailing_whitespace(const PromptFacts& facts, std::vector<PromptFinding>& findings) {
  const bool templated = facts.rendered.has_value();
  std::string text;
  if (templated) {
    // The template's own line break at the end belongs there; a message's may not.
    if (!facts.request || facts.request->messages.empty()) return;
    const Json& last = facts.request->messages.back();
    const auto content = last.find("content");
    if (content == last.end() || !content->is_string()) return;
    text = content->get<std::string>();
    if (facts.rendered->text.find(text) == std::string::npos) return;  // the template trims it
  } else {
    text = text_of(facts);
  }
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  const std::size_t kept = end == std::string::npos ? 0 : end + 1;
  if (kept == text.size() || text.empty()) return;
  // A raw prompt that ends as a rendered template ends is meant so.
  const std::string mark = templated ? std::string() : user_mark(facts);
  if (!mark.empty() && text.find(mark) != std::string::npos) return;
  const std::string space = text.substr(kept);
  findings.push_back(
      {.id = "trailing_whitespace",
       .severity = PromptSeverity::notice,
       .text =
           fmt::format("{} ends with white space ({}): most tokenizers put a space into the next "
                       "word's token, so the model continues a text it rarely saw; leave it out",
                       templated ? "The last message" : "The prompt",
                       escape_for_display(space) == space ? fmt::format("{} spaces", space.size())
                                                          : escape_for_display(space)),
       .evidence = {{"white_space", space}, {"byte", kept}}});
}

}  // namespace driftscope
