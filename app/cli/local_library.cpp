// SPDX-License-Identifier: Apache-2.0
#include "app/cli/local_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/experiment.h"
#include "engine/config/knob.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

struct Row {
  std::string_view name;
  std::string_view preset;
  std::string_view knob;  // "knob=value" on top; empty: the preset itself
  std::string_view description;
};

constexpr std::array kRows{
    Row{"f32", "reference-f32", "", "f32 throughout, sums in f64"},
    Row{"bf16", "bf16-invariant", "", "bf16 weights, activations and KV cache"},
    Row{"f16", "f16-invariant", "", "f16 weights, activations and KV cache"},
    Row{"bf16-eager", "hf-eager-like", "", "bf16, every operation rounds, bf16 RoPE table"},
    Row{"bf16-by-shape", "bf16-shape-dependent", "", "bf16, plans chosen by the rows in flight"},
    Row{"bf16-fused", "vllm-default-like", "", "bf16, fused projections, plans by shape"},
    Row{"int8", "bf16-invariant", "quantisation=int8_w8a16",
        "bf16 with int8 weights, one scale per output"},
    Row{"int8-w8a8", "bf16-invariant", "quantisation=int8_w8a8",
        "bf16 with int8 weights and int8 activations"},
    Row{"fp8", "bf16-invariant", "quantisation=fp8_channel",
        "bf16 with fp8-e4m3 weights, one scale per output"},
    Row{"fp8-tensor", "bf16-invariant", "quantisation=fp8_tensor",
        "bf16 with fp8-e4m3 weights, one scale per matrix"},
    Row{"int4", "bf16-invariant", "quantisation=int4_symmetric",
        "bf16 with int4 weights in groups, symmetric"},
    Row{"int4-asymmetric", "bf16-invariant", "quantisation=int4_asymmetric",
        "bf16 with int4 weights in groups, with zero points"},
    Row{"kv-fp8", "bf16-invariant", "kv_dtype=fp8_e4m3", "bf16 with an fp8-e4m3 KV cache"},
    Row{"kv-int8", "bf16-invariant", "kv_dtype=int8", "bf16 with an int8 KV cache"},
    Row{"bf16-logits", "bf16-invariant", "logits_dtype=bf16", "bf16, logits rounded to bf16"},
};

LibraryEntry entry_of(const Row& row) {
  LibraryEntry entry{
      .name = std::string(row.name), .description = std::string(row.description), .config = {}};
  const auto preset = std::find_if(presets().begin(), presets().end(),
                                   [&](const Preset& p) { return p.name == row.preset; });
  assert(preset != presets().end());
  entry.config = preset->make();
  if (!row.knob.empty()) {
    [[maybe_unused]] const auto set = set_knob_assignment(entry.config, row.knob);
    assert(set);
  }
  return entry;
}

Result<LibraryEntry> entry_named(const std::string& name) {
  for (const Row& row : kRows) {
    if (row.name == name) return entry_of(row);
  }
  auto config = load_config(name);
  if (!config) {
    Error error = config.error();
    std::string names;
    for (const Row& row : kRows) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
    if (error.kind == ErrorKind::usage)
      error.message += fmt::format("; or one of the library: {}", names);
    return tl::unexpected(std::move(error));
  }
  return LibraryEntry{
      .name = name, .description = config_label(*config), .config = std::move(*config)};
}

Result<void> add_file(const std::string& file, std::vector<LibraryEntry>& library) {
  auto text = read_text_file(file);
  if (!text) return tl::unexpected(text.error());
  const std::string where = escape_for_display(file);
  const auto json = nlohmann::ordered_json::parse(*text, nullptr, false);
  if (!json.is_array() || json.empty()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: expected a JSON list of configurations, each an object with a "
                            "\"name\", a \"preset\" and knobs",
                            where));
  }
  std::size_t number = 0;
  for (const auto& one : json) {
    ++number;
    auto config = config_from_json(one, fmt::format("{}: configuration {}", where, number));
    if (!config) return tl::unexpected(config.error());
    if (!one.contains("name")) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: configuration {} has no \"name\"", where, number));
    }
    library.push_back(
        {.name = config->name, .description = config_label(*config), .config = *config});
  }
  return {};
}

}  // namespace

std::vector<LibraryEntry> default_library() {
  std::vector<LibraryEntry> library;
  for (const Row& row : kRows) library.push_back(entry_of(row));
  return library;
}

Result<std::vector<LibraryEntry>> make_library(const std::vector<std::string>& names,
                                               const std::string& file) {
  if (names.empty() && file.empty()) return default_library();
  std::vector<LibraryEntry> library;
  for (const std::string& name : names) {
    auto entry = entry_named(name);
    if (!entry) return tl::unexpected(entry.error());
    library.push_back(std::move(*entry));
  }
  if (!file.empty()) {
    if (auto added = add_file(file, library); !added) return tl::unexpected(added.error());
  }
  std::set<std::string_view> seen;
  for (const LibraryEntry& entry : library) {
    if (!seen.insert(entry.name).second) {
      return fail(ErrorKind::usage, fmt::format("the configuration \"{}\" is given twice",
                                                escape_for_display(entry.name)));
    }
  }
  return library;
}

}  // namespace driftscope::cli
