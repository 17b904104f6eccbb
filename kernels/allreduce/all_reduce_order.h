// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace driftscope {

// What each means is in all_reduce.h.
enum class AllReduceOrder : std::uint8_t { one_shot, ring, tree };

}  // namespace driftscope
