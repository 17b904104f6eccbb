// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_checks.h"

#include <fmt/format.h>

#include "analysis/responses/assertion_tally.h"
#include "app/cli/experiment.h"

namespace driftscope::cli {

Result<std::vector<Assertion>> load_checks(const std::string& path) {
  auto text = read_text_file(path);
  if (!text) return tl::unexpected(text.error());
  return read_assertions(*text, path);
}

CheckedSides check_sides(const std::vector<Assertion>& checks,
                         const std::vector<std::vector<Response>>& sides) {
  const CheckReport report = hold_checks(checks, sides);
  return {.json = check_report_json(report),
          .text = check_report_text(report),
          .exit_code = report.failed    ? 1
                       : report.unknown ? 3
                                        : 0};
}

std::string check_kinds_text() {
  std::string out =
      "{\"checks\": [{\"id\": \"total\", \"kind\": \"json_path_equals\", \"path\": \"$.total\", "
      "\"value\": 12.5}]}\n"
      "any check: where? (content, reasoning, tool_calls) tool? custom_ids? min_rate? fenced? "
      "negate?\n\n";
  for (const CheckKind& kind : check_kinds()) {
    out += fmt::format("{:<20} {:<26} {}\n", kind.name, kind.members, kind.meaning);
  }
  return out;
}

}  // namespace driftscope::cli
