// SPDX-License-Identifier: Apache-2.0
// driftscope run: one prompt, two configurations, lane by lane.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <optional>

#include "analysis/capture/capture.h"
#include "analysis/capture/experiment_json.h"
#include "analysis/compare/comparison_builder.h"
#include "analysis/compare/verdict_block.h"
#include "analysis/report/documents.h"
#include "analysis/report/events.h"
#include "app/cli/command.h"
#include "app/cli/compare_policy.h"
#include "app/cli/experiment.h"
#include "app/cli/interrupt.h"
#include "app/cli/output_file.h"
#include "app/cli/prompt_notes.h"
#include "app/cli/run_sink.h"
#include "engine/config/envelope.h"
#include "engine/config/knob.h"

namespace driftscope::cli {
namespace {

struct RunOptions {
  std::string model;
  std::string model_b;
  PromptOptions prompt;
  ConfigOptions a{.config = "bf16-invariant", .sets = {}};
  ConfigOptions b{.config = "", .sets = {}};
  std::int64_t steps = 64;
  std::string taps = "logits";
  bool control = true;
  bool reference = false;
  std::string neighbour_prompts;
  std::string output;
  bool force = false;
  std::string keep = "full";
  int deflate = 0;
  bool events = false;
  bool json = false;
  PolicyOptions policy;
};

Result<TapLevel> tap_level(const std::string& name) {
  if (name == "logits") return TapLevel::logits;
  if (name == "layers") return TapLevel::layers;
  if (name == "all") return TapLevel::all;
  return fail(ErrorKind::usage, fmt::format("--taps: \"{}\"; give logits, layers or all", name));
}

Result<void> check_output(const RunOptions& options) {
  std::error_code code;
  const std::filesystem::path path(options.output);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), code);
  if (auto target = check_target(options.output, options.force); !target) return target;
  const std::string part = options.output + ".part";
  if (!options.force && std::filesystem::is_regular_file(part, code) &&
      std::filesystem::file_size(part, code) > 0) {
    return fail(ErrorKind::output,
                fmt::format("{}: a run that was killed left it, or one is writing it; save it with "
                            "`driftscope recover`, or --force to replace it",
                            part));
  }
  return {};
}

struct Sides {
  Side a;
  Side b;
};

Result<Side> make_side(const RunOptions& options, const ConfigOptions& config,
                       const std::string& model, const Console& console, const Side* share) {
  Side side;
  auto made = make_config(config);
  if (!made) return tl::unexpected(made.error());
  side.config = std::move(*made);
  if (share != nullptr && share->model.path == model) {
    side.model = share->model;
  } else {
    auto loaded = load_model(model, console);
    if (!loaded) return tl::unexpected(loaded.error());
    side.model = std::move(*loaded);
  }
  auto prompt = make_prompt(options.prompt, side.model);
  if (!prompt) return tl::unexpected(prompt.error());
  side.prompt = std::move(*prompt);
  auto neighbours =
      make_neighbours(side.config.neighbours, options.neighbour_prompts, side.model, side.prompt);
  if (!neighbours) return tl::unexpected(neighbours.error());
  side.neighbours = std::move(*neighbours);
  return side;
}

// The capture is not made yet: nothing is left behind.
Result<void> go_on(const std::stop_token& stop) {
  if (!stop.stop_requested()) return {};
  return fail(ErrorKind::interrupted, "interrupted while loading; nothing was written");
}

