// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/step_output.h"

namespace driftscope {

KeptRow::KeptRow(const StepOutput& output)
    : m_logits(output.logits.begin(), output.logits.end()),
      m_taps(output.taps.begin(), output.taps.end()),
      m_routes(output.routes),
      m_rest(output) {
  m_rest.logits = {};
  m_rest.taps = {};
  m_rest.routes = {};
  for (const TensorTap& tap : output.taps) {
    m_tap_values.insert(m_tap_values.end(), tap.values.begin(), tap.values.end());
  }
  std::size_t offset = 0;
  for (TensorTap& tap : m_taps) {
    tap.values = std::span(m_tap_values).subspan(offset, tap.values.size());
    offset += tap.values.size();
  }
}

StepOutput KeptRow::output() const {
  StepOutput output = m_rest;
  output.logits = m_logits;
  output.taps = m_taps;
  output.routes = m_routes.row();
  return output;
}

}  // namespace driftscope
