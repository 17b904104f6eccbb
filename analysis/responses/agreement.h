// SPDX-License-Identifier: Apache-2.0
// In how many places every two of many sequences agree: the Hamming kernel in whole numbers, so
// that sums over it are exact whatever their order. Internal to analysis/responses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/responses/populations.h"
#include "kernels/base/parallel.h"

namespace driftscope {

class AgreementMatrix {
 public:
  // Sequences shorter than the longest are padded by a symbol that equals itself only. At least one
  // sequence; cost: one comparison for each pair and each place at which not all agree.
  AgreementMatrix(std::span<const SymbolSequence* const> sequences, Parallel& parallel);

  [[nodiscard]] std::size_t size() const { return m_size; }
  // Of the longest sequence, at least 1: what a sequence agrees with itself in.
  [[nodiscard]] std::int64_t length() const { return m_length; }
  // Over all partners, itself included.
  [[nodiscard]] std::int64_t row_sum(std::size_t row) const { return m_row_sums[row]; }
  // Values of `members` a caller makes room for: size() rounded up, the rest 0.
  [[nodiscard]] std::size_t padded_size() const { return m_stride; }
  // Over all pairs of members of each set, themselves included; `sets` holds `count` vectors of
  // padded_size() values, 1 for a member and else 0.
  [[nodiscard]] std::vector<std::int64_t> sums_within(const std::int16_t* sets,
                                                      std::size_t count) const;

 private:
  [[nodiscard]] std::int64_t masked_sum(std::size_t row, const std::int16_t* members) const;
  void count_agreement(const std::vector<std::uint16_t>& symbols, std::size_t places,
                       Parallel& parallel);

  std::size_t m_size = 0;
  std::size_t m_stride = 0;
  std::int64_t m_length = 1;
  std::int64_t m_common = 0;           // to be added to every count: places at which all agree
  bool m_narrow = true;                // counts fit 15 bits
  std::vector<std::int16_t> m_counts;  // [size, stride]
  std::vector<std::int32_t> m_wide;    // the same where they do not
  std::vector<std::int64_t> m_row_sums;
};

}  // namespace driftscope
