// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/rotary_tables.h"

#include <algorithm>

namespace driftscope {

void RotaryTables::grow(std::int64_t positions) {
  if (m_model.learned_positions || positions <= m_short.positions) return;
  constexpr std::int64_t kLeast = 256;
  const std::int64_t wanted =
      std::max(positions, std::min(std::max(2 * m_short.positions, kLeast), m_model.max_positions));
  const double factor = m_model.rope_scaling.attention_factor;
  m_short = make_rope_table(m_model.inverse_frequencies(), wanted, m_dtype, factor);
  if (is_long(wanted)) {
    m_long = make_rope_table(m_model.inverse_frequencies(false, true), wanted, m_dtype, factor);
  }
  if (m_model.local_rope_theta) {
    m_local = make_rope_table(m_model.inverse_frequencies(true), wanted, m_dtype,
                              m_model.local_rope_scaling.attention_factor);
  }
}

}  // namespace driftscope
