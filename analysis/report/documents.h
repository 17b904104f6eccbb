// SPDX-License-Identifier: Apache-2.0
// What a comparison looks like outside: JSON, CSV, JSON Lines and an HTML page. Field names are
// stable; numbers read back to the same bits whatever the locale; NaN and infinities are strings.
// The JSON documents have schemas in resources/schema/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/capture/capture.h"
#include "analysis/compare/comparison.h"
#include "kernels/base/result.h"

namespace driftscope {

struct CompareDocumentOptions {
  bool per_step = false;  // with "per_step": every step's tokens, metrics and rankings
};
// `compare --json`: one document, indented, without a line break at its end. compare.schema.json.
[[nodiscard]] std::string compare_document(const Comparison& comparison,
                                           const CompareDocumentOptions& options);

// One row per step; a header with units, as in "max_abs [logit]" ("max_abs [nat]" of log
// probabilities). A field is empty where its value is not known. RFC 4180, lines end in LF. The
// columns are described in analysis/capture/FORMAT.md.
[[nodiscard]] std::string csv_document(const Comparison& comparison);

// The first line is the document of compare_document with "kind":"comparison", then one line per
// step with "kind":"step".
[[nodiscard]] std::string jsonl_document(const Comparison& comparison);

struct ReportImage {
  std::string title;
  std::string png;  // the bytes of the file
};
// One page that needs nothing else: verdict, metadata and what differs, findings, token ribbons,
// plots (drawn as SVG, and the given images), rankings at the first divergence. Light and dark.
[[nodiscard]] std::string html_document(const Comparison& comparison,
                                        std::span<const ReportImage> images);

// `inspect --json`: what is in a capture, and the rankings of one step of every lane if asked.
// inspect.schema.json. Errors: those of the reader; usage (no such step in any lane).
[[nodiscard]] Result<std::string> inspect_document(const CaptureReader& reader,
                                                   std::optional<std::int64_t> step);

struct ExportFormat {
  std::string_view name;    // of `export --to`
  std::string_view suffix;  // of the file, with its dot
  std::string_view help;
  std::string (*write)(const Comparison& comparison, std::span<const ReportImage> images);
};
// The formats that need no plots drawn elsewhere.
[[nodiscard]] std::span<const ExportFormat> export_formats();
[[nodiscard]] const ExportFormat* find_export_format(std::string_view name);

}  // namespace driftscope
