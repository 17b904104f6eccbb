// SPDX-License-Identifier: Apache-2.0
// driftscope fingerprint and doctor.
#include <fmt/format.h>
#include <hdf5.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/experiment.h"
#include "app/cli/gui_program.h"
#include "app/cli/prompt_report.h"
#include "engine/backend/cuda/cuda_module.h"
#include "engine/config/envelope.h"
#include "engine/model/description_text.h"
#include "kernels/base/isa.h"

namespace driftscope::cli {
namespace {

using Json = nlohmann::ordered_json;

struct FingerprintOptions {
  std::string model;
  ConfigOptions config{.config = "bf16-invariant", .sets = {}};
  std::string against;
  bool json = false;
};

Result<EnvelopeFacts> fingerprint_facts(const FingerprintOptions& options, const Console& console) {
  EnvelopeFacts facts;
  auto config = make_config(options.config);
  if (!config) return tl::unexpected(config.error());
  facts.config = std::move(*config);
  if (options.model.empty()) return facts;
  auto model = load_model(options.model, console);
  if (!model) return tl::unexpected(model.error());
  facts.model_sha256 = model->sha256;
  facts.stored_quantisation = model->checkpoint->quantisation().method;
  if (model->tokenizer) facts.tokenizer_sha256 = model->tokenizer->sha256();
  facts.chat_template_sha256 = model->chat_template_sha256;
  return facts;
}

std::string lines_of(const Json& json) {
  std::string out;
  for (const auto& [key, value] : json.items()) {
    out += fmt::format("{:<34} {}\n", key,
                       value.is_null()     ? std::string("unknown")
                       : value.is_string() ? value.get<std::string>()
                                           : value.dump());
  }
  return out;
}

Result<int> print_difference(const FingerprintOptions& options, const Json& fingerprint,
                             CommandContext& context) {
  auto text = read_text_file(options.against);
  if (!text) return tl::unexpected(text.error());
  const auto other = Json::parse(*text, nullptr, false);
  if (!other.is_object()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: not a fingerprint; write one with: driftscope fingerprint --json",
                            options.against));
  }
  const auto differences = fingerprint_difference(other, fingerprint);
  std::string out = differences.empty() ? "fingerprints are equal\n" : "";
  for (const auto& entry : differences) {
    out += fmt::format("{}: {} -> {}\n", entry.field, entry.a, entry.b);
  }
  if (auto printed = context.console.print(out); !printed) return tl::unexpected(printed.error());
  return differences.empty() ? 0 : 1;
}

Result<int> fingerprint(const FingerprintOptions& options, CommandContext& context) {
  auto facts = fingerprint_facts(options, context.console);
  if (!facts) return tl::unexpected(facts.error());
  const Json json = make_fingerprint(*facts, read_environment());
  if (!options.against.empty()) return print_difference(options, json, context);
  const std::string out = options.json ? json.dump(2) + "\n" : lines_of(json);
  if (auto printed = context.console.print(out); !printed) return tl::unexpected(printed.error());
  return 0;
}

struct DoctorOptions {
  std::string model;
  PromptReportOptions prompt;
};

std::string environment_report() {
  const EnvironmentFacts facts = read_environment();
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  const auto gui = find_gui();
  const char* display = std::getenv("DISPLAY");
  const char* wayland = std::getenv("WAYLAND_DISPLAY");
  const bool has_display =
      (display != nullptr && *display != '\0') || (wayland != nullptr && *wayland != '\0');
  return fmt::format(
      "driftscope {}\n"
      "  compiler       {} ({})\n"
      "  CPU            {}, {} cores, vector instructions: {}{}\n"
      "  system         {}\n"
      "  HDF5           {}.{}.{}\n"
      "  window         {}\n"
      "  display        {}\n"
      "  CUDA           {}\n",
      facts.version, facts.compiler, facts.compiler_flags, facts.cpu_model, facts.cores,
      facts.cpu_isa, has_avx512_bf16() ? " (and AVX512-BF16: matmul_kernel=bf16_dot)" : "",
      facts.operating_system, major, minor, release,
      gui.value_or("driftscope-gui not found: plots and the window need it"),
      has_display ? "yes" : "none: plots still work, the window needs one", cuda_summary());
}

