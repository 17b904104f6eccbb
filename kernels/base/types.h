// SPDX-License-Identifier: Apache-2.0
// Types that keep ids and sides apart at compile time.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>

namespace driftscope {

// An integer id that does not convert to another kind of id.
template <class Tag, class Rep>
struct Strong {
  Rep value{};
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;
};

using TokenId = Strong<struct TokenIdTag, std::int32_t>;

// The two sides of a comparison. A function that takes Baseline<T> and Candidate<T>
// cannot be called with the sides swapped by accident.
template <class T>
struct Baseline {
  T value;
};
template <class T>
struct Candidate {
  T value;
};
template <class T>
[[nodiscard]] constexpr Baseline<T> baseline(T value) {
  return {std::move(value)};
}
template <class T>
[[nodiscard]] constexpr Candidate<T> candidate(T value) {
  return {std::move(value)};
}

}  // namespace driftscope
