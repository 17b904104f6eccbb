// SPDX-License-Identifier: Apache-2.0
// driftscope inspect: what is in a capture.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "analysis/capture/capture.h"
#include "analysis/compare/imported_side.h"
#include "analysis/report/documents.h"
#include "app/cli/command.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

struct InspectOptions {
  std::string file;
  std::optional<std::int64_t> step;
  bool json = false;
  bool verify = false;
  bool plans = false;
};

std::string piece_text(const CaptureHeader& header, TokenId id) {
  const auto at = static_cast<std::size_t>(id.value);
  if (id.value < 0 || at >= header.pieces.size()) return {};
  return fmt::format(" \"{}\"", escape_for_display(header.pieces[at]));
}

// The lane's tokens are named by text, and ids are places in the capture's own list.
bool is_interned(const CaptureReader& reader) {
  const CaptureLaneInfo* lane = reader.lane(Lane::a);
  const auto side = lane == nullptr ? std::nullopt : imported_side(lane->lane.envelope_json);
  return side && side->interned;
}

std::string overview(const InspectOptions& options, const CaptureReader& reader) {
  const CaptureHeader& header = reader.header();
  std::error_code code;
  const auto bytes = std::filesystem::file_size(options.file, code);
  std::string out = fmt::format(
      "{}\n  format         driftscope-capture {}, {} bytes, {}, created {}\n", options.file,
      reader.format_version(), bytes, trace_state_name(reader.state()), header.created);
  if (is_interned(reader)) {
    out +=
        fmt::format("  vocabulary     not known; {} tokens are listed, by text (ids: interned)\n",
                    header.vocabulary);
  } else {
    out += fmt::format("  vocabulary     {}{}\n", header.vocabulary,
                       header.pieces.empty() ? "" : " (with token pieces)");
  }
  out += fmt::format("  prompt         {} ids{}\n", header.prompt_a.size(),
                     header.prompt_text.empty()
                         ? ""
                         : fmt::format(": \"{}\"", escape_for_display(header.prompt_text)));
  if (header.prompt_b != header.prompt_a) {
    out += fmt::format("  prompt of B    {} ids, other than A's\n", header.prompt_b.size());
  }
  out += fmt::format("  taps           {}\n", header.taps.size());
  if (!header.routes.layers.empty()) {
    out += fmt::format("  routes         {} layers, {} of {} experts per token\n",
                       header.routes.decisions(), header.routes.chosen, header.routes.experts);
  }
  for (const CaptureLaneInfo& lane : reader.lanes()) {
    out += fmt::format("  lane {:<9} {} of {} steps, {}{}, {}\n", lane_name(lane.lane.lane),
                       lane.steps_complete, lane.lane.steps, trace_state_name(lane.state),
                       lane.stop.empty() ? "" : fmt::format(" (ended: {})", lane.stop),
                       lane.full_rows ? "full logits rows" : "top-K only");
  }
  return out;
}

// "  layer 7: experts 3 (0.61), 5 (0.39), margin 0.0004"
std::string routes_text(const RouteSpec& spec, const RouteRow& routes) {
  std::string out;
  const auto chosen = static_cast<std::size_t>(spec.chosen);
  for (std::size_t i = 0; i < spec.decisions(); ++i) {
    out += fmt::format("  layer {:>3}: experts", spec.layers[i]);
    for (std::size_t j = i * chosen; j < (i + 1) * chosen; ++j) {
      out += fmt::format("{} {} ({:.4g})", j == i * chosen ? "" : ",", routes.experts[j],
                         routes.weights[j]);
    }
    out += fmt::format(", margin {:.4g}\n", routes.margins[i]);
  }
  return out;
}

Result<std::string> plans_text(const CaptureReader& reader) {
  std::string out;
  for (const CaptureLaneInfo& lane : reader.lanes()) {
    auto plans = reader.plans(lane.lane.lane);
    if (!plans) return tl::unexpected(plans.error());
    out += fmt::format("plans of lane {}{}\n", lane_name(lane.lane.lane),
                       plans->empty() ? ": none are kept in this file" : "");
    for (const std::string& plan : *plans) {
      out += fmt::format("  {}\n", escape_for_display(plan));
    }
  }
  return out;
}

Result<std::string> step_text(const CaptureReader& reader, std::int64_t step) {
  std::string out;
  const bool interned = is_interned(reader);
  for (const CaptureLaneInfo& lane : reader.lanes()) {
    if (step >= lane.steps_complete) continue;
    auto top = reader.top(lane.lane.lane, step);
    if (!top) return tl::unexpected(top.error());
    out += fmt::format("lane {} step {}\n", lane_name(lane.lane.lane), step);
    for (std::size_t rank = 0; rank < top->size() && rank < 10; ++rank) {
      const RankedToken& entry = (*top)[rank];
      const std::string id = interned ? "" : fmt::format(" {:>8}", entry.token.value);
      out += fmt::format("  {:>3}{} {:>14}{}\n", rank + 1, id, entry.logit,
                         piece_text(reader.header(), entry.token));
    }
    if (reader.header().routes.layers.empty()) continue;
    auto routes = reader.routes(lane.lane.lane, step);
    if (!routes) return tl::unexpected(routes.error());
    out += routes_text(reader.header().routes, routes->row());
  }
  if (out.empty()) {
    return fail(
        ErrorKind::usage,
        fmt::format("--step {}: no lane has that step; see: driftscope inspect FILE", step));
  }
  return out;
}

Result<int> run(const InspectOptions& options, CommandContext& context) {
  if (options.step && *options.step < 0) {
    return fail(ErrorKind::usage, fmt::format("--step: {}; give 0 or more", *options.step));
  }
  auto reader = CaptureReader::open(options.file);
  if (!reader) return tl::unexpected(reader.error());
  std::string out;
  if (options.json) {
    auto document = inspect_document(**reader, options.step);
    if (!document) return tl::unexpected(document.error());
    out = *document + "\n";
  } else {
    out = overview(options, **reader);
    if (options.plans) {
      auto text = plans_text(**reader);
      if (!text) return tl::unexpected(text.error());
      out += *text;
    }
    if (options.step) {
      auto text = step_text(**reader, *options.step);
      if (!text) return tl::unexpected(text.error());
      out += *text;
    }
  }
  if (options.verify) {
    auto rows = (*reader)->verify();
    if (!rows) return tl::unexpected(rows.error());
    context.console.note(fmt::format("verified {} stored rows: every CRC-32C agrees", *rows));
  }
  if (auto printed = context.console.print(out); !printed) return tl::unexpected(printed.error());
  return 0;
}

}  // namespace

void declare_inspect(CLI::App& app, CommandContext& context) {
  auto options = bind_command<InspectOptions>(app, context, &run);
  app.add_option("file", options->file, "Capture")->required();
  app.add_option("--step", options->step, "Show the best tokens of every lane at this step");
  app.add_flag("--plans", options->plans, "Show the order of sums that each lane really used");
  app.add_flag("--verify", options->verify, "Check the CRC-32C of every stored row");
  app.add_flag("--json", options->json, "One JSON document");
}

}  // namespace driftscope::cli
