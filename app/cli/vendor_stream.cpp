// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_stream.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "analysis/responses/pair_summary.h"
#include "analysis/responses/response_documents.h"
#include "analysis/responses/response_stream.h"
#include "app/cli/interrupt.h"
#include "app/cli/vendor_population.h"
#include "engine/backend/host/thread_pool.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

using Json = nlohmann::ordered_json;

// The lines of a value that stands inside of another, after the first.
std::string indented(std::string text, std::size_t columns) {
  const std::string gap(columns, ' ');
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    text.insert(at + 1, gap);
  }
  return text;
}

// Writes results as they come; after a failure (a closed pipe) nothing more, and it asks to stop.
class Output {
 public:
  Output(const Console& console, InterruptGuard& interrupt)
      : m_console(console), m_interrupt(interrupt) {}
  void print(std::string_view text) {
    if (m_failed) return;
    if (auto done = m_console.print(text); !done) {
      m_failed = done.error();
      m_interrupt.request_stop();
    }
  }
  [[nodiscard]] const std::optional<Error>& failed() const { return m_failed; }

 private:
  const Console& m_console;
  InterruptGuard& m_interrupt;
  std::optional<Error> m_failed;
};

Error interrupted(std::string_view what, std::size_t done, std::size_t total) {
  return {.kind = ErrorKind::interrupted,
          .message = fmt::format("interrupted: {} of {} {}", done, total, what),
          .detail = {}};
}

class LongFiles {
 public:
  LongFiles(LineSide a, LineSide b, const VendorStreamOptions& options, CommandContext& context,
            InterruptGuard& interrupt, Parallel& pool)
      : m_a(std::move(a)),
        m_b(std::move(b)),
        m_options(options),
        m_console(context.console),
        m_interrupt(interrupt),
        m_output(context.console, interrupt),
        m_pool(pool) {}

  Result<ReachedTier> compare() {
    const LinePairs pairs = pair_lines(m_a, m_b);
    note_repeated(pairs);
    std::size_t done = 0;
    {
      ProgressLine progress(m_console);
      if (m_options.json) m_output.print("{\n  \"pairs\": [");
      done = compare_lines(m_a, m_b, pairs, m_pool, stream(progress, "pairs"),
                           [&](PairedSides&& result) { take(std::move(result)); });
    }
    m_only_a.insert(m_only_a.end(), pairs.only_a.begin(), pairs.only_a.end());
    m_only_b.insert(m_only_b.end(), pairs.only_b.begin(), pairs.only_b.end());
    const bool all = done == pairs.pairs.size();
    m_options.json ? finish_json(pairs, all) : finish_text(pairs);
    if (m_output.failed()) return tl::unexpected(*m_output.failed());
    if (!all) return tl::unexpected(interrupted("pairs were compared", done, pairs.pairs.size()));
    return ReachedTier{.tier = reached(), .known = m_summary.known()};
  }

  Result<ReachedTier> compare_populations() {
    std::vector<SampleRecord> a, b;
    {
      ProgressLine progress(m_console);
      a = read_samples(m_a, m_pool, stream(progress, "answers of A"));
      b = read_samples(m_b, m_pool, stream(progress, "answers of B"));
    }
    if (m_interrupt.token().stop_requested()) {
      return tl::unexpected(interrupted("answers were read, nothing was compared",
                                        a.size() + b.size(),
                                        m_a.lines.lines.size() + m_b.lines.lines.size()));
    }
    const PopulationReport report = describe_populations(
        sample_sides(std::move(a), std::move(b)), m_options.permutations, m_options.seed, m_pool);
    m_output.print(m_options.json ? report.json.dump(2) + "\n" : report.text);
    if (m_output.failed()) return tl::unexpected(*m_output.failed());
    return reached_by(report.tier);
  }

 private:
  [[nodiscard]] bool alone() const { return !m_only_a.empty() || !m_only_b.empty(); }
  // Answers that only one side has were not compared.
  [[nodiscard]] Tier reached() const { return alone() ? Tier::inconclusive : m_summary.weakest(); }
  StreamOptions stream(ProgressLine& progress, const char* phase) const {
    return {.keep_steps = m_options.json && m_options.steps,
            .stop = m_interrupt.token(),
            .progress = [&progress, phase](std::int64_t done, std::int64_t total) {
              progress.update(phase, done, total);
            }};
  }

