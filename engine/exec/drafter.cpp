// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/drafter.h"

#include <algorithm>

namespace driftscope {
namespace {

constexpr std::size_t kLongestPattern = 2;

// Where what followed the last `length` tokens at their latest earlier place begins; the size of
// the sequence if they stand nowhere else.
std::size_t find_continuation(std::span<const TokenId> sequence, std::size_t length) {
  if (sequence.size() <= length) return sequence.size();
  const auto pattern = sequence.last(length);
  for (std::size_t end = sequence.size() - 1; end >= length; --end) {
    const auto place = sequence.subspan(end - length, length);
    if (std::equal(place.begin(), place.end(), pattern.begin())) return end;
  }
  return sequence.size();
}

}  // namespace

std::vector<TokenId> draft_tokens(std::span<const TokenId> sequence, std::int64_t count) {
  std::size_t next = sequence.size();
  for (std::size_t length = kLongestPattern; length > 0 && next == sequence.size(); --length) {
    next = find_continuation(sequence, length);
  }
  // Behind the end of the sequence the copy reads what it has written itself.
  std::vector<TokenId> drafts;
  while (static_cast<std::int64_t>(drafts.size()) < count) {
    const std::size_t copied = next + drafts.size();
    drafts.push_back(next == sequence.size()    ? sequence.back()
                     : copied < sequence.size() ? sequence[copied]
                                                : drafts[copied - sequence.size()]);
  }
  return drafts;
}

}  // namespace driftscope
