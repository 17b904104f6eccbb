// SPDX-License-Identifier: Apache-2.0
// driftscope export: tables and pages by ourselves, plots by driftscope-gui without a display.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "analysis/capture/capture.h"
#include "analysis/report/documents.h"
#include "app/cli/command.h"
#include "app/cli/compare_policy.h"
#include "app/cli/gui_program.h"
#include "app/cli/output_file.h"

namespace driftscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kPlotFormats{"png", "svg", "pdf"};

struct ExportOptions {
  std::string file;
  std::string format;
  std::string output;
  std::string plot = "overview";
  std::string size = "1600x1100";
  int scale = 1;
  std::string theme = "light";
  bool force = false;
  PolicyOptions policy;
};

bool is_plot_format(std::string_view name) {
  return std::find(kPlotFormats.begin(), kPlotFormats.end(), name) != kPlotFormats.end();
}

// Writes PATH.part, then renames: a full disk leaves no half file behind.
Result<void> write_whole(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  const auto failure = [&] {
    const int reason = errno;
    std::remove(part.c_str());
    return fail(ErrorKind::output,
                fmt::format("{}: cannot write ({}); check the path and the free space", path,
                            std::strerror(reason)));
  };
  std::FILE* file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) return failure();
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return failure();
  if (std::rename(part.c_str(), path.c_str()) != 0) return failure();
  return {};
}

Result<int> export_plot(const ExportOptions& options) {
  const std::string part = options.output + ".part";
  auto code = run_gui({"--render", options.file, "--plot", options.plot, "--format", options.format,
                       "--size", options.size, "--scale", fmt::format("{}", options.scale),
                       "--theme", options.theme, "-o", part});
  if (!code) return code;
  if (*code != 0) {
    std::remove(part.c_str());
    return *code;  // the child has said why
  }
  if (std::rename(part.c_str(), options.output.c_str()) != 0) {
    return fail(ErrorKind::output,
                fmt::format("{}: cannot write ({})", options.output, std::strerror(errno)));
  }
  return 0;
}

Result<int> export_document(const ExportOptions& options) {
  const ExportFormat* format = find_export_format(options.format);
  auto policy = make_policy(options.policy);
  if (!policy) return tl::unexpected(policy.error());
  auto reader = CaptureReader::open(options.file);
  if (!reader) return tl::unexpected(reader.error());
  auto comparison = compare_capture(**reader, *policy);
  if (!comparison) return tl::unexpected(comparison.error());
  if (auto written = write_whole(options.output, format->write(**comparison, {})); !written) {
    return tl::unexpected(written.error());
  }
  return 0;
}

Result<int> run(const ExportOptions& options, CommandContext& context) {
  if (!is_plot_format(options.format) && find_export_format(options.format) == nullptr) {
    std::string names;
    for (const ExportFormat& format : export_formats()) names += fmt::format("{}, ", format.name);
    return fail(ErrorKind::usage,
                fmt::format("--to: \"{}\"; give one of {}png, svg, pdf", options.format, names));
  }
  if (auto target = check_target(options.output, options.force); !target) {
    return tl::unexpected(target.error());
  }
  auto exit_code = is_plot_format(options.format) ? export_plot(options) : export_document(options);
  if (exit_code && *exit_code == 0) context.console.note(fmt::format("saved {}", options.output));
  return exit_code;
}

}  // namespace

void declare_export(CLI::App& app, CommandContext& context) {
  auto options = bind_command<ExportOptions>(app, context, &run);
  app.add_option("file", options->file, "Capture")->required();
  app.add_option("--to", options->format, "csv, json, jsonl, html, png, svg or pdf")->required();
  app.add_option("--output,-o", options->output, "File to write")->required();
  app.add_option("--plot", options->plot, "For png, svg, pdf: which plot, or overview for all")
      ->capture_default_str();
  app.add_option("--size", options->size, "For png, svg, pdf: WIDTHxHEIGHT in pixels, 200 to 5000")
      ->capture_default_str();
  app.add_option("--scale", options->scale,
                 "For png: draws larger, N pixels for each of --size both ways, 1 to 4")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  app.add_option("--theme", options->theme, "For png, svg, pdf: light or dark")
      ->check(CLI::IsMember({"light", "dark"}))
      ->capture_default_str();
  app.add_flag("--force", options->force, "Replace an existing file");
  declare_policy(app, options->policy);
}

}  // namespace driftscope::cli
