// SPDX-License-Identifier: Apache-2.0
// Rows that wait for the row of another lane at the same step.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/trace/trace.h"

namespace driftscope {

// A copy of one record, made where its spans must outlive accept().
struct StoredRow {
  TokenId choice{};
  TokenId emitted{};
  std::vector<float> logits;  // [vocabulary]
  std::int64_t rows_in_flight = 0;
  std::optional<Draw> draw;
  std::vector<std::vector<float>> taps;  // in the order of the tap specifications; empty: not seen
};
using StoredRowPointer = std::shared_ptr<const StoredRow>;

[[nodiscard]] StoredRowPointer store_row(const StepRecord& record,
                                         const std::vector<TapSpec>& taps);

// 128 bits of a row's bits: what remains of a row when its partner may never come.
using RowDigest = std::array<std::uint64_t, 2>;
[[nodiscard]] RowDigest digest_of(std::span<const float> row);

// Compares A's rows with those of the control lane, bit by bit.
class ControlCheck {
 public:
  enum class Retention : std::uint8_t {
    rows,     // a control lane will come: rows are kept until it has passed them
    digests,  // it may come: the last few rows are kept, of older ones a digest
    nothing,  // it will not come
  };
  explicit ControlCheck(Retention retention) : m_retention(retention) {}
  void accept_a(std::int64_t step, const StoredRowPointer& row);
  void accept_control(std::int64_t step, const StoredRowPointer& row);
  // No more rows of A or of the control lane: those that wait are let go.
  void stop_waiting();

  [[nodiscard]] bool present() const { return m_present; }
  [[nodiscard]] std::int64_t compared() const { return m_compared; }
  // NaN where a row differed of which only a digest was left.
  [[nodiscard]] double max_abs() const { return m_max_abs; }
  [[nodiscard]] bool bits_equal() const { return m_bits_equal; }
  [[nodiscard]] std::size_t rows_waiting() const { return m_rows.size() + m_early.size(); }

 private:
  void compare(const StoredRow& a, const StoredRow& control);
  void compare(const RowDigest& a, const StoredRow& control);

  Retention m_retention;
  std::map<std::int64_t, StoredRowPointer> m_rows;   // A's rows that wait
  std::map<std::int64_t, RowDigest> m_digests;       // and older ones
  std::map<std::int64_t, StoredRowPointer> m_early;  // control rows that came first
  bool m_present = false;
  bool m_bits_equal = true;
  std::int64_t m_compared = 0;
  double m_max_abs = 0.0;
};

}  // namespace driftscope
