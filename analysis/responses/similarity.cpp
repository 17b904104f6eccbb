// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/similarity.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <span>
#include <unordered_map>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

// Of the work for one edit distance: words of 64 rows by columns, and compared characters.
constexpr std::size_t kMostWords = std::size_t{1} << 26U;
constexpr std::size_t kMostTable = std::size_t{1} << 23U;  // words, 64 MiB
constexpr std::size_t kMostSteps = std::size_t{1} << 27U;
constexpr std::size_t kLongestGram = 6;

std::u32string characters(std::string_view text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    out += step.code_point;
    at += step.length;
  }
  return out;
}

bool is_space(char32_t c) { return c == U' ' || c == U'\n' || c == U'\r' || c == U'\t'; }

// Levenshtein's distance by bit vectors (Myers 1999, in blocks of 64 rows as in Hyyrö 2003).
// Symbols are small numbers.
class BitRows {
 public:
  BitRows(std::span<const std::uint32_t> rows, std::size_t symbols)
      : m_size(rows.size()),
        m_blocks((rows.size() + 63) / 64),
        m_matches(symbols * m_blocks, 0),
        m_up(m_blocks, ~std::uint64_t{0}),
        m_down(m_blocks, 0) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      m_matches[rows[i] * m_blocks + i / 64] |= std::uint64_t{1} << (i % 64);
    }
  }

  // The next column; returns by how much the distance in the last row changes.
  int advance(std::uint32_t symbol) {
    const std::uint64_t* matches = m_matches.data() + symbol * m_blocks;
    int carry = 1;  // in the row above the first, every column adds one
    for (std::size_t block = 0; block < m_blocks; ++block) {
      const std::size_t last = block + 1 == m_blocks ? (m_size - 1) % 64 : 63;
      carry = step(matches[block], m_up[block], m_down[block], carry, last);
    }
    return carry;
  }

 private:
  // `up` and `down`: rows in which the distance is one more, or one less, than in the row above.
  static int step(std::uint64_t match, std::uint64_t& up, std::uint64_t& down, int carry,
                  std::size_t last) {
    const std::uint64_t vertical = match | down;
    match |= carry < 0 ? 1U : 0U;
    const std::uint64_t diagonal = (((match & up) + up) ^ up) | match;
    std::uint64_t more = down | ~(diagonal | up);
    std::uint64_t less = up & diagonal;
    const int out = static_cast<int>((more >> last) & 1U) - static_cast<int>((less >> last) & 1U);
    more = (more << 1U) | (carry > 0 ? 1U : 0U);
    less = (less << 1U) | (carry < 0 ? 1U : 0U);
    up = less | ~(vertical | more);
    down = more & vertical;
    return out;
  }

  std::size_t m_size, m_blocks;
  std::vector<std::uint64_t> m_matches;  // [symbols, blocks]
  std::vector<std::uint64_t> m_up, m_down;
};

// Levenshtein's distance by the furthest rows that so many edits reach on each diagonal (Ukkonen
// 1985): short for long texts that are near each other. Empty: it takes too much work.
class FurthestRows {
 public:
  FurthestRows(std::u32string_view a, std::u32string_view b) : m_a(a), m_b(b) {}

  std::optional<std::size_t> distance() {
    const std::ptrdiff_t goal = signed_size(m_b) - signed_size(m_a);
    std::vector<std::ptrdiff_t> before;
    for (std::ptrdiff_t edits = 0;; ++edits) {
      std::vector<std::ptrdiff_t> reached(static_cast<std::size_t>(2 * edits + 1), kNowhere);
      for (std::ptrdiff_t diagonal = -edits; diagonal <= edits; ++diagonal) {
        reached[static_cast<std::size_t>(diagonal + edits)] =
            slide(next(before, diagonal), diagonal);
      }
      if (std::abs(goal) <= edits &&
          reached[static_cast<std::size_t>(goal + edits)] >= signed_size(m_a)) {
        return static_cast<std::size_t>(edits);
      }
      if (m_steps > kMostSteps) return std::nullopt;
      before = std::move(reached);
    }
  }

 private:
  static constexpr std::ptrdiff_t kNowhere = std::numeric_limits<std::ptrdiff_t>::min() / 2;
  static std::ptrdiff_t signed_size(std::u32string_view text) {
    return static_cast<std::ptrdiff_t>(text.size());
  }

