// SPDX-License-Identifier: Apache-2.0
// What stands behind "|", by family. To add a filter: a function and its row in one of the tables.
#pragma once

#include <span>
#include <string_view>

#include "engine/text/jinja/machine.h"

namespace driftscope::jinja {

struct FilterRow {
  std::string_view name;
  FilterFunction function;
};

[[nodiscard]] std::span<const FilterRow> text_filters();
[[nodiscard]] std::span<const FilterRow> number_filters();
[[nodiscard]] std::span<const FilterRow> list_filters();
[[nodiscard]] std::span<const FilterRow> choice_filters();  // map, select, sort and the like

}  // namespace driftscope::jinja
