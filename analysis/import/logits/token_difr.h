// SPDX-License-Identifier: Apache-2.0
// Token-DiFR's exchange format: {"config": {"model", "temperature", …}, "samples":
// [{"prompt_token_ids": […], "outputs": [{"token_ids": […]}]}]}. Ids only, no logprobs.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/import/response.h"
#include "kernels/base/result.h"

namespace driftscope {

[[nodiscard]] bool is_token_difr(std::string_view bytes);
// One response per sample, its outputs as choices. Errors: malformed.
[[nodiscard]] Result<std::vector<Response>> read_token_difr(std::string_view bytes,
                                                            std::string_view name);

}  // namespace driftscope
