// SPDX-License-Identifier: Apache-2.0
// Where batch composition enters: real libraries choose a kernel from the shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/plan/reduction_plan.h"

namespace driftscope {

enum class PlanPolicy : std::uint8_t { invariant, shape_dependent, vendor };

[[nodiscard]] std::string_view name_of(PlanPolicy value);
[[nodiscard]] std::optional<PlanPolicy> plan_policy_from_name(std::string_view name);

// The plan for a matmul with M rows in flight, N outputs and K terms.
//  invariant:        `base`, whatever the shape is.
//  shape_dependent:  `base` with lanes and split_k replaced by a table over M (and K, N), modelled
//                    on what GPU libraries do: few rows need split-K to fill the machine, many do
//                    not. M = 1: split_k 4; 2 to 8: 2; 9 to 64: 1; above: 1 with 16 lanes; split_k
//                    never above K / lanes.
//  vendor:           the library picks (CUDA only); never reaches this function.
[[nodiscard]] ReductionPlan matmul_plan(PlanPolicy policy, const ReductionPlan& base,
                                        std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace driftscope
