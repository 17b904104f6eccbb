// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/reference/reference_rotations.h"

namespace driftscope::reference {

Rotations::Rotations(const ModelDescription& model) {
  if (model.learned_positions) return;
  m_global = set_of(model, false);
  if (model.local_rope_theta) m_local = set_of(model, true);
}

Rotations::Set Rotations::set_of(const ModelDescription& model, bool local) {
  const RopeScaling& scaling = local ? model.local_rope_scaling : model.rope_scaling;
  Set set;
  set.usual = {.inverse_frequencies = model.inverse_frequencies(local, false),
               .factor = scaling.attention_factor};
  if (scaling.kind == RopeScaling::Kind::longrope) {
    set.beyond = {.inverse_frequencies = model.inverse_frequencies(local, true),
                  .factor = scaling.attention_factor};
    set.longest = scaling.original_max_positions;
  }
  return set;
}

const Rotation& Rotations::of(bool local, std::int64_t length) const {
  const Set& set = local ? m_local : m_global;
  return set.longest > 0 && length > set.longest ? set.beyond : set.usual;
}

}  // namespace driftscope::reference
