// SPDX-License-Identifier: Apache-2.0
// driftscope compare: the verdict and the numbers of a capture, or of two.
#include <fmt/format.h>

#include "analysis/capture/capture.h"
#include "analysis/compare/imported_side.h"
#include "analysis/compare/verdict_block.h"
#include "analysis/report/documents.h"
#include "app/cli/command.h"
#include "app/cli/compare_policy.h"

namespace driftscope::cli {
namespace {

struct CompareOptions {
  std::string file;
  std::string other;
  std::string steps = "none";
  bool json = false;
  PolicyOptions policy;
};

// An import of one file has nothing to be compared with.
Result<void> check_two_sides(const CaptureReader& reader, const std::string& file) {
  const CaptureLaneInfo* a = reader.lane(Lane::a);
  const bool imported = a != nullptr && imported_side(a->lane.envelope_json).has_value();
  if (!imported || reader.lane(Lane::b) != nullptr) return {};
  return fail(ErrorKind::inconclusive,
              fmt::format("{} holds one side, imported from one file: name a second capture to "
                          "compare it with (driftscope compare {} OTHER.h5), or import both files "
                          "at once (driftscope import A B -o PAIR.h5)",
                          file, file));
}

Result<int> run(const CompareOptions& options, CommandContext& context) {
  auto policy = make_policy(options.policy);
  if (!policy) return tl::unexpected(policy.error());
  auto first = CaptureReader::open(options.file);
  if (!first) return tl::unexpected(first.error());
  Result<ComparisonPointer> comparison;
  if (options.other.empty()) {
    if (auto sides = check_two_sides(**first, options.file); !sides) {
      return tl::unexpected(sides.error());
    }
    comparison = compare_capture(**first, *policy);
  } else {
    auto second = CaptureReader::open(options.other);
    if (!second) return tl::unexpected(second.error());
    comparison = compare_captures(**first, **second, *policy);
  }
  if (!comparison) return tl::unexpected(comparison.error());
  const std::string text =
      options.json ? compare_document(**comparison, {.per_step = options.steps == "all"}) + "\n"
                   : verdict_block(**comparison, context.console.colour_stdout());
  if (auto printed = context.console.print(text); !printed) return tl::unexpected(printed.error());
  return verdict_exit_code(**comparison, options.policy);
}

}  // namespace

void declare_compare(CLI::App& app, CommandContext& context) {
  auto options = bind_command<CompareOptions>(app, context, &run);
  app.add_option("file", options->file, "Capture")->required();
  app.add_option("other", options->other, "Second capture: lane a of each is compared");
  app.add_option("--steps", options->steps, "With --json: none, or all for every step's metrics")
      ->check(CLI::IsMember({"none", "all"}))
      ->capture_default_str();
  app.add_flag("--json", options->json, "One JSON document");
  declare_policy(app, options->policy);
}

}  // namespace driftscope::cli
