// SPDX-License-Identifier: Apache-2.0
// The table of knobs. To add one: a field in RunConfig, a row in knob_rows_*.cpp, and the code that
// honours it.
#include "engine/config/knob.h"
#include "engine/config/knob_rows.h"

namespace driftscope {
namespace {

std::vector<KnobSpec> build_registry() {
  using namespace knob_rows;
  std::vector<KnobSpec> knobs;
  knobs.reserve(96);
  add_precision(knobs);
  add_quantisation(knobs);
  add_matmul(knobs);
  add_attention(knobs);
  add_norm(knobs);
  add_batch(knobs);
  add_parallel(knobs);
  add_execution(knobs);
  add_sampling(knobs);
  set_cuda_values(knobs);
  return knobs;
}

}  // namespace

std::span<const KnobSpec> knob_registry() {
  static const std::vector<KnobSpec> registry = build_registry();
  return registry;
}

}  // namespace driftscope
