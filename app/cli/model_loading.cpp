// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/cli/experiment.h"
#include "engine/config/knob.h"

namespace driftscope::cli {
namespace {

namespace fs = std::filesystem;

std::string chat_template_sha256(const fs::path& directory) {
  std::error_code code;
  if (fs::exists(directory / "chat_template.jinja", code)) {
    return sha256_of_file(directory / "chat_template.jinja").value_or("");
  }
  std::ifstream file(directory / "tokenizer_config.json", std::ios::binary);
  if (!file) return {};
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return {};
  const auto found = json.find("chat_template");
  return found != json.end() && found->is_string() ? sha256_of_bytes(found->get<std::string>())
                                                   : std::string();
}

constexpr std::size_t kLargestPromptFile = std::size_t{64} << 20U;

}  // namespace

Result<LoadedModel> load_model(const std::string& path, const Console& console) {
  LoadedModel model;
  model.path = path;
  auto location = find_model(path);
  if (!location) return tl::unexpected(location.error());
  model.location = std::move(*location);
  auto checkpoint = ModelCheckpoint::open(model.location.path);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  model.checkpoint = *checkpoint;
  const fs::path directory = model.checkpoint->path();
  std::error_code code;
  if (fs::exists(directory / "tokenizer.json", code) ||
      fs::exists(directory / "tokenizer.model", code)) {
    auto tokenizer = Tokenizer::open(directory);
    if (!tokenizer) return tl::unexpected(tokenizer.error());
    model.tokenizer = *tokenizer;
  }
  auto files = model.checkpoint->files();
  if (!files) return tl::unexpected(files.error());
  model.files = std::move(*files);
  auto combined = model.checkpoint->combined_sha256();
  if (!combined) return tl::unexpected(combined.error());
  model.sha256 = std::move(*combined);
  model.chat_template_sha256 = chat_template_sha256(directory);
  for (const std::string& note : model.checkpoint->quantisation().notes) {
    console.note(fmt::format("{}: {}", path, note));
  }
  if (!model.tokenizer) {
    console.note(fmt::format("{}: no tokenizer.json; prompts must be given as --prompt-ids", path));
  }
  return model;
}

void declare_prompt(CLI::App& app, PromptOptions& options) {
  auto* text = app.add_option("--prompt", options.text, "Prompt text");
  auto* file =
      app.add_option("--prompt-file", options.file, "File with the prompt text; - for stdin");
  auto* ids = app.add_option("--prompt-ids", options.ids, "Prompt as token ids: 1,2,3");
  text->excludes(file)->excludes(ids);
  file->excludes(ids);
  app.add_flag("--no-special", options.no_special,
               "Do not add the tokenizer's special tokens (BOS)");
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

Result<Prompt> make_prompt(const PromptOptions& options, const LoadedModel& model) {
  Prompt prompt;
  if (options.ids) {
    auto ids = parse_ids(*options.ids);
    if (!ids) return tl::unexpected(ids.error());
    prompt.ids = std::move(*ids);
  } else if (options.text || options.file) {
    if (!model.tokenizer) {
      return fail(
          ErrorKind::usage,
          fmt::format("{}: has no tokenizer.json, so a text cannot be tokenised; give --prompt-ids",
                      model.path));
    }
    auto text = options.text ? Result<std::string>(*options.text) : read_text_file(*options.file);
    if (!text) return tl::unexpected(text.error());
    auto encoded = model.tokenizer->encode(*text, {.add_special_tokens = !options.no_special});
    if (!encoded) return tl::unexpected(encoded.error());
    for (const EncodedToken& token : *encoded) prompt.ids.push_back(token.id);
    prompt.text = std::move(*text);
    prompt.text_known = true;
  } else {
    return fail(ErrorKind::usage,
                "no prompt; give --prompt TEXT, --prompt-file F or --prompt-ids 1,2,3");
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
  return prompt;
}

Result<RunConfig> make_config(const ConfigOptions& options) {
  auto config = load_config(options.config);
  if (!config) return config;
  for (const std::string& assignment : options.sets) {
    if (auto set = set_knob_assignment(*config, assignment); !set)
      return tl::unexpected(set.error());
  }
  if (auto checked = check_config(*config); !checked) return tl::unexpected(checked.error());
  return config;
}

}  // namespace driftscope::cli
