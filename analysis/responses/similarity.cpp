// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/similarity.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <span>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::size_t kMostCharacters = 20'000;
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

std::vector<std::u32string> words(const std::u32string& text) {
  std::vector<std::u32string> out(1);
  for (const char32_t c : text) {
    if (!is_space(c)) {
      out.back() += c;
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

// Levenshtein's distance with one row, after the common ends are taken off.
template <class Sequence>
std::size_t edit_distance(const Sequence& a, const Sequence& b) {
  std::size_t begin = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) ++begin;
  std::size_t end_a = a.size();
  std::size_t end_b = b.size();
  while (end_a > begin && end_b > begin && a[end_a - 1] == b[end_b - 1]) {
    --end_a;
    --end_b;
  }
  std::vector<std::size_t> row(end_b - begin + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = begin; i < end_a; ++i) {
    std::size_t diagonal = row[0];
    row[0] = i - begin + 1;
    for (std::size_t j = begin; j < end_b; ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j - begin + 1];
      row[j - begin + 1] = std::min({replaced, diagonal + 1, row[j - begin] + 1});
    }
  }
  return row.back();
}

template <class Sequence>
double edit_similarity(const Sequence& a, const Sequence& b) {
  const std::size_t longer = std::max(a.size(), b.size());
  if (longer == 0) return 1.0;
  return 1.0 - static_cast<double>(edit_distance(a, b)) / static_cast<double>(longer);
}

using Grams = std::map<std::u32string_view, std::int64_t>;

Grams grams_of(std::u32string_view text, std::size_t length) {
  Grams grams;
  for (std::size_t i = 0; i + length <= text.size(); ++i) ++grams[text.substr(i, length)];
  return grams;
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
  for (std::size_t length = 1; length <= kLongestGram; ++length) {
    if (x.size() < length && y.size() < length) break;
    const Grams of_a = grams_of(x, length);
    const Grams of_b = grams_of(y, length);
    double shared = 0.0;
    for (const auto& [gram, count] : of_b) {
      const auto found = of_a.find(gram);
      if (found != of_a.end()) shared += static_cast<double>(std::min(count, found->second));
    }
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
  result.edit = std::max(x.size(), y.size()) <= kMostCharacters
                    ? edit_similarity(x, y)
                    : edit_similarity(words(x), words(y));
  result.chrf = chrf(x, y);
  result.numbers_a = numbers_in(a);
  result.numbers_b = numbers_in(b);
  result.numbers_equal = result.numbers_a == result.numbers_b;
  return result;
}

}  // namespace driftscope
