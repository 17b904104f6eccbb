// SPDX-License-Identifier: Apache-2.0
// The argument `attribute` of filters: "name", "a.b", "0.name" or an index.
#pragma once

#include <string>
#include <vector>

#include "engine/text/jinja/machine.h"

namespace driftscope::jinja {

class MemberPath {
 public:
  explicit MemberPath(const Value& attribute);  // None: the value itself
  // `otherwise` stands for what is undefined on the way, where it is given.
  [[nodiscard]] Value of(Machine& machine, Value value, const Value* otherwise = nullptr) const;

 private:
  std::vector<Value> m_keys;
};

// Texts compare without case in sorting filters, unless asked otherwise.
[[nodiscard]] Value without_case(const Value& value);

}  // namespace driftscope::jinja
