// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/agreement.h"

#include <algorithm>
#include <unordered_map>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace driftscope {
namespace {

constexpr std::size_t kLanes = 8;

std::size_t rounded_up(std::size_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Symbols of the sequences by small numbers of their own for each place, 0 for padding; places at
// which all agree are left out. [sequences, places rounded up to lanes]
struct PlacedSymbols {
  std::vector<std::uint16_t> symbols;
  std::size_t places = 0;
};

// At one place there are no more symbols than sequences.
PlacedSymbols place_symbols(std::span<const SymbolSequence* const> sequences, std::size_t length) {
  std::unordered_map<std::int64_t, std::uint32_t> known;
  std::vector<std::vector<std::uint32_t>> dense(sequences.size());
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    dense[i].reserve(sequences[i]->size());
    for (const std::int64_t symbol : *sequences[i]) {
      dense[i].push_back(
          known.try_emplace(symbol, static_cast<std::uint32_t>(known.size() + 1)).first->second);
    }
  }
  const auto at = [&](std::size_t i, std::size_t place) {
    return place < dense[i].size() ? dense[i][place] : 0U;
  };
  std::vector<std::size_t> varying;
  for (std::size_t place = 0; place < length; ++place) {
    bool all = true;
    for (std::size_t i = 1; i < sequences.size() && all; ++i) all = at(i, place) == at(0, place);
    if (!all) varying.push_back(place);
  }
  PlacedSymbols placed;
  placed.places = rounded_up(varying.size());
  placed.symbols.assign(sequences.size() * placed.places, 0);
  std::vector<std::uint32_t> seen_at(known.size() + 1, 0);  // number of the place, from 1
  std::vector<std::uint16_t> number(known.size() + 1, 0);
  for (std::size_t k = 0; k < varying.size(); ++k) {
    std::uint16_t next = 1;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const std::uint32_t symbol = at(i, varying[k]);
      if (symbol != 0 && seen_at[symbol] != k + 1) {
        seen_at[symbol] = static_cast<std::uint32_t>(k + 1);
        number[symbol] = next++;
      }
      placed.symbols[i * placed.places + k] = symbol == 0 ? std::uint16_t{0} : number[symbol];
    }
  }
  return placed;
}

// Places at which two rows agree; `places` is a multiple of the lanes.
std::int32_t agreement(const std::uint16_t* a, const std::uint16_t* b, std::size_t places) {
  std::int32_t count = 0;
#if defined(__SSE2__)
  constexpr std::size_t kBlock = kLanes * 30'000;  // a lane counts to 32,767
  for (std::size_t begin = 0; begin < places; begin += kBlock) {
    const std::size_t end = std::min(places, begin + kBlock);
    __m128i lanes = _mm_setzero_si128();
    for (std::size_t k = begin; k < end; k += kLanes) {
      const __m128i equal =
          _mm_cmpeq_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + k)),
                          _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + k)));
      lanes = _mm_sub_epi16(lanes, equal);
    }
    alignas(16) std::int16_t sums[kLanes];
    _mm_store_si128(reinterpret_cast<__m128i*>(sums), lanes);
    for (const std::int16_t sum : sums) count += sum;
  }
#else
  for (std::size_t k = 0; k < places; ++k) count += a[k] == b[k] ? 1 : 0;
#endif
  return count;
}

}  // namespace

AgreementMatrix::AgreementMatrix(std::span<const SymbolSequence* const> sequences,
                                 Parallel& parallel)
    : m_size(sequences.size()), m_stride(rounded_up(sequences.size())) {
  std::size_t length = 1;
  for (const SymbolSequence* sequence : sequences) length = std::max(length, sequence->size());
  m_length = static_cast<std::int64_t>(length);
  const PlacedSymbols placed = place_symbols(sequences, length);
  // The lanes behind the last place agree in every pair and are counted: below 0 is possible.
  m_common = m_length - static_cast<std::int64_t>(placed.places);
  m_narrow = placed.places <= 32'767;
  m_counts.assign(m_narrow ? m_size * m_stride : 0, 0);
  m_wide.assign(m_narrow ? 0 : m_size * m_stride, 0);
  m_row_sums.assign(m_size, 0);
  count_agreement(placed.symbols, placed.places, parallel);
}