Result<Sides> make_sides(const RunOptions& options, const Console& console,
                         const std::stop_token& stop) {
  note_prompt_naming_a_file(options.prompt, console);
  ConfigOptions config_b = options.b;
  if (config_b.config.empty()) config_b.config = options.a.config;
  auto a = make_side(options, options.a, options.model, console, nullptr);
  if (!a) return tl::unexpected(a.error());
  if (auto going = go_on(stop); !going) return tl::unexpected(going.error());
  const std::string& model_b = options.model_b.empty() ? options.model : options.model_b;
  auto b = make_side(options, config_b, model_b, console, &*a);
  if (!b) return tl::unexpected(b.error());
  if (auto going = go_on(stop); !going) return tl::unexpected(going.error());
  auto neighbours =
      check_neighbour_file(options.neighbour_prompts, {&a->config, &b->config}, "--set-b");
  if (!neighbours) return tl::unexpected(neighbours.error());
  if (a->model.checkpoint->description().vocabulary !=
      b->model.checkpoint->description().vocabulary) {
    return fail(ErrorKind::inconclusive,
                fmt::format("{} has a vocabulary of {}, {} of {}: their logits cannot be compared "
                            "entry by entry; give checkpoints of one family",
                            a->model.path, a->model.checkpoint->description().vocabulary,
                            b->model.path, b->model.checkpoint->description().vocabulary));
  }
  return Sides{.a = std::move(*a), .b = std::move(*b)};
}

Result<CaptureOptions> capture_options(const RunOptions& options) {
  CaptureOptions capture;
  capture.deflate = options.deflate;
  if (options.keep == "full") return capture;
  std::int64_t k = 0;
  if (options.keep.starts_with("topk:")) {
    const auto* begin = options.keep.data() + 5;
    const auto* end = options.keep.data() + options.keep.size();
    if (std::from_chars(begin, end, k).ptr == end && k >= 1 && k <= 1000000) {
      capture.keep = KeepMode::topk;
      capture.top_k = k;
      return capture;
    }
  }
  return fail(ErrorKind::usage, fmt::format("--keep: \"{}\"; give full or topk:K", options.keep));
}

Result<int> finish(const RunOptions& options, CommandContext& context, const Comparison& comparison,
                   bool interrupted) {
  int code = verdict_exit_code(comparison, options.policy);
  if (comparison.control.present && !comparison.control.bits_equal) code = 5;
  if (interrupted) code = 130;
  Result<void> printed;
  if (options.events) {
    printed = context.console.print(done_event(comparison, options.output, code) + "\n");
  } else if (options.json) {
    printed = context.console.print(compare_document(comparison, {}) + "\n");
  } else {
    printed = context.console.print(verdict_block(comparison, context.console.colour_stdout()));
  }
  if (!printed) return tl::unexpected(printed.error());
  context.console.note(fmt::format("saved {}", options.output));
  return code;
}

std::string repeatable_command(const CommandContext& context) {
  std::vector<std::string> words{"driftscope"};
  for (std::size_t i = 1; i < context.arguments.size(); ++i) {
    if (context.arguments[i] != "--events") words.push_back(context.arguments[i]);
  }
  return quote_command(words);
}

