// SPDX-License-Identifier: Apache-2.0
// From flags to something that can run: models, prompts, configurations, neighbours.
#pragma once

#include <CLI/App.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison_builder.h"
#include "app/cli/chat_prompt.h"
#include "app/cli/command.h"
#include "engine/config/run_config.h"
#include "engine/exec/lockstep.h"
#include "engine/model/checkpoint.h"
#include "engine/model/hub_cache.h"
#include "engine/text/tokenizer.h"
#include "kernels/base/result.h"

namespace driftscope::cli {

inline constexpr std::string_view kModelHelp =
    "Directory of the checkpoint, a GGUF file, or a hub id in the local cache: "
    "org/name[@revision]";

struct LoadedModel {
  std::string path;  // as given: a path or a hub id
  ModelLocation location;
  std::shared_ptr<const ModelCheckpoint> checkpoint;
  std::shared_ptr<const Tokenizer> tokenizer;  // null where there is none
  std::vector<CheckpointFile> files;
  std::string sha256;  // combined
  ModelChat chat;
  std::string chat_template_sha256;  // of the template used unless asked otherwise; empty: none
};
// How the checkpoint holds its weights, in words; empty: as plain elements of one type.
[[nodiscard]] std::string storage_method(const ModelCheckpoint& checkpoint);
// `path`: a directory, a GGUF file, or a hub id looked up in the local cache. Opens checkpoint and
// tokenizer (a missing one is fine, a broken one is not) and hashes.
[[nodiscard]] Result<LoadedModel> load_model(const std::string& path, const Console& console);

struct PromptOptions {
  std::optional<std::string> text = {};
  std::optional<std::string> file = {};
  std::optional<std::string> ids = {};  // "1,2,3"
  bool no_special = false;
  ChatOptions chat = {};
};
void declare_prompt(CLI::App& app, PromptOptions& options);

struct Prompt {
  std::vector<TokenId> ids;
  std::string text;  // what was tokenised: of messages, what the template made of them
  bool text_known = false;
  std::optional<ChatRequest> request = {};    // of messages
  std::optional<RenderedChat> rendered = {};  // of messages through a template
  std::vector<PromptFinding> findings = {};
};
// Exactly one of text, file, ids and messages must be given. Ids are checked against the
// vocabulary.
[[nodiscard]] Result<Prompt> make_prompt(const PromptOptions& options, const LoadedModel& model);
// Of a prompt without its findings.
[[nodiscard]] std::vector<PromptFinding> prompt_findings(const Prompt& prompt,
                                                         const LoadedModel& model);

[[nodiscard]] Result<std::vector<TokenId>> parse_ids(const std::string& list);
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);  // "-": standard input

struct ConfigOptions {
  std::string config;
  std::vector<std::string> sets;
};
[[nodiscard]] Result<RunConfig> make_config(const ConfigOptions& options);

// `count` prompts of neighbours: the lines of `file` in turn, or built-in sentences; without a
// tokenizer the prompt's own ids, each rotated by another amount.
[[nodiscard]] Result<std::vector<std::vector<TokenId>>> make_neighbours(std::int64_t count,
                                                                        const std::string& file,
                                                                        const LoadedModel& model,
                                                                        const Prompt& prompt);

// Errors: usage, where a file of neighbour prompts is given (`file` not empty) and no configuration
// has neighbours that could take them.
[[nodiscard]] Result<void> check_neighbour_file(const std::string& file,
                                                std::initializer_list<const RunConfig*> configs,
                                                std::string_view flag);

// One side, ready.
struct Side {
  LoadedModel model;
  Prompt prompt;
  RunConfig config;
  std::vector<std::vector<TokenId>> neighbours;
  [[nodiscard]] LaneInput lane_input() const;
};

struct ExperimentOptions {
  std::int64_t steps = 64;
  TapLevel taps = TapLevel::logits;
  std::string command;
  bool control = true;
  bool reference = false;
};
[[nodiscard]] ExperimentFacts make_facts(const Side& a, const Side& b,
                                         const ExperimentOptions& options,
                                         const std::string& created);
// The command as a shell would take it back.
[[nodiscard]] std::string quote_command(const std::vector<std::string>& arguments);

}  // namespace driftscope::cli