  void note_repeated(const LinePairs& pairs) const {
    if (!pairs.by_custom_id || pairs.repeated_a + pairs.repeated_b == 0) return;
    m_console.note(
        fmt::format("{} lines of A and {} of B repeat a custom_id; the second of an id "
                    "is \"id#2\" and is compared with the other side's second",
                    pairs.repeated_a, pairs.repeated_b));
  }

  void take(PairedSides&& result) {
    for (const AnswerPair& pair : result.pairs) {
      m_summary.add(pair);
      if (m_options.json) {
        Json entry = comparison_json(pair.comparison);
        entry["key"] = pair.key;
        m_output.print(fmt::format("{}\n    {}", m_summary.pairs() > 1 ? "," : "",
                                   indented(entry.dump(2), 4)));
      } else if (m_options.all) {
        m_output.print(fmt::format("[{}] {}\n", escape_for_display(pair.key),
                                   comparison_text(pair.comparison)));
      }
    }
    m_only_a.insert(m_only_a.end(), result.only_a.begin(), result.only_a.end());
    m_only_b.insert(m_only_b.end(), result.only_b.begin(), result.only_b.end());
  }

  void finish_json(const LinePairs& pairs, bool all) {
    const Json rest{{"only_a", m_only_a},
                    {"only_b", m_only_b},
                    {"repeated_custom_ids",
                     {{"a", pairs.by_custom_id ? pairs.repeated_a : 0},
                      {"b", pairs.by_custom_id ? pairs.repeated_b : 0}}},
                    {"summary", m_summary.json()},
                    {"complete", all},
                    {"verdict", std::string(name_of(reached()))}};
    // What follows the brace of a document of its own follows the list here.
    m_output.print(
        fmt::format("{}],{}\n", m_summary.pairs() > 0 ? "\n  " : "", rest.dump(2).substr(1)));
  }

  void finish_text(const LinePairs& pairs) {
    std::string text = m_summary.text();
    if (pairs.by_custom_id && pairs.repeated_a + pairs.repeated_b > 0) {
      text += fmt::format("repeated custom_ids: {} lines of A, {} of B\n", pairs.repeated_a,
                          pairs.repeated_b);
    }
    text += only_text("A", m_only_a) + only_text("B", m_only_b);
    if (!m_options.all && m_summary.pairs() > 0) {
      text += "every pair: --all, or --json\n";
    }
    m_output.print(text);
  }

  [[nodiscard]] std::string only_text(const char* side,
                                      const std::vector<std::string>& keys) const {
    std::string text;
    const std::size_t shown =
        m_options.all ? keys.size() : std::min(keys.size(), PairSummary::kListed);
    for (std::size_t i = 0; i < shown; ++i) {
      text += fmt::format("only in {}: {}\n", side, escape_for_display(keys[i]));
    }
    if (shown < keys.size()) {
      text += fmt::format("only in {}: {} more\n", side, keys.size() - shown);
    }
    return text;
  }

  LineSide m_a, m_b;
  VendorStreamOptions m_options;
  const Console& m_console;
  InterruptGuard& m_interrupt;
  Output m_output;
  Parallel& m_pool;
  PairSummary m_summary;
  std::vector<std::string> m_only_a, m_only_b;
};

std::optional<LineSide> lines_of(const VendorInput& input) {
  auto lines = find_response_lines(input.bytes(), input.reader(),
                                   [&input](std::string_view part) { input.forget(part); });
  if (!lines) return std::nullopt;
  return LineSide{.lines = std::move(*lines),
                  .name = input.name(),
                  .fetch = [&input](std::string_view line, std::string& buffer) {
                    return input.fetch(line, buffer);
                  }};
}

}  // namespace

Result<std::optional<ReachedTier>> compare_long_files(const VendorInput& a, const VendorInput& b,
                                                      const VendorStreamOptions& options,
                                                      CommandContext& context) {
  InterruptGuard interrupt;
  ThreadPool pool(options.threads);
  std::array<std::optional<LineSide>, 2> sides;
  const auto find = [&](std::size_t side, int) { sides[side] = lines_of(side == 0 ? a : b); };
  pool.run(sides.size(), find);
  auto& [side_a, side_b] = sides;
  if (!side_a || !side_b) return std::optional<ReachedTier>();
  if (side_a->lines.lines.size() <= kFewLines && side_b->lines.lines.size() <= kFewLines) {
    return std::optional<ReachedTier>();
  }
  LongFiles files(std::move(*side_a), std::move(*side_b), options, context, interrupt, pool);
  auto tier = options.population ? files.compare_populations() : files.compare();
  if (!tier) return tl::unexpected(tier.error());
  return std::optional<ReachedTier>(*tier);
}

}  // namespace driftscope::cli
