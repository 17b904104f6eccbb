// SPDX-License-Identifier: Apache-2.0
// driftscope doctor: this installation, and what a model on the disk is.
#include <fmt/format.h>
#include <hdf5.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/command.h"
#include "app/cli/experiment.h"
#include "app/cli/gui_program.h"
#include "app/cli/model_report.h"
#include "app/cli/prompt_report.h"
#include "engine/backend/cuda/cuda_module.h"
#include "engine/config/envelope.h"
#include "kernels/base/isa.h"

namespace driftscope::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDocumentVersion = 1;

struct DoctorOptions {
  std::string model;
  PromptReportOptions prompt;
  bool json = false;
};

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

bool has_display() {
  for (const char* variable : {"DISPLAY", "WAYLAND_DISPLAY"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

Json environment_json() {
  const EnvironmentFacts facts = read_environment();
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return {{"driftscope_version", facts.version},
          {"compiler", facts.compiler},
          {"compiler_flags", facts.compiler_flags},
          {"cpu_model", text_or_null(facts.cpu_model)},
          {"cores", facts.cores},
          {"cpu_isa", facts.cpu_isa},
          {"avx512_bf16", has_avx512_bf16()},
          {"operating_system", text_or_null(facts.operating_system)},
          {"hdf5_version", fmt::format("{}.{}.{}", major, minor, release)},
          {"window", text_or_null(find_gui().value_or(""))},
          {"display", has_display()},
          {"cuda", cuda_summary()}};
}

std::string environment_text(const Json& json) {
  const auto text = [&](const char* key, const char* otherwise) {
    return json[key].is_string() ? json[key].get<std::string>() : std::string(otherwise);
  };
  return fmt::format(
      "driftscope {}\n"
      "  compiler       {} ({})\n"
      "  CPU            {}, {} cores, vector instructions: {}{}\n"
      "  system         {}\n"
      "  HDF5           {}\n"
      "  window         {}\n"
      "  display        {}\n"
      "  CUDA           {}\n",
      text("driftscope_version", ""), text("compiler", ""), text("compiler_flags", ""),
      text("cpu_model", "unknown"), json["cores"].dump(), text("cpu_isa", ""),
      json["avx512_bf16"] == true ? " (and AVX512-BF16: matmul_kernel=bf16_dot)" : "",
      text("operating_system", "unknown"), text("hdf5_version", ""),
      text("window", "driftscope-gui not found: plots and the window need it"),
      json["display"] == true ? "yes" : "none: plots still work, the window needs one",
      text("cuda", ""));
}

Result<int> doctor(const DoctorOptions& options, CommandContext& context) {
  const Json environment = environment_json();
  Json document{{"document", "driftscope.doctor"},
                {"version", kDocumentVersion},
                {"environment", environment},
                {"model", nullptr},
                {"prompt", nullptr}};
  std::string text = environment_text(environment);
  std::optional<LoadedModel> loaded;
  if (!options.model.empty()) {
    auto model = load_model(options.model, context.console);
    if (!model) {
      if (!options.json) (void)context.console.print(text);
      return tl::unexpected(model.error());
    }
    loaded = std::move(*model);
    document["model"] = model_report(*loaded);
    text += model_report_text(document["model"]);
  }
  auto prompt = prompt_report(options.prompt, loaded ? &*loaded : nullptr);
  if (!prompt) return tl::unexpected(prompt.error());
  if (!prompt->empty()) document["prompt"] = *prompt;
  text += *prompt;
  const std::string out =
      options.json ? document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text;
  if (auto printed = context.console.print(out); !printed) return tl::unexpected(printed.error());
  return 0;
}

}  // namespace

void declare_doctor(CLI::App& app, CommandContext& context) {
  auto options = bind_command<DoctorOptions>(app, context, &doctor);
  app.add_option("--model,-m", options->model, std::string(kModelHelp));
  declare_prompt_report(app, options->prompt);
  app.add_flag("--json", options->json, "One JSON document");
}

}  // namespace driftscope::cli