  // Row (of a) on a diagonal (column minus row) that one more edit reaches from those before.
  [[nodiscard]] std::ptrdiff_t next(const std::vector<std::ptrdiff_t>& before,
                                    std::ptrdiff_t diagonal) const {
    if (before.empty()) return 0;
    const auto edits = static_cast<std::ptrdiff_t>(before.size() / 2);
    const auto at = [&](std::ptrdiff_t on) {
      return std::abs(on) <= edits ? before[static_cast<std::size_t>(on + edits)] : kNowhere;
    };
    // A replaced, an inserted and a deleted character.
    const std::ptrdiff_t row = std::max({at(diagonal) + 1, at(diagonal - 1), at(diagonal + 1) + 1});
    return std::min({row, signed_size(m_a), signed_size(m_b) - diagonal});
  }

  std::ptrdiff_t slide(std::ptrdiff_t row, std::ptrdiff_t diagonal) {
    ++m_steps;
    if (row < 0 || row + diagonal < 0) return kNowhere;
    const std::u32string_view rest_a = m_a.substr(static_cast<std::size_t>(row));
    const std::u32string_view rest_b = m_b.substr(static_cast<std::size_t>(row + diagonal));
    const auto equal =
        std::mismatch(rest_a.begin(), rest_a.end(), rest_b.begin(), rest_b.end()).first -
        rest_a.begin();
    m_steps += static_cast<std::size_t>(equal);
    return row + equal;
  }

  std::u32string_view m_a, m_b;
  std::size_t m_steps = 0;
};

std::vector<std::uint32_t> numbered(std::u32string_view text,
                                    std::unordered_map<char32_t, std::uint32_t>& known) {
  std::vector<std::uint32_t> out;
  out.reserve(text.size());
  for (const char32_t symbol : text) {
    out.push_back(
        known.try_emplace(symbol, static_cast<std::uint32_t>(known.size())).first->second);
  }
  return out;
}

