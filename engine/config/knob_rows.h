// SPDX-License-Identifier: Apache-2.0
// How a row of the knob table is written. Private to engine/config.
#pragma once

#include "engine/config/knob.h"
#include "engine/config/knob_codec.h"

namespace driftscope::knob_rows {

using codec::Names;

// `Access` is a captureless lambda that returns a reference to the field.
template <auto Access>
using FieldOf = std::remove_cvref_t<decltype(Access(std::declval<RunConfig&>()))>;

[[nodiscard]] inline Result<void> refused() {
  return fail(ErrorKind::usage, "");  // set_knob() writes the message: it knows the table
}

template <auto Access>
std::string get_field(const RunConfig& config) {
  using Field = FieldOf<Access>;
  const Field& field = Access(const_cast<RunConfig&>(config));
  if constexpr (std::is_enum_v<Field>) {
    return codec::to_text_enum(field);
  } else if constexpr (std::is_same_v<Field, int>) {
    return codec::to_text(std::int64_t{field});
  } else {
    return codec::to_text(field);
  }
}

template <auto Access>
Result<void> set_field(RunConfig& config, std::string_view text) {
  using Field = FieldOf<Access>;
  Field& field = Access(config);
  bool read = false;
  if constexpr (std::is_enum_v<Field>) {
    read = codec::from_text_enum(text, field);
  } else if constexpr (std::is_same_v<Field, bool>) {
    read = codec::from_text_bool(text, field);
  } else if constexpr (std::is_arithmetic_v<Field>) {
    read = codec::from_text(text, field);
  } else {
    read = codec::from_text_list(text, field);
  }
  if (!read) return refused();
  return {};
}

struct Row {
  std::string_view id, group, title, help;
};
struct Reach {  // which values the host honours, and what a change does
  KnobEffect effect = KnobEffect::changes_bits;
  std::string_view base;
  std::vector<std::string_view> host = {};
};

template <auto Access>
KnobSpec make(KnobKind kind, const Row& row, const Reach& reach) {
  KnobSpec spec;
  spec.id = row.id;
  spec.group = row.group;
  spec.title = row.title;
  spec.help = row.help;
  spec.kind = kind;
  spec.host_values = reach.host;
  spec.effect = reach.effect;
  spec.effect_base = reach.base;
  spec.get = &get_field<Access>;
  spec.set = &set_field<Access>;
  return spec;
}

template <auto Access>
KnobSpec choice(const Row& row, const Reach& reach, std::vector<std::string_view> only = {}) {
  KnobSpec spec = make<Access>(KnobKind::choice, row, reach);
  if (only.empty()) {
    for (const auto& entry : Names<FieldOf<Access>>::table) only.push_back(entry.first);
  }
  spec.choices = std::move(only);
  return spec;
}
template <auto Access>
KnobSpec number(KnobKind kind, const Row& row, double minimum, double maximum, const Reach& reach,
                bool power_of_two = false) {
  KnobSpec spec = make<Access>(kind, row, reach);
  spec.minimum = minimum;
  spec.maximum = maximum;
  spec.power_of_two = power_of_two;
  return spec;
}

// A field of RunConfig by its path.
#define DRIFTSCOPE_FIELD(path) \
  [](RunConfig & c) -> auto& { return c.path; }

constexpr auto kInteger = KnobKind::integer;
constexpr auto kReal = KnobKind::real;
constexpr double kLargest = 9007199254740991.0;  // 2^53 - 1: exact in every JSON reader

// The groups, in the order in which people see them.
void add_precision(std::vector<KnobSpec>& knobs);
void add_quantisation(std::vector<KnobSpec>& knobs);
void add_matmul(std::vector<KnobSpec>& knobs);
void add_attention(std::vector<KnobSpec>& knobs);
void add_norm(std::vector<KnobSpec>& knobs);
void add_batch(std::vector<KnobSpec>& knobs);
void add_parallel(std::vector<KnobSpec>& knobs);
void add_execution(std::vector<KnobSpec>& knobs);
void add_sampling(std::vector<KnobSpec>& knobs);
// Fills cuda_values of every row.
void set_cuda_values(std::vector<KnobSpec>& knobs);

}  // namespace driftscope::knob_rows
