// SPDX-License-Identifier: Apache-2.0
// driftscope score: logits at every position of a given sequence.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/capture/capture.h"
#include "analysis/capture/experiment_json.h"
#include "app/cli/command.h"
#include "app/cli/experiment.h"
#include "app/cli/interrupt.h"
#include "app/cli/npy.h"
#include "app/cli/output_file.h"
#include "engine/config/envelope.h"
#include "engine/exec/lockstep.h"

namespace driftscope::cli {
namespace {

struct ScoreOptions {
  std::string model;
  std::optional<std::string> ids;
  std::optional<std::string> ids_file;
  std::optional<std::string> text;
  bool no_special = false;
  ChatOptions chat;
  ConfigOptions config{.config = "reference-f32", .sets = {}};
  std::string neighbour_prompts;
  std::string taps = "logits";
  std::string output;
  bool force = false;
};

Result<std::string> ids_from_file(const std::string& path) {
  auto text = read_text_file(path);
  if (!text) return text;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const auto* list = &json;
  if (json.is_object()) {
    for (const char* key : {"ids", "token_ids", "tokens", "prompt_token_ids"}) {
      if (json.contains(key)) list = &json[key];
    }
  }
  if (!list->is_array()) {
    return fail(
        ErrorKind::malformed,
        fmt::format("{}: expected a JSON list of token ids, or an object with \"ids\"", path));
  }
  std::string ids;
  std::size_t index = 0;
  for (const auto& entry : *list) {
    if (!entry.is_number_integer()) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: entry {} is not an integer id", path, index));
    }
    ids += entry.dump() + ",";
    ++index;
  }
  return ids;
}

// Rows go to a .npy file or to a capture's lane a.
class ScoreSink final : public TraceSink {
 public:
  std::optional<NpyWriter> npy;
  std::unique_ptr<CaptureWriter> capture;
  [[nodiscard]] Result<void> accept(const StepRecord& record) override {
    if (npy) return npy->append(record.logits);
    return capture->accept(record);
  }
};

Result<ScoreSink> open_sink(const ScoreOptions& options, const Side& side, TapLevel taps,
                            const std::string& command) {
  ScoreSink sink;
  const auto rows = static_cast<std::int64_t>(side.prompt.ids.size());
  if (options.output.ends_with(".npy")) {
    auto npy =
        NpyWriter::create(options.output, rows, side.model.checkpoint->description().vocabulary);
    if (!npy) return tl::unexpected(npy.error());
    sink.npy.emplace(std::move(*npy));
    return sink;
  }
  const ExperimentOptions experiment{
      .steps = rows, .taps = taps, .command = command, .control = false};
  const auto created = utc_now();
  const auto facts = make_facts(side, side, experiment, created);
  auto writer =
      CaptureWriter::create(options.output, capture_header(facts, created, {Lane::a}), {});
  if (!writer) return tl::unexpected(writer.error());
  sink.capture = std::move(*writer);
  return sink;
}

Result<Side> make_score_side(const ScoreOptions& options, const Console& console) {
  Side side;
  auto config = make_config(options.config);
  if (!config) return tl::unexpected(config.error());
  side.config = std::move(*config);
  if (auto fits = check_neighbour_file(options.neighbour_prompts, {&side.config}, "--set"); !fits) {
    return tl::unexpected(fits.error());
  }
  auto model = load_model(options.model, console);
  if (!model) return tl::unexpected(model.error());
  side.model = std::move(*model);
  PromptOptions prompt{.text = options.text,
                       .file = {},
                       .ids = options.ids,
                       .no_special = options.no_special,
                       .chat = options.chat};
  if (options.ids_file) {
    auto ids = ids_from_file(*options.ids_file);
    if (!ids) return tl::unexpected(ids.error());
    prompt.ids = std::move(*ids);
  }
  if (!prompt.text && !prompt.ids && !prompt.chat.given()) {
    return fail(ErrorKind::usage,
                "nothing to score; give --ids 1,2,3, --ids-file F.json, --text T or --messages "
                "F.json");
  }
  auto made = make_prompt(prompt, side.model);
  if (!made) return tl::unexpected(made.error());
  side.prompt = std::move(*made);
  for (const PromptFinding& finding : side.prompt.findings) {
    console.note(fmt::format("{} {}: {}", name_of(finding.severity), finding.id, finding.text));
  }
  const RopeScaling& rope = side.model.checkpoint->description().rope_scaling;
  const auto rows = static_cast<std::int64_t>(side.prompt.ids.size());
  if (rope.kind == RopeScaling::Kind::longrope && rows > rope.original_max_positions &&
      side.config.scoring != Scoring::prefill) {
    console.note(
        fmt::format("LongRoPE: the sequence of {} is longer than {}; token by token, as generating "
                    "does it, keys of earlier tokens keep the short factors. --set scoring=prefill "
                    "computes it as one prompt, with the long factors throughout",
                    rows, rope.original_max_positions));
  }
  auto neighbours =
      make_neighbours(side.config.neighbours, options.neighbour_prompts, side.model, side.prompt);
  if (!neighbours) return tl::unexpected(neighbours.error());
  side.neighbours = std::move(*neighbours);
  return side;
}

Result<int> execute(const ScoreOptions& options, CommandContext& context,
                    InterruptGuard& interrupt) {
  if (auto target = check_target(options.output, options.force); !target) {
    return tl::unexpected(target.error());
  }
  if (!options.output.ends_with(".npy") && !options.output.ends_with(".h5") &&
      !options.output.ends_with(".hdf5")) {
    return fail(ErrorKind::usage,
                fmt::format("--output: \"{}\": give a name that ends in .npy (logits) or .h5 (a "
                            "capture)",
                            options.output));
  }
  const TapLevel taps = options.taps == "all"      ? TapLevel::all
                        : options.taps == "layers" ? TapLevel::layers
                                                   : TapLevel::logits;
  if (taps != TapLevel::logits && options.output.ends_with(".npy")) {
    return fail(ErrorKind::usage,
                "--taps: a .npy file holds logits only; write a capture (.h5) to keep taps");
  }
  auto side = make_score_side(options, context.console);
  if (!side) return tl::unexpected(side.error());
  std::vector<std::string> words{"driftscope"};
  words.insert(words.end(), context.arguments.begin() + 1, context.arguments.end());
  auto sink = open_sink(options, *side, taps, quote_command(words));
  if (!sink) return tl::unexpected(sink.error());
  ProgressLine bar(context.console);
  auto summary = score_sequence(
      side->lane_input(), taps, *sink,
      [&](const RunProgress& at) { bar.update(at.phase, at.done, at.total); }, interrupt.token());
  bar.clear();
  const bool cancelled = summary && summary->cancelled;
  const TraceState state = !summary    ? TraceState::partial
                           : cancelled ? TraceState::interrupted
                                       : TraceState::complete;
  Result<void> closed;
  if (sink->capture) {
    if (summary && !summary->lanes.empty()) {
      closed = sink->capture->keep_plans(Lane::a, summary->lanes[0].plans);
    }
    if (closed) closed = sink->capture->finish_lane(Lane::a, state, "steps");
    if (closed) closed = sink->capture->finish(state, nullptr);
  } else if (state == TraceState::complete) {
    closed = sink->npy->finish();
  }
  if (!summary) return tl::unexpected(summary.error());
  if (!closed) return tl::unexpected(closed.error());
  if (cancelled) return exit_code(ErrorKind::interrupted);
  context.console.note(fmt::format("saved {} ({} rows of {})", options.output,
                                   side->prompt.ids.size(),
                                   side->model.checkpoint->description().vocabulary));
  return 0;
}

Result<int> run(const ScoreOptions& options, CommandContext& context) {
  InterruptGuard interrupt;
  return execute(options, context, interrupt);
}

}  // namespace

