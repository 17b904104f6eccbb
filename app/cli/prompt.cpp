// SPDX-License-Identifier: Apache-2.0
// Prompts from flags: a text, ids, or messages; and what is wrong with them.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "app/cli/experiment.h"

namespace driftscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestPromptFile = std::size_t{64} << 20U;

}  // namespace

void declare_prompt(CLI::App& app, PromptOptions& options) {
  auto* text = app.add_option("--prompt", options.text, "Prompt text");
  auto* file =
      app.add_option("--prompt-file", options.file, "File with the prompt text; - for stdin");
  auto* ids = app.add_option("--prompt-ids", options.ids, "Prompt as token ids: 1,2,3");
  text->excludes(file)->excludes(ids);
  file->excludes(ids);
  app.add_flag("--no-special", options.no_special,
               "Do not add the tokenizer's special tokens (BOS)");
  declare_chat(app, options.chat);
}

namespace {

// At most one byte more than a prompt may have, so that an endless stream ends.
std::string read_bounded(std::istream& stream) {
  std::string text;
  std::array<char, 65536> piece{};
  while (text.size() <= kLargestPromptFile) {
    stream.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
    if (stream.gcount() == 0) break;
  }
  return text;
}

Result<std::string> within_limit(const std::string& path, std::string text) {
  if (text.size() <= kLargestPromptFile) return text;
  return fail(ErrorKind::malformed,
              fmt::format("{}: more than 64 MiB; at most 64 MiB are read", path));
}

// What comes once only (standard input, a pipe) is kept, since both sides of a run read it.
Result<std::string> read_stream(const std::string& path) {
  static std::map<std::string, std::string> known;
  if (const auto found = known.find(path); found != known.end()) return found->second;
  std::string text;
  if (path == "-") {
    text = read_bounded(std::cin);
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      return fail(ErrorKind::malformed, fmt::format("{}: cannot open; check the path", path));
    }
    text = read_bounded(file);
  }
  auto checked = within_limit(path, std::move(text));
  if (checked) known.emplace(path, *checked);
  return checked;
}

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) {
    return fail(ErrorKind::malformed, fmt::format("{}: is a directory; give a text file", path));
  }
  if (path == "-" || (fs::exists(path, code) && !fs::is_regular_file(path, code))) {
    return read_stream(path);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return fail(ErrorKind::malformed, fmt::format("{}: cannot open; check the path", path));
  }
  return within_limit(path, read_bounded(file));
}

Result<std::vector<TokenId>> parse_ids(const std::string& list) {
  std::vector<TokenId> ids;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at != end) {
    while (at != end && (*at == ' ' || *at == ',')) ++at;
    if (at == end) break;
    std::int32_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || value < 0) {
      return fail(ErrorKind::usage,
                  fmt::format("token ids: \"{}\" at character {} is not an id; write 1,2,3",
                              std::string(at, std::min<std::size_t>(
                                                  12, static_cast<std::size_t>(end - at))),
                              at - list.data() + 1));
    }
    ids.push_back(TokenId{value});
    at = next;
  }
  if (ids.empty()) return fail(ErrorKind::usage, "token ids: the list is empty; write 1,2,3");
  return ids;
}

namespace {

Result<void> encode_text(const std::string& text, bool add_special, const LoadedModel& model,
                         Prompt& prompt) {
  auto encoded = model.tokenizer->encode(text, {.add_special_tokens = add_special});
  if (!encoded) return tl::unexpected(encoded.error());
  for (const EncodedToken& token : *encoded) prompt.ids.push_back(token.id);
  prompt.text = text;
  prompt.text_known = true;
  return {};
}

// A rendered template brings its own special tokens, so none are added, as in transformers.
Result<void> take_chat(const PromptOptions& options, const LoadedModel& model, Prompt& prompt) {
  auto chat = make_chat_prompt(options.chat, model.chat);
  if (!chat) return tl::unexpected(chat.error());
  const bool add_special = !chat->rendered && !options.no_special;
  prompt.request = std::move(chat->request);
  prompt.rendered = std::move(chat->rendered);
  return encode_text(chat->text, add_special, model, prompt);
}

Result<void> take_text(const PromptOptions& options, const LoadedModel& model, Prompt& prompt) {
  auto text = options.text ? Result<std::string>(*options.text) : read_text_file(*options.file);
  if (!text) return tl::unexpected(text.error());
  return encode_text(*text, !options.no_special, model, prompt);
}

Result<void> take_ids(const PromptOptions& options, Prompt& prompt) {
  auto ids = parse_ids(*options.ids);
  if (!ids) return tl::unexpected(ids.error());
  prompt.ids = std::move(*ids);
  return {};
}

Result<void> take_prompt(const PromptOptions& options, const LoadedModel& model, Prompt& prompt) {
  const int ways = (options.ids ? 1 : 0) + (options.text || options.file ? 1 : 0) +
                   (options.chat.given() ? 1 : 0);
  if (ways > 1) {
    return fail(ErrorKind::usage,
                "a prompt is a text, ids or messages; give one of --prompt, --prompt-ids and "
                "--messages (or --system, --user)");
  }
  if (options.ids) return take_ids(options, prompt);
  if (ways == 0) {
    return fail(ErrorKind::usage,
                "no prompt; give --prompt TEXT, --prompt-file F, --prompt-ids 1,2,3, --user TEXT "
                "or --messages F.json");
  }
  if (!model.tokenizer) {
    return fail(
        ErrorKind::usage,
        fmt::format("{}: has no tokenizer.json, so a text cannot be tokenised; give --prompt-ids",
                    model.path));
  }
  return options.chat.given() ? take_chat(options, model, prompt)
                              : take_text(options, model, prompt);
}

}  // namespace

std::vector<PromptFinding> prompt_findings(const Prompt& prompt, const LoadedModel& model) {
  PromptFacts facts;
  facts.ids = prompt.ids;
  if (prompt.text_known) facts.text = prompt.text;
  facts.ids_given = !prompt.text_known;
  facts.request = prompt.request;
  facts.rendered = prompt.rendered;
  if (model.tokenizer) take_bos_facts(model.chat.templates, *model.tokenizer, facts);
  return find_prompt_findings(facts);
}

Result<Prompt> make_prompt(const PromptOptions& options, const LoadedModel& model) {
  Prompt prompt;
  if (auto taken = take_prompt(options, model, prompt); !taken) {
    return tl::unexpected(taken.error());
  }
  if (prompt.ids.empty()) {
    return fail(ErrorKind::usage,
                "the prompt has no tokens; give some text, or leave --no-special out");
  }
  const auto vocabulary = model.checkpoint->description().vocabulary;
  for (std::size_t i = 0; i < prompt.ids.size(); ++i) {
    if (prompt.ids[i].value >= vocabulary) {
      return fail(ErrorKind::usage,
                  fmt::format("prompt: id {} at position {} is outside the vocabulary of {} of {}",
                              prompt.ids[i].value, i, vocabulary, model.path));
    }
  }
  prompt.findings = prompt_findings(prompt, model);
  return prompt;
}

}  // namespace driftscope::cli
