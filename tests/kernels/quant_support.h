// SPDX-License-Identifier: Apache-2.0
// A quantised matrix that owns its memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/matmul/matmul.h"
#include "kernels/quant/quantise.h"
#include "tests/kernels/operation_support.h"

namespace driftscope::testing {

// Different sizes, so that groups and rows have different scales.
[[nodiscard]] inline std::vector<float> random_weights(std::int64_t count, std::int64_t seed) {
  Values values(static_cast<std::uint64_t>(seed));
  std::vector<float> w = values.uniform(count, 1.0F);
  for (std::size_t i = 0; i < w.size(); ++i) {
    if (i % 37 == 0) w[i] *= 8.0F;
    if (i % 53 < 20) w[i] *= 0.125F;
  }
  return w;
}

class QuantisedMatrix {
 public:
  QuantisedMatrix(const QuantSpec& spec, Dtype dtype, const void* data, std::int64_t rows,
                  std::int64_t columns, Parallel& parallel)
      : m_rows(rows), m_columns(columns) {
    const QuantLayout layout = quant_layout(spec, rows, columns);
    m_codes.resize(layout.code_bytes);
    m_scales.resize(layout.scale_count);
    m_zeros.resize(layout.zero_bytes);
    const QuantTarget target{.codes = m_codes.data(),
                             .scales = m_scales.data(),
                             .zeros = m_zeros.empty() ? nullptr : m_zeros.data()};
    m_view = quantised_view(spec, layout, target);
    EXPECT_FALSE(quantise_matrix(spec, dtype, data, rows, columns, target, parallel));
  }
  QuantisedMatrix(const QuantSpec& spec, Dtype dtype, const void* data, std::int64_t rows,
                  std::int64_t columns)
      : QuantisedMatrix(spec, dtype, data, rows, columns, serial()) {}
  QuantisedMatrix(const QuantSpec& spec, const std::vector<float>& w, std::int64_t rows,
                  std::int64_t columns)
      : QuantisedMatrix(spec, Dtype::f32, w.data(), rows, columns) {}
  QuantisedMatrix(const QuantisedMatrix&) = delete;
  QuantisedMatrix& operator=(const QuantisedMatrix&) = delete;

  [[nodiscard]] const std::vector<std::uint8_t>& codes() const { return m_codes; }
  [[nodiscard]] const std::vector<float>& scales() const { return m_scales; }
  [[nodiscard]] const std::vector<std::uint8_t>& zeros() const { return m_zeros; }
  [[nodiscard]] WeightView weight() const {
    return {.data = m_codes.data(),
            .dtype = Dtype::f32,
            .rows = m_rows,
            .columns = m_columns,
            .quantised = m_view};
  }
  // The weights as they count, [rows, columns].
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> result(static_cast<std::size_t>(m_rows * m_columns));
    for (std::int64_t row = 0; row < m_rows; ++row) {
      dequantise_row(m_view, row, 0, m_columns, result.data() + row * m_columns);
    }
    return result;
  }
  [[nodiscard]] double scale_of(std::int64_t row, std::int64_t column) const {
    const std::int64_t group = m_view.group > 0 ? column / m_view.group : 0;
    return double{m_scales[static_cast<std::size_t>(row * m_view.scale_stride + group)]};
  }

 private:
  static Parallel& serial() {
    static SerialParallel parallel;
    return parallel;
  }
  std::int64_t m_rows;
  std::int64_t m_columns;
  std::vector<std::uint8_t> m_codes;
  std::vector<float> m_scales;
  std::vector<std::uint8_t> m_zeros;
  QuantisedView m_view;
};

}  // namespace driftscope::testing