void declare_score(CLI::App& app, CommandContext& context) {
  auto options = bind_command<ScoreOptions>(app, context, &run);
  app.add_option("--model,-m", options->model, std::string(kModelHelp))->required();
  auto* ids = app.add_option("--ids", options->ids, "Token ids: 1,2,3");
  auto* file =
      app.add_option("--ids-file", options->ids_file, "JSON list of token ids; - for stdin");
  auto* text = app.add_option("--text", options->text, "Text to tokenise");
  ids->excludes(file)->excludes(text);
  file->excludes(text);
  app.add_flag("--no-special", options->no_special, "Do not add special tokens (BOS)");
  declare_chat(app, options->chat);
  app.add_option("--config", options->config.config, "Preset or JSON file")->capture_default_str();
  app.add_option("--set", options->config.sets, "knob=value; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--neighbour-prompts", options->neighbour_prompts,
                 "File with one neighbour prompt a line, for the knob neighbours");
  app.add_option("--taps", options->taps, "Kept in a capture besides logits: logits, layers, all")
      ->check(CLI::IsMember({"logits", "layers", "all"}))
      ->capture_default_str();
  app.add_option("--output,-o", options->output,
                 "FILE.npy (float32 [positions, vocabulary]) or FILE.h5")
      ->required();
  app.add_flag("--force", options->force, "Replace an existing file");
}

}  // namespace driftscope::cli
