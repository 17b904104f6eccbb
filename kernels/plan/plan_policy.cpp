// SPDX-License-Identifier: Apache-2.0
#include "kernels/plan/plan_policy.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

namespace driftscope {

namespace {

constexpr std::array kPolicies = {PlanPolicy::invariant, PlanPolicy::shape_dependent,
                                  PlanPolicy::vendor};

// One row of the table: from `rows_up_to` rows in flight down to the row above it.
struct ShapeRow {
  std::int64_t rows_up_to;
  int split_k;  // where there are fewer than kNarrow outputs
  int lanes;    // 0: the lanes of the base plan
};

// Few rows and few outputs leave a GPU idle, so libraries cut K to make more blocks; with many rows
// the output tiles fill the machine, and a wider tile reduces each output over fewer lanes.
constexpr std::array<ShapeRow, 4> kShapeTable = {{
    {.rows_up_to = 1, .split_k = 8, .lanes = 0},
    {.rows_up_to = 8, .split_k = 4, .lanes = 0},
    {.rows_up_to = 64, .split_k = 2, .lanes = 0},
    {.rows_up_to = std::numeric_limits<std::int64_t>::max(), .split_k = 1, .lanes = 16},
}};

// More outputs make more blocks of their own: the split is halved from kNarrow outputs on, and
// again from kWide on. So fusing q, k and v, or gate and up, into one matmul can change its plan.
constexpr std::int64_t kNarrow = 256;
constexpr std::int64_t kWide = 1024;

int split_for_outputs(int split_k, std::int64_t n) {
  if (n >= kNarrow) split_k /= 2;
  if (n >= kWide) split_k /= 2;
  return std::max(1, split_k);
}

}  // namespace

std::string_view name_of(PlanPolicy value) {
  switch (value) {
    case PlanPolicy::invariant:
      return "invariant";
    case PlanPolicy::shape_dependent:
      return "shape_dependent";
    case PlanPolicy::vendor:
      return "vendor";
  }
  return "unknown";
}

std::optional<PlanPolicy> plan_policy_from_name(std::string_view name) {
  for (const PlanPolicy policy : kPolicies) {
    if (name_of(policy) == name) return policy;
  }
  return std::nullopt;
}

ReductionPlan matmul_plan(PlanPolicy policy, const ReductionPlan& base, std::int64_t m,
                          std::int64_t n, std::int64_t k) {
  assert(policy != PlanPolicy::vendor && "the vendor library picks its own plan");
  ReductionPlan plan = base;
  if (policy != PlanPolicy::shape_dependent) return plan;
  for (const ShapeRow& row : kShapeTable) {
    if (m > row.rows_up_to) continue;
    if (row.lanes != 0) plan.lanes = row.lanes;
    // A chunk shorter than one step of the lanes gains nothing from being split off.
    const std::int64_t chunks = std::max<std::int64_t>(1, k / plan.lanes);
    plan.split_k =
        static_cast<int>(std::min<std::int64_t>(split_for_outputs(row.split_k, n), chunks));
    break;
  }
  return plan;
}

}  // namespace driftscope