Result<int> execute(const RunOptions& options, CommandContext& context, InterruptGuard& interrupt) {
  if (options.steps < 1 || options.steps > 1000000) {
    return fail(ErrorKind::usage, fmt::format("--steps: {}; give 1 to 1000000", options.steps));
  }
  auto taps = tap_level(options.taps);
  if (!taps) return tl::unexpected(taps.error());
  auto policy = make_policy(options.policy);
  if (!policy) return tl::unexpected(policy.error());
  auto capture = capture_options(options);
  if (!capture) return tl::unexpected(capture.error());
  if (auto checked = check_output(options); !checked) return tl::unexpected(checked.error());
  auto sides = make_sides(options, context.console, interrupt.token());
  if (!sides) return tl::unexpected(sides.error());

  const ExperimentOptions experiment{.steps = options.steps,
                                     .taps = *taps,
                                     .command = repeatable_command(context),
                                     .control = options.control,
                                     .reference = options.reference};
  const std::string created = utc_now();
  ExperimentFacts facts = make_facts(sides->a, sides->b, experiment, created);
  std::vector<Lane> lanes{Lane::a, Lane::b, Lane::b_forced};
  if (experiment.control) lanes.push_back(Lane::control);
  // Where the weights differ, a reference of each side tells what of the drift they make.
  const bool reference_b = experiment.reference && sides->a.model.sha256 != sides->b.model.sha256;
  if (experiment.reference) lanes.push_back(Lane::reference);
  if (reference_b) lanes.push_back(Lane::reference_b);
  facts.lanes = lanes;
  const auto header = capture_header(facts, created, lanes);
  auto writer = CaptureWriter::create(options.output, header, *capture);
  if (!writer) return tl::unexpected(writer.error());

  RunSink sink(**writer, facts, *policy, options.events ? &context.console : nullptr, interrupt);
  if (auto begun = sink.begin(); !begun) return tl::unexpected(begun.error());
  ProgressLine bar(context.console);
  const auto progress = [&](const RunProgress& at) {
    if (options.events) {
      sink.progress(at.phase, at.done, at.total);
    } else {
      bar.update(at.phase, at.done, at.total);
    }
  };
  LockstepRequest request{.a = sides->a.lane_input(),
                          .b = sides->b.lane_input(),
                          .steps = options.steps,
                          .control = experiment.control,
                          .reference = experiment.reference,
                          .reference_b = reference_b,
                          .taps = *taps,
                          .decode_text = {}};
  if (auto tokenizer = sides->a.model.tokenizer) {
    request.decode_text = [tokenizer](const std::vector<TokenId>& ids) {
      return tokenizer->decode(ids, false);
    };
  }
  auto summary = run_lockstep(request, sink, progress, interrupt.token());
  bar.clear();
  if (!summary && !sink.has_rows()) {
    // A run that failed before its first row leaves nothing behind.
    writer->reset();
    std::error_code ignored;
    std::filesystem::remove(options.output + ".part", ignored);
    return tl::unexpected(summary.error());
  }
  auto comparison = sink.finish(summary);
  if (!comparison) return tl::unexpected(comparison.error());
  if (!summary) return tl::unexpected(summary.error());
  return finish(options, context, **comparison, summary->cancelled);
}

Result<int> run(const RunOptions& options, CommandContext& context) {
  InterruptGuard interrupt;
  auto code = execute(options, context, interrupt);
  if (!code && options.events) {
    (void)context.console.print(error_event(code.error()) + "\n");
  }
  return code;
}

}  // namespace

void declare_run(CLI::App& app, CommandContext& context) {
  auto options = bind_command<RunOptions>(app, context, &run);
  app.add_option("--model,--model-a,-m", options->model, std::string(kModelHelp))->required();
  app.add_option("--model-b", options->model_b, "Another checkpoint for side B");
  declare_prompt(app, options->prompt);
  app.add_option("--a", options->a.config, "Configuration A: preset or JSON file")
      ->capture_default_str();
  app.add_option("--b", options->b.config, "Configuration B: preset or JSON file; default: as A");
  app.add_option("--set-a", options->a.sets, "knob=value for A; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--set-b", options->b.sets, "knob=value for B; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--steps", options->steps, "Tokens to generate at most")->capture_default_str();
  app.add_option("--taps", options->taps, "What to keep besides logits: logits, layers, all")
      ->capture_default_str();
  app.add_flag(
      "--reference", options->reference,
      "Also run the checkpoint in f64 throughout: how far each side is from exact, and where the "
      "checkpoints differ, what the weights and what the arithmetic make of it (slow)");
  app.add_flag("--control,!--no-control", options->control,
               "Run A a second time; the default, --no-control switches it off");
  app.add_option(
      "--neighbour-prompts", options->neighbour_prompts,
      "File with one neighbour prompt a line, for the knob neighbours; default: built-in "
      "sentences");
  app.add_option("--output,-o", options->output, "Capture file to write")->required();
  app.add_flag("--force", options->force, "Replace an existing file");
  app.add_option("--keep", options->keep, "Rows to keep: full or topk:K")->capture_default_str();
  app.add_option("--deflate", options->deflate, "Compression of rows, 0 to 9")
      ->check(CLI::Range(0, 9))
      ->capture_default_str();
  app.add_flag("--events", options->events, "JSON Lines on stdout instead of the verdict block");
  app.add_flag("--json", options->json, "The comparison as one JSON document on stdout");
  declare_policy(app, options->policy);
}

}  // namespace driftscope::cli
