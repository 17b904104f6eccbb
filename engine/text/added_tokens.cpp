// SPDX-License-Identifier: Apache-2.0
#include "engine/text/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>

#include "engine/text/normalizer.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

std::uint64_t edge_key(std::uint32_t node, char byte) {
  return (std::uint64_t{node} << 8U) | static_cast<std::uint8_t>(byte);
}

// Where the character that ends at `end` begins. `text` is valid UTF-8.
std::size_t previous_character(std::string_view text, std::size_t end) {
  std::size_t begin = end - 1;
  while (begin > 0 && (static_cast<std::uint8_t>(text[begin]) & 0xC0U) == 0x80U) --begin;
  return begin;
}

// \w of UTS #18, by general category.
bool is_word_character(char32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:  // the other categories of the library
      return code_point == 0x200C || code_point == 0x200D;
  }
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const bool word_before =
      begin > 0 && is_word_character(decode_utf8(text, previous_character(text, begin)).code_point);
  const bool word_after = end < text.size() && is_word_character(decode_utf8(text, end).code_point);
  return !word_before && !word_after;
}

std::size_t skip_space_before(std::string_view text, std::size_t begin, std::size_t limit) {
  while (begin > limit) {
    const std::size_t previous = previous_character(text, begin);
    if (!is_white_space(decode_utf8(text, previous).code_point)) break;
    begin = previous;
  }
  return std::max(begin, limit);
}

std::size_t skip_space_after(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    const Utf8Step step = decode_utf8(text, end);
    if (!is_white_space(step.code_point)) break;
    end += step.length;
  }
  return end;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher() : m_ends(1, -1) {}

void AddedTokenMatcher::add(const AddedToken& token, std::string_view text) {
  if (text.empty()) return;
  std::uint32_t node = 0;
  for (const char byte : text) {
    const auto next = static_cast<std::uint32_t>(m_ends.size());
    const auto [edge, inserted] = m_edges.try_emplace(edge_key(node, byte), next);
    if (inserted) m_ends.push_back(-1);
    node = edge->second;
  }
  m_first_bytes[static_cast<std::uint8_t>(text.front())] = true;
  m_ends[node] = static_cast<std::int32_t>(m_tokens.size());
  m_tokens.push_back(token);
}

std::optional<AddedTokenMatcher::Found> AddedTokenMatcher::longest_at(std::string_view text,
                                                                      std::size_t begin) const {
  std::optional<Found> found;
  std::uint32_t node = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const auto edge = m_edges.find(edge_key(node, text[i]));
    if (edge == m_edges.end()) break;
    node = edge->second;
    if (m_ends[node] >= 0) found = Found{&m_tokens[static_cast<std::size_t>(m_ends[node])], i + 1};
  }
  return found;
}

std::vector<AddedSplit> AddedTokenMatcher::split(std::string_view text, bool parse_special) const {
  std::vector<AddedSplit> splits;
  std::size_t done = 0;  // everything before is in `splits`
  std::size_t at = m_tokens.empty() ? text.size() : 0;
  while (at < text.size()) {
    if (!m_first_bytes[static_cast<std::uint8_t>(text[at])]) {
      ++at;
      continue;
    }
    const auto found = longest_at(text, at);
    if (!found) {
      ++at;
      continue;
    }
    const AddedToken& token = *found->token;
    std::size_t begin = at;
    std::size_t end = found->end;
    at = end;  // also where the match does not count: the reference does not look inside it
    if (token.special && !parse_special) continue;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.lstrip) begin = skip_space_before(text, begin, done);
    if (token.rstrip) end = skip_space_after(text, end);
    if (done < begin) splits.push_back({nullptr, done, begin});
    splits.push_back({&token, begin, end});
    done = end;
    at = std::max(at, end);
  }
  if (done < text.size()) splits.push_back({nullptr, done, text.size()});
  return splits;
}

}  // namespace driftscope