std::optional<std::size_t> edit_distance(std::u32string_view a, std::u32string_view b) {
  const auto front = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  a.remove_prefix(front);
  b.remove_prefix(front);
  const auto back = static_cast<std::size_t>(
      std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
  a.remove_suffix(back);
  b.remove_suffix(back);
  if (a.empty() || b.empty()) return a.size() + b.size();
  if (a.size() > b.size()) std::swap(a, b);
  std::unordered_map<char32_t, std::uint32_t> known;
  const std::vector<std::uint32_t> x = numbered(a, known);
  const std::vector<std::uint32_t> y = numbered(b, known);
  const std::size_t blocks = (x.size() + 63) / 64;
  if (blocks > kMostWords / y.size() || blocks > kMostTable / known.size()) {
    return FurthestRows(a, b).distance();
  }
  BitRows rows(x, known.size());
  auto distance = static_cast<std::ptrdiff_t>(x.size());
  for (const std::uint32_t symbol : y) distance += rows.advance(symbol);
  return static_cast<std::size_t>(distance);
}

std::optional<double> edit_similarity(const std::u32string& a, const std::u32string& b) {
  const std::size_t longer = std::max(a.size(), b.size());
  if (longer == 0) return 1.0;
  const std::optional<std::size_t> distance = edit_distance(a, b);
  if (!distance) return std::nullopt;
  return 1.0 - static_cast<double>(*distance) / static_cast<double>(longer);
}

// Numbers for pairs (number of a gram's front, last character): equal grams have equal numbers.
// Open addressing; the table has room for all grams of two texts.
class GramNumbers {
 public:
  explicit GramNumbers(std::size_t most) : m_slots(std::bit_ceil(2 * most + 2)) {}
  void clear() {
    std::fill(m_slots.begin(), m_slots.end(), Slot{});
    m_next = 0;
  }
  std::uint32_t number(std::uint32_t front, char32_t last) {
    const std::uint64_t key = (std::uint64_t{front} << 21U | std::uint64_t{last}) + 1;
    std::size_t at = (key * 0x9E3779B97F4A7C15U) >> 20U;
    for (;; ++at) {
      Slot& slot = m_slots[at & (m_slots.size() - 1)];
      if (slot.key == key) return slot.number;
      if (slot.key != 0) continue;
      slot = {key, m_next++};
      return slot.number;
    }
  }
  [[nodiscard]] std::size_t count() const { return m_next; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
  };
  std::vector<Slot> m_slots;
  std::uint32_t m_next = 0;
};

// The numbers of the grams one character longer, from each place of the text at which they fit.
void lengthen(std::u32string_view text, std::size_t length, GramNumbers& numbers,
              std::vector<std::uint32_t>& grams) {
  const std::size_t count = text.size() >= length ? text.size() - length + 1 : 0;
  grams.resize(length == 1 ? count : std::min(grams.size(), count), 0);
  for (std::size_t i = 0; i < grams.size(); ++i) {
    grams[i] = numbers.number(grams[i], text[i + length - 1]);
  }
}

// Grams that both texts have, as often as both have them.
double shared_grams(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
                    std::size_t numbers, std::vector<std::int32_t>& counts) {
  counts.assign(numbers, 0);
  for (const std::uint32_t gram : a) ++counts[gram];
  std::int64_t shared = 0;
  for (const std::uint32_t gram : b) shared += counts[gram]-- > 0 ? 1 : 0;
  return static_cast<double>(shared);
}

double chrf(const std::u32string& a, const std::u32string& b) {
  std::u32string x, y;
  std::copy_if(a.begin(), a.end(), std::back_inserter(x), [](char32_t c) { return !is_space(c); });
  std::copy_if(b.begin(), b.end(), std::back_inserter(y), [](char32_t c) { return !is_space(c); });
  if (x.empty() && y.empty()) return 1.0;
  constexpr double kBetaSquared = 4.0;
  double precision = 0.0;
  double recall = 0.0;
  double orders = 0.0;
  GramNumbers numbers(x.size() + y.size());
  std::vector<std::uint32_t> of_x, of_y;
  std::vector<std::int32_t> counts;
  for (std::size_t length = 1; length <= kLongestGram; ++length) {
    if (x.size() < length && y.size() < length) break;
    numbers.clear();
    lengthen(x, length, numbers, of_x);
    lengthen(y, length, numbers, of_y);
    const double shared = shared_grams(of_x, of_y, numbers.count(), counts);
    const auto total = [&](std::size_t size) {
      return size >= length ? static_cast<double>(size - length + 1) : 0.0;
    };
    precision += total(y.size()) > 0 ? shared / total(y.size()) : 0.0;
    recall += total(x.size()) > 0 ? shared / total(x.size()) : 0.0;
    orders += 1.0;
  }
  precision /= orders;
  recall /= orders;
  const double denominator = kBetaSquared * precision + recall;
  return denominator > 0.0 ? (1.0 + kBetaSquared) * precision * recall / denominator : 0.0;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

std::string canonical_number(std::string digits, std::string fraction, bool negative) {
  const std::size_t first = digits.find_first_not_of('0');
  digits = first == std::string::npos ? "0" : digits.substr(first);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  std::string out = fraction.empty() ? digits : digits + "." + fraction;
  return negative && out != "0" ? "-" + out : out;
}

}  // namespace

std::vector<std::string> numbers_in(std::string_view text) {
  std::vector<std::string> numbers;
  std::size_t at = 0;
  while (at < text.size()) {
    if (!digit(text[at])) {
      ++at;
      continue;
    }
    const bool sign = at > 0 && text[at - 1] == '-' &&
                      (at < 2 || std::isalnum(static_cast<unsigned char>(text[at - 2])) == 0);
    std::string whole;
    while (at < text.size()) {
      if (digit(text[at])) {
        whole += text[at++];
        continue;
      }
      // A comma between digits with three after it groups thousands.
      const bool grouping = text[at] == ',' && at + 3 < text.size() && digit(text[at + 1]) &&
                            digit(text[at + 2]) && digit(text[at + 3]) &&
                            (at + 4 >= text.size() || !digit(text[at + 4]));
      if (!grouping) break;
      ++at;
    }
    std::string fraction;
    if (at + 1 < text.size() && text[at] == '.' && digit(text[at + 1])) {
      ++at;
      while (at < text.size() && digit(text[at])) fraction += text[at++];
    }
    numbers.push_back(canonical_number(whole, fraction, sign));
  }
  return numbers;
}

Similarity compare_texts(std::string_view a, std::string_view b) {
  Similarity result;
  const std::u32string x = characters(a);
  const std::u32string y = characters(b);
  result.edit = edit_similarity(x, y);
  result.chrf = chrf(x, y);
  result.numbers_a = numbers_in(a);
  result.numbers_b = numbers_in(b);
  result.numbers_equal = result.numbers_a == result.numbers_b;
  return result;
}

}  // namespace driftscope