// "bf16", or what the files hold where it is not one plain type: "Q4_K 24, Q6_K 5, F32 11".
std::string stored_as(const ModelCheckpoint& checkpoint) {
  if (!checkpoint.weight_formats().empty()) return checkpoint.weight_formats();
  const std::string& method = checkpoint.quantisation().method;
  return method.empty() ? std::string(dtype_name(checkpoint.description().stored_dtype)) : method;
}

std::string model_report(const LoadedModel& model) {
  const ModelDescription& d = model.checkpoint->description();
  std::string out = fmt::format(
      "model {}\n"
      "  architecture   {}: {} layers, hidden {}, {} heads ({} kv) of {}, feed-forward {}, "
      "vocabulary {}\n"
      "  parameters     {} stored as {}{}\n"
      "  positions      {}\n"
      "  tokenizer      {}\n"
      "  chat template  {}\n",
      model.path, d.model_type, d.layers, d.hidden, d.heads, d.kv_heads, d.head_dim, d.intermediate,
      d.vocabulary, d.parameters(), stored_as(*model.checkpoint),
      d.tied_embeddings ? ", output tied to the embedding" : "", positions_text(d),
      model.tokenizer
          ? fmt::format("{}, {} ids", model.tokenizer->kind(), model.tokenizer->vocabulary_size())
          : "none: prompts as --prompt-ids",
      model.chat_template_sha256.empty() ? "none" : "sha256 " + model.chat_template_sha256);
  if (d.moe.experts > 0) {
    out += fmt::format("  experts        {} of width {} in {} layers, {} chosen per token{}{}\n",
                       d.moe.experts, d.moe.intermediate, route_spec(d).decisions(), d.moe.chosen,
                       d.moe.renormalise ? ", weights renormalised" : "",
                       d.moe.shared_intermediate > 0
                           ? fmt::format(", a shared expert of width {}", d.moe.shared_intermediate)
                           : "");
  }
  for (const CheckpointFile& file : model.files) {
    out += fmt::format("  {:<14} {} bytes, sha256 {}\n", file.path.filename().string(), file.bytes,
                       file.sha256);
  }
  return out;
}

Result<int> doctor(const DoctorOptions& options, CommandContext& context) {
  std::string out = environment_report();
  std::optional<LoadedModel> loaded;
  if (!options.model.empty()) {
    auto model = load_model(options.model, context.console);
    if (!model) {
      (void)context.console.print(out);
      return tl::unexpected(model.error());
    }
    loaded = std::move(*model);
    out += model_report(*loaded);
  }
  auto prompt = prompt_report(options.prompt, loaded ? &*loaded : nullptr);
  if (!prompt) return tl::unexpected(prompt.error());
  out += *prompt;
  if (auto printed = context.console.print(out); !printed) return tl::unexpected(printed.error());
  return 0;
}

}  // namespace

void declare_fingerprint(CLI::App& app, CommandContext& context) {
  auto options = bind_command<FingerprintOptions>(app, context, &fingerprint);
  app.add_option(
      "--model,-m", options->model,
      "Directory of the checkpoint, or a hub id in the local cache: org/name[@revision]");
  app.add_option("--config", options->config.config, "Preset or JSON file")->capture_default_str();
  app.add_option("--set", options->config.sets, "knob=value; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--against", options->against,
                 "Another fingerprint (JSON): print what differs, exit 1 if any");
  app.add_flag("--json", options->json, "One JSON document");
}

void declare_doctor(CLI::App& app, CommandContext& context) {
  auto options = bind_command<DoctorOptions>(app, context, &doctor);
  app.add_option(
      "--model,-m", options->model,
      "Directory of the checkpoint, or a hub id in the local cache: org/name[@revision]");
  declare_prompt_report(app, options->prompt);
}

}  // namespace driftscope::cli