void AgreementMatrix::count_agreement(const std::vector<std::uint16_t>& symbols, std::size_t places,
                                      Parallel& parallel) {
  const auto row_of = [&](std::size_t i) { return symbols.data() + i * places; };
  // Each pair once, in the row of the earlier one. Rows are taken in blocks so that a partner's
  // symbols, once loaded, serve several of them.
  constexpr std::size_t kRows = 16;
  const std::size_t tasks = (m_size + kRows - 1) / kRows;
  const auto task = [&](std::size_t block, int) {
    const std::size_t first = block * kRows;
    const std::size_t last = std::min(m_size, first + kRows);
    for (std::size_t j = first; j < m_size; ++j) {
      for (std::size_t i = first; i < last && i <= j; ++i) {
        const std::int32_t count = agreement(row_of(i), row_of(j), places);
        if (m_narrow) {
          m_counts[i * m_stride + j] = static_cast<std::int16_t>(count);
        } else {
          m_wide[i * m_stride + j] = count;
        }
      }
    }
  };
  parallel.run(tasks, task);
  for (std::size_t i = 0; i < m_size; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (m_narrow) {
        m_counts[i * m_stride + j] = m_counts[j * m_stride + i];
      } else {
        m_wide[i * m_stride + j] = m_wide[j * m_stride + i];
      }
    }
  }
  const std::vector<std::int16_t> all(m_stride, 1);
  for (std::size_t i = 0; i < m_size; ++i) {
    m_row_sums[i] = masked_sum(i, all.data()) + m_common * static_cast<std::int64_t>(m_size);
  }
}

std::int64_t AgreementMatrix::masked_sum(std::size_t row, const std::int16_t* members) const {
  std::int64_t sum = 0;
  if (!m_narrow) {
    const std::int32_t* counts = m_wide.data() + row * m_stride;
    for (std::size_t j = 0; j < m_stride; ++j) sum += std::int64_t{counts[j]} * members[j];
    return sum;
  }
  const std::int16_t* counts = m_counts.data() + row * m_stride;
#if defined(__SSE2__)
  // A lane takes two counts below 2^15 a step: 2^15 steps fit.
  constexpr std::size_t kBlock = kLanes << 15U;
  for (std::size_t begin = 0; begin < m_stride; begin += kBlock) {
    const std::size_t end = std::min(m_stride, begin + kBlock);
    __m128i lanes = _mm_setzero_si128();
    for (std::size_t j = begin; j < end; j += kLanes) {
      lanes = _mm_add_epi32(
          lanes, _mm_madd_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(counts + j)),
                                _mm_loadu_si128(reinterpret_cast<const __m128i*>(members + j))));
    }
    alignas(16) std::int32_t sums[4];
    _mm_store_si128(reinterpret_cast<__m128i*>(sums), lanes);
    for (const std::int32_t part : sums) sum += part;
  }
#else
  for (std::size_t j = 0; j < m_stride; ++j) sum += std::int32_t{counts[j]} * members[j];
#endif
  return sum;
}

std::vector<std::int64_t> AgreementMatrix::sums_within(const std::int16_t* sets,
                                                       std::size_t count) const {
  std::vector<std::int64_t> sums(count, 0);
  std::vector<std::int64_t> members(count, 0);
  for (std::size_t row = 0; row < m_size; ++row) {
    for (std::size_t set = 0; set < count; ++set) {
      const std::int16_t* chosen = sets + set * m_stride;
      if (chosen[row] == 0) continue;
      sums[set] += masked_sum(row, chosen);
      ++members[set];
    }
  }
  for (std::size_t set = 0; set < count; ++set) sums[set] += m_common * members[set] * members[set];
  return sums;
}

}  // namespace driftscope
