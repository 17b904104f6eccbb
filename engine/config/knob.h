// SPDX-License-Identifier: Apache-2.0
// The knob registry: each setting is declared once; the command line, the JSON schema, the
// editors of the window, the envelope and the comparison of settings follow from it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/run_config.h"
#include "kernels/base/result.h"

namespace driftscope {

enum class KnobKind : std::uint8_t { choice, integer, real, boolean, text_list, integer_list };

// What changing this knob alone may do to the bits of the logits on the host backend.
enum class KnobEffect : std::uint8_t {
  changes_bits,        // the arithmetic or its order changes
  changes_with_batch,  // only where the matmul policy is shape_dependent: it changes the rows in
                       // flight or the shape of a matmul, and so the plan
  changes_choice,      // logits stay the same for equal tokens; which token is taken changes
  none_expected,       // promised not to change a bit (threads, instruction set)
};

struct KnobSpec {
  std::string_view id;     // "matmul_policy"
  std::string_view group;  // "precision", "matmul", "attention", "norm", "batch", "execution", …
  std::string_view title;  // for people: "Matmul policy"
  std::string_view help;   // one or two sentences
  KnobKind kind = KnobKind::choice;
  std::vector<std::string_view> choices;      // for KnobKind::choice
  double minimum = 0.0;                       // for numbers, inclusive
  double maximum = 0.0;                       // for numbers, inclusive
  bool power_of_two = false;                  // for integers
  std::vector<std::string_view> host_values;  // values the host honours; empty: all of them
  std::vector<std::string_view> cuda_values;  // values the CUDA backend honours; empty: all
  KnobEffect effect = KnobEffect::changes_bits;
  // Assignments of both sides under which the effect shows, separated by spaces; empty: any.
  // "attention=split_kv_count" says that attention_splits is read in that mode only.
  std::string_view effect_base;
  std::string (*get)(const RunConfig&) = nullptr;  // as text, round-trips with set
  Result<void> (*set)(RunConfig&, std::string_view text) = nullptr;  // range is checked before
};

[[nodiscard]] std::span<const KnobSpec> knob_registry();
[[nodiscard]] const KnobSpec* find_knob(std::string_view id);
[[nodiscard]] std::string_view name_of(KnobEffect effect);
[[nodiscard]] std::string_view name_of(KnobKind kind);

// Sets one knob from text. Errors (usage): unknown knob (with the nearest names), unknown value
// (with the list), out of range (with the range).
[[nodiscard]] Result<void> set_knob(RunConfig& config, std::string_view id, std::string_view text);
// "knob=value"
[[nodiscard]] Result<void> set_knob_assignment(RunConfig& config, std::string_view assignment);
[[nodiscard]] std::string get_knob(const RunConfig& config, const KnobSpec& knob);

// Every knob as typed JSON, in the order of the registry; reads back to an equal RunConfig.
[[nodiscard]] nlohmann::ordered_json config_to_json(const RunConfig& config);
// Unknown keys, wrong types and values are usage errors that name `where`. "preset" may name a
// preset to start from; "name" is kept for display.
[[nodiscard]] Result<RunConfig> config_from_json(const nlohmann::ordered_json& json,
                                                 std::string_view where);

// Knobs whose value differs.
struct KnobDifference {
  std::string id;
  std::string a;
  std::string b;
  friend bool operator==(const KnobDifference&, const KnobDifference&) = default;
};
[[nodiscard]] std::vector<KnobDifference> config_difference(const RunConfig& a, const RunConfig& b);

// Checks that the backend honours every value and that knobs fit together.
// Errors: engine, naming the knob and the backend.
[[nodiscard]] Result<void> check_config(const RunConfig& config);

// For people: "bf16-invariant", or "bf16-invariant + neighbours=7, threads=2" where knobs were set
// on top of the preset that the configuration is named after (at most three; then their number). A
// name that is no preset stays as it is.
[[nodiscard]] std::string config_label(const RunConfig& config);

struct Preset {
  std::string_view name;
  std::string_view help;
  RunConfig (*make)();
};
[[nodiscard]] std::span<const Preset> presets();
// A preset name, or the path of a JSON file. Errors: usage (unknown preset, with the list),
// malformed (the file).
[[nodiscard]] Result<RunConfig> load_config(std::string_view name_or_path);

}  // namespace driftscope
