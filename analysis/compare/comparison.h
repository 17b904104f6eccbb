// SPDX-License-Identifier: Apache-2.0
// The immutable snapshot of what two runs did: the only thing that reports and views read.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/metrics/metric.h"
#include "engine/trace/trace.h"
#include "kernels/base/types.h"

namespace driftscope {

enum class Tier : std::uint8_t { bitwise, tolerance, token, semantic, different, inconclusive };
enum class FlipCause : std::uint8_t {
  tie_break,
  near_tie,
  excess_drift,
  input,
  sampler,
  unexplained
};
enum class Severity : std::uint8_t { info, notice, warning, error };
[[nodiscard]] std::string_view name_of(Tier tier);
[[nodiscard]] std::string_view name_of(FlipCause cause);
[[nodiscard]] std::string_view name_of(Severity severity);
[[nodiscard]] std::optional<Tier> tier_from_name(std::string_view name);
[[nodiscard]] std::optional<FlipCause> flip_cause_from_name(std::string_view name);
[[nodiscard]] std::optional<Severity> severity_from_name(std::string_view name);

// One step of the pair (a, b_forced): both computed after the same tokens.
struct StepComparison {
  std::int64_t step = 0;
  TokenId token_a{};               // emitted by A
  TokenId choice_b{};              // what B would emit after A's tokens
  std::optional<TokenId> token_b;  // emitted by the free lane at this step
  StepMetrics metrics;
  std::vector<RankFlip> flips;  // pairs within the union of both top-K
  bool flipped = false;         // choice_b differs from token_a
  std::int64_t rows_a = 0;      // in flight, M of the call that computed the row; 0: not known
  std::int64_t rows_b = 0;
  std::optional<Draw> draw_a;  // behind A's choice and choice_b; empty: greedy, or not known
  std::optional<Draw> draw_b;
};

struct Divergence {
  std::int64_t step = 0;
  std::optional<TokenId> token_a;  // empty: this side had ended
  std::optional<TokenId> token_b;
  // Figures that are not known (no row pair at this step, token outside both top-K lists) are NaN.
  double margin_a = 0.0;  // top-1 minus top-2, each side's own row at this step
  double margin_b = 0.0;
  double gap_a = 0.0;        // A's logit of token_a minus A's logit of token_b
  double gap_b = 0.0;        // B's logit of token_b minus B's logit of token_a
  double drift = 0.0;        // centred_rms at this step
  double usual_drift = 0.0;  // median centred_rms of the run
  // p95 over the run's other steps of |d_top1 - d_top2|: the run's pairwise drift; NaN if there are
  // none
  double p95_pair_drift = 0.0;
  double drift_excess = 0.0;
  double tie_ulps = 0.0;
  std::int64_t rows_a = 0;  // in flight at this step; 0: not known
  std::int64_t rows_b = 0;
  double rounding_bound =
      0.0;  // a-priori bound of the drift that the differing knobs explain; 0: none
  // Drift against the noise that a reference lane measures; NaN without one. It takes the place of
  // the bound where it is known.
  double noise_ratio = std::numeric_limits<double>::quiet_NaN();
  FlipCause cause = FlipCause::unexplained;
  std::string reason;  // one sentence with the figures
};

// Over the steps with a defined value (NaN is left out and not counted). Percentiles interpolate
// linearly between order statistics (type 7 of Hyndman and Fan, as NumPy does). standard_error is
// that of the mean, sd / sqrt(count), as if steps were independent; NaN below two steps.
struct RunStatistic {
  std::string metric;
  std::int64_t count = 0;  // steps with a defined value
  double mean = 0.0, standard_error = 0.0, sum = 0.0;
  double p50 = 0.0, p90 = 0.0, p95 = 0.0, p99 = 0.0, p999 = 0.0, maximum = 0.0, minimum = 0.0;
  std::int64_t argmax_step = -1;  // the first step with the maximum
};

struct Finding {
  std::string id;  // "first_divergence", "drift_without_flip", "nan_in_logits", …
  Severity severity = Severity::info;
  std::string text;      // a sentence with figures
  std::string evidence;  // compact JSON object
};

struct TierCheck {
  Tier tier = Tier::different;
  std::optional<bool> holds;  // empty: not checked
  std::string detail;
};

struct FieldDifference {
  std::string field;  // "knob.matmul_policy", "model_sha256", "runtime.threads"
  std::string a;
  std::string b;
};

// How far two lanes differ at one place of the network, per step.
struct TapDrift {
  TapSpec spec;
  std::vector<double> max_abs;  // [steps so far]
  std::vector<double> rms;
  std::vector<double> relative_rms;  // rms of the difference / rms of A's row; 0 where both are 0
  std::vector<double> max_ulp;
};

// A router chose other experts in B than in A for the row of one step.
struct RouteFlip {
  std::int64_t step = 0;
  std::int32_t layer = 0;
  std::vector<std::int32_t> only_a;  // chosen by A and not by B, rising
  std::vector<std::int32_t> only_b;  // as many
  // Router logit of the last chosen expert minus the largest of the others, each side's own.
  double margin_a = 0.0;
  double margin_b = 0.0;
};

// Mixtures of experts: which experts the rows of the steps went to.
struct RouteComparison {
  RouteSpec spec;                     // no layers: dense, or the sides' routers cannot be compared
  std::int64_t decisions = 0;         // one per step and layer: a against b_forced
  std::vector<RouteFlip> flips;       // by step, then layer
  std::int64_t decisions_free = 0;    // a against b, as long as both were fed the same tokens
  std::vector<RouteFlip> flips_free;  // by step, then layer
};

struct LaneView {
  Lane lane = Lane::a;
  TraceState state = TraceState::partial;
  std::vector<TokenId> tokens;  // emitted
  std::string stop;             // "steps", "end_of_sequence", …
};

// Named, shown and settable thresholds of the verdict and of causes.
struct ComparePolicy {
  std::int64_t top_k = 10;
  double near_tie_ulps = 4.0;          // margin within this many tie_ulps
  double near_tie_drift_factor = 2.0;  // or within this times the run's p95 pairwise drift
  double excess_factor = 4.0;          // drift_excess of this and more is out of the ordinary
  // The tolerance tier: all must hold at every step. A negative value switches a limit off.
  double max_abs_tolerance = 1e-3;
  double kl_tolerance = 1e-4;
};

struct ControlResult {
  bool present = false;
  std::int64_t steps = 0;
  double max_abs = 0.0;
  bool bits_equal = false;
};

// Against the reference lane: the same weights in f64 throughout.
struct ReferenceResult {
  bool present = false;
  std::int64_t steps = 0;  // with both errors
  double error_a = 0.0;    // median centred_rms of A - reference; NaN without any
  double error_b = 0.0;
  // A rounding of the sides that the reference does not do, so that no noise ratio is known; else
  // empty.
  std::string shared_rounding;
};

// The drift between two checkpoints in two parts, where a reference lane of each is there: what the
// weights make (f64 over B's against f64 over A's), and what the arithmetic of each side makes
// (against f64 over its own weights).
struct DriftPart {
  double max_abs = 0.0;  // over all steps and entries
  double mean_kl = 0.0;  // over the steps, nat
  double drift = 0.0;    // median centred_rms
};
struct DriftSplit {
  std::int64_t steps = 0;  // 0: not known
  DriftPart weights, arithmetic_a, arithmetic_b;
};

struct TokenPiece {
  TokenId id{};
  std::string bytes;  // may be part of a UTF-8 character
};

// A side that was read from another program's file ("driftscope import"). Nothing is known of it
// but what is said here: no configuration, no times, no type of its logits.
struct ImportedSide {
  std::string format;         // "openai", "npy", …
  std::string values;         // "logit", "log_probability" or "not_stated"
  bool listed = false;        // the file lists some tokens of each step; else rows are whole
  bool interned = false;      // ids are places in /vocab, not the tokenizer's
  bool scored = false;        // the rows stand at the places of a text that was given to the model
  bool tokens_given = false;  // else the token of a step is the best of its row
  bool lossy = false;         // tokens whose bytes were lost: they cannot be told apart
  std::string prompt_text;    // empty: not known
};

struct Comparison {
  std::int64_t generation = 0;  // rises with each snapshot of one run
  TraceState state = TraceState::partial;
  std::int64_t vocabulary = 0;
  std::int64_t planned_steps = 0;
  std::vector<TokenId> prompt_a;
  std::vector<TokenId> prompt_b;
  std::string prompt_text;
  std::string model_a;  // for display
  std::string model_b;
  std::string config_a_name, config_b_name;
  std::string config_a_json, config_b_json;  // every knob
  std::string command;                       // the exact command to repeat the run
  ComparePolicy policy;
  std::vector<std::shared_ptr<const StepComparison>> steps;
  std::vector<LaneView> lanes;
  std::optional<Divergence> first_divergence;  // free lanes
  std::optional<Divergence> first_flip;        // forced lane
  std::int64_t tokens_equal = 0;               // leading equal tokens of the free lanes
  std::vector<RunStatistic> statistics;        // one per metric
  std::vector<TapDrift> taps;
  RouteComparison routes;
  std::vector<FieldDifference> envelope_difference;
  std::vector<Finding> findings;
  std::vector<TierCheck> tiers;
  Tier verdict = Tier::inconclusive;  // the strongest tier that holds
  std::string verdict_text;           // one line
  ControlResult control;
  ReferenceResult reference;
  DriftSplit split;
  // Text of every token that occurs in the tokens or top-K lists, if the vocabulary is known;
  // sorted by id.
  std::vector<TokenPiece> pieces;
  std::optional<ImportedSide> imported_a, imported_b;  // empty: a run of this program
  // Some rows are lists of a few tokens: what needs the whole vocabulary is not known.
  [[nodiscard]] bool listed() const {
    return (imported_a && imported_a->listed) || (imported_b && imported_b->listed);
  }
  // Both sides scored a given text: the choice at each place is compared, not what was written.
  [[nodiscard]] bool scored() const {
    return imported_a && imported_b && imported_a->scored && imported_b->scored;
  }
  [[nodiscard]] const TokenPiece* piece(TokenId id) const;
};
using ComparisonPointer = std::shared_ptr<const Comparison>;

}  // namespace driftscope
