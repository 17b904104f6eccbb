// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_figures.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/capture/json_text.h"
#include "analysis/responses/figure_rules.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {

Result<int> print_figures(std::string_view text, std::string_view name, bool json,
                          CommandContext& context) {
  const auto figures = read_reported_figures(text, name);
  if (!figures) return tl::unexpected(figures.error());
  const std::vector<Finding> findings = judge_figures(*figures);
  std::string out;
  if (json) {
    using Json = nlohmann::ordered_json;
    Json list = Json::array();
    for (const Finding& finding : findings) {
      list.push_back({{"id", finding.id},
                      {"severity", name_of(finding.severity)},
                      {"text", json_text::from_bytes(finding.text)},
                      {"evidence", json_text::embedded(finding.evidence)}});
    }
    out = json_text::dump({{"source", json_text::from_bytes(figures->source)},
                           {"model", json_text::from_bytes(figures->model)},
                           {"figures", std::move(list)}},
                          2) +
          "\n";
  } else {
    out = fmt::format(
        "{}: reported figures{}, no answers: what they carry\n", escape_for_display(name),
        figures->model.empty() ? "" : fmt::format(" ({})", escape_for_display(figures->model)));
    for (const Finding& finding : findings) {
      out += fmt::format("  {:<8} {}\n", name_of(finding.severity), finding.text);
    }
  }
  if (auto printed = context.console.print(out); !printed) return tl::unexpected(printed.error());
  return 0;
}

}  // namespace driftscope::cli
