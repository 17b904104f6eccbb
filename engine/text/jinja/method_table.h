// SPDX-License-Identifier: Apache-2.0
// Methods of Python's types that change nothing.
#pragma once

#include <span>
#include <string_view>

#include "engine/text/jinja/value.h"

namespace driftscope::jinja {

using MethodFunction = Value (*)(Machine&, const Value& self, const Arguments&);

struct Method {
  std::string_view name;
  MethodFunction function;
};

[[nodiscard]] std::span<const Method> text_methods();
[[nodiscard]] std::span<const Method> text_question_methods();  // isdigit and the like, padding
[[nodiscard]] std::span<const Method> list_methods();
[[nodiscard]] std::span<const Method> mapping_methods();

}  // namespace driftscope::jinja
