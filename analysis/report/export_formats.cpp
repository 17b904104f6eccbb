// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "analysis/report/documents.h"

namespace driftscope {
namespace {

using Images = std::span<const ReportImage>;

constexpr std::array kFormats{
    ExportFormat{"csv", ".csv", "one row per step, every metric",
                 [](const Comparison& comparison, Images) { return csv_document(comparison); }},
    ExportFormat{"json", ".json", "the document of compare --json, with every step",
                 [](const Comparison& comparison, Images) {
                   return compare_document(comparison, {.per_step = true}) + "\n";
                 }},
    ExportFormat{"jsonl", ".jsonl", "the summary, then one line per step",
                 [](const Comparison& comparison, Images) { return jsonl_document(comparison); }},
    ExportFormat{"html", ".html", "one page with verdict, plots and tables", html_document},
};

}  // namespace

std::span<const ExportFormat> export_formats() { return kFormats; }

const ExportFormat* find_export_format(std::string_view name) {
  const auto found =
      std::find_if(kFormats.begin(), kFormats.end(),
                   [name](const ExportFormat& format) { return format.name == name; });
  return found == kFormats.end() ? nullptr : &*found;
}

}  // namespace driftscope
