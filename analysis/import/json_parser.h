// SPDX-License-Identifier: Apache-2.0
// From text to the nodes of a JsonDocument. Internal to analysis/import.
#pragma once

#include <cstddef>
#include <string_view>

#include "analysis/import/json_document.h"

namespace driftscope {

// Fills an emptied document with the value at the front of `text`; returns the bytes it took with
// the space after it. Errors: malformed, "byte N: what".
class JsonParser {
 public:
  [[nodiscard]] static Result<std::size_t> run(JsonDocument& target, std::string_view text);

 private:
  class State;
};

}  // namespace driftscope
