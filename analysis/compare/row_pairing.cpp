// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/row_pairing.h"

#include <bit>
#include <cmath>
#include <limits>

namespace driftscope {

namespace {

// Rows of A kept while it is not known whether a control lane runs.
constexpr std::size_t kRowsKeptUnasked = 4;

bool same_bits(std::span<const float> x, std::span<const float> y) {
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(x[i]) != std::bit_cast<std::uint32_t>(y[i])) return false;
  }
  return true;
}

}  // namespace

StoredRowPointer store_row(const StepRecord& record, const std::vector<TapSpec>& taps) {
  auto row = std::make_shared<StoredRow>();
  row->choice = record.choice;
  row->emitted = record.emitted;
  row->rows_in_flight = record.rows_in_flight;
  if (record.draw != nullptr) row->draw = *record.draw;
  row->logits.assign(record.logits.begin(), record.logits.end());
  row->taps.resize(taps.size());
  for (const TensorTap& tap : record.taps) {
    for (std::size_t i = 0; i < taps.size(); ++i) {
      if (taps[i].layer != tap.layer || taps[i].operation != tap.operation) continue;
      row->taps[i].assign(tap.values.begin(), tap.values.end());
      break;
    }
  }
  return row;
}

RowDigest digest_of(std::span<const float> row) {
  // Multiply-xorshift over the words, two lanes with different odd multipliers.
  RowDigest digest{row.size(), ~std::uint64_t{row.size()}};
  for (const float value : row) {
    const std::uint64_t word = std::bit_cast<std::uint32_t>(value);
    digest[0] = (digest[0] ^ word) * 0x9e3779b97f4a7c15U;
    digest[0] ^= digest[0] >> 29U;
    digest[1] = (digest[1] + word) * 0xd1342543de82ef95U;
    digest[1] ^= digest[1] >> 32U;
  }
  return digest;
}

void ControlCheck::accept_a(std::int64_t step, const StoredRowPointer& row) {
  if (const auto early = m_early.find(step); early != m_early.end()) {
    compare(*row, *early->second);
    m_early.erase(early);
    return;
  }
  if (m_retention == Retention::nothing) return;
  m_rows.emplace(step, row);
  if (m_retention == Retention::digests && m_rows.size() > kRowsKeptUnasked) {
    const auto oldest = m_rows.begin();
    m_digests.emplace(oldest->first, digest_of(oldest->second->logits));
    m_rows.erase(oldest);
  }
}

void ControlCheck::accept_control(std::int64_t step, const StoredRowPointer& row) {
  m_present = true;
  if (const auto waiting = m_rows.find(step); waiting != m_rows.end()) {
    compare(*waiting->second, *row);
    m_rows.erase(waiting);
  } else if (const auto digest = m_digests.find(step); digest != m_digests.end()) {
    compare(digest->second, *row);
    m_digests.erase(digest);
  } else {
    m_early.emplace(step, row);
  }
}

void ControlCheck::stop_waiting() {
  m_retention = Retention::nothing;
  m_rows.clear();
  m_digests.clear();
  m_early.clear();
}

void ControlCheck::compare(const StoredRow& a, const StoredRow& control) {
  ++m_compared;
  if (same_bits(a.logits, control.logits)) return;
  m_bits_equal = false;
  for (std::size_t i = 0; i < a.logits.size() && i < control.logits.size(); ++i) {
    const double size = std::abs(double{control.logits[i]} - double{a.logits[i]});
    if (std::isnan(m_max_abs)) return;
    if (size > m_max_abs) m_max_abs = size;
  }
}

void ControlCheck::compare(const RowDigest& a, const StoredRow& control) {
  ++m_compared;
  if (a == digest_of(control.logits)) return;
  m_bits_equal = false;
  m_max_abs = std::numeric_limits<double>::quiet_NaN();
}

}  // namespace driftscope
