// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/reference/reference_taps.h"

#include <algorithm>
#include <limits>

namespace driftscope::reference {

void Taps::begin(TapLevel level, std::int64_t rows) {
  if (level != m_level) {
    m_level = level;
    m_specs = tap_specs(m_model, level);
    m_offsets.clear();
    m_row_width = 0;
    for (const TapSpec& spec : m_specs) {
      m_offsets.push_back(m_row_width);
      m_row_width += spec.width;
    }
  }
  m_rows = level == TapLevel::logits ? 0 : rows;
  m_values.assign(static_cast<std::size_t>(m_rows * m_row_width),
                  std::numeric_limits<float>::quiet_NaN());
}

void Taps::record(Operation operation, std::int64_t layer, const std::vector<double>& x) {
  if (m_rows == 0) return;
  const std::string_view name = name_of(operation);
  const auto found = std::find_if(m_specs.begin(), m_specs.end(), [&](const TapSpec& spec) {
    return spec.layer == layer && spec.operation == name;
  });
  if (found == m_specs.end()) return;
  const std::int64_t offset = m_offsets[static_cast<std::size_t>(found - m_specs.begin())];
  const double* source = x.data() + x.size() - static_cast<std::size_t>(m_rows * found->width);
  for (std::int64_t row = 0; row < m_rows; ++row, source += found->width) {
    std::transform(source, source + found->width, m_values.begin() + row * m_row_width + offset,
                   [](double value) { return static_cast<float>(value); });
  }
}

std::span<const TensorTap> Taps::row(std::int64_t index) {
  if (m_rows == 0) return {};
  m_taps.clear();
  const float* values = m_values.data() + index * m_row_width;
  for (std::size_t i = 0; i < m_specs.size(); ++i) {
    m_taps.push_back(
        {.layer = m_specs[i].layer,
         .operation = m_specs[i].operation,
         .values = {values + m_offsets[i], static_cast<std::size_t>(m_specs[i].width)}});
  }
  return m_taps;
}

}  // namespace driftscope::reference
