// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "app/cli/experiment.h"
#include "engine/config/knob.h"
#include "engine/text/gguf_vocabulary.h"

namespace driftscope::cli {

namespace fs = std::filesystem;

namespace {

// The tokenizer of a GGUF file is in the file.
Result<void> load_tokenizer(const fs::path& path, LoadedModel& model) {
  std::error_code code;
  if (!fs::is_directory(path, code)) {
    auto text = open_gguf_tokenizer(path);
    if (!text) return tl::unexpected(text.error());
    model.tokenizer = std::move(*text);
    return {};
  }
  if (!fs::exists(path / "tokenizer.json", code) && !fs::exists(path / "tokenizer.model", code)) {
    return {};
  }
  auto tokenizer = Tokenizer::open(path);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  model.tokenizer = std::move(*tokenizer);
  return {};
}

}  // namespace

std::string storage_method(const ModelCheckpoint& checkpoint) {
  const std::string& method = checkpoint.quantisation().method;
  return method.empty() ? checkpoint.weight_formats() : method;
}

Result<LoadedModel> load_model(const std::string& path, const Console& console) {
  LoadedModel model;
  model.path = path;
  auto location = find_model(path);
  if (!location) return tl::unexpected(location.error());
  model.location = std::move(*location);
  auto checkpoint = ModelCheckpoint::open(model.location.path);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  model.checkpoint = *checkpoint;
  const fs::path& files_at = model.checkpoint->path();
  if (auto loaded = load_tokenizer(files_at, model); !loaded) {
    return tl::unexpected(loaded.error());
  }
  auto files = model.checkpoint->files();
  if (!files) return tl::unexpected(files.error());
  model.files = std::move(*files);
  auto combined = model.checkpoint->combined_sha256();
  if (!combined) return tl::unexpected(combined.error());
  model.sha256 = std::move(*combined);
  model.chat = load_chat(files_at.string());
  model.chat_template_sha256 = default_template_sha256(model.chat);
  for (const std::string& note : model.checkpoint->quantisation().notes) {
    console.note(fmt::format("{}: {}", path, note));
  }
  if (!model.tokenizer) {
    console.note(fmt::format("{}: no tokenizer; prompts must be given as --prompt-ids", path));
  }
  return model;
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
