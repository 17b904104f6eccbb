// SPDX-License-Identifier: Apache-2.0
// The post_processor of tokenizer.json for a single sequence: ids set before and after it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

struct PostProcessor {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;

  [[nodiscard]] static Result<PostProcessor> read(const nlohmann::json& description,
                                                  const std::string& name);
};

}  // namespace driftscope
