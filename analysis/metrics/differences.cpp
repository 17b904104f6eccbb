// SPDX-License-Identifier: Apache-2.0
// Metrics of d = b - a: sizes, units in the last place, direction.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "analysis/metrics/families.h"
#include "analysis/metrics/lane_sum.h"

namespace driftscope {

namespace {

// Rising with the value; +0 and -0 are both 0.
std::int64_t ordered_integer(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto magnitude = static_cast<std::int64_t>(bits & 0x7fffffffU);
  return (bits >> 31U) != 0U ? -magnitude : magnitude;
}

std::int64_t distance_in_order(float x, float y) {
  return std::abs(ordered_integer(x) - ordered_integer(y));
}

}  // namespace

std::int64_t ulp_distance(float x, float y) { return distance_in_order(x, y); }

namespace metrics {

namespace {

double widened_difference(const FinitePairs& pairs, std::size_t entry) {
  return double{pairs.b[entry]} - double{pairs.a[entry]};
}

struct Sums {
  LaneValues difference{}, absolute{}, square{};
  LaneValues square_a{}, square_b{}, cross{};  // cross: d * (a + b) = b^2 - a^2
};

Sums add_up(const FinitePairs& pairs) {
  Sums sums;
  for_each_in_lanes(pairs.count(), [&](std::size_t entry, std::size_t lane) {
    const double a{pairs.a[entry]};
    const double b{pairs.b[entry]};
    const double d = b - a;
    sums.difference[lane] += d;
    sums.absolute[lane] += std::abs(d);
    sums.square[lane] += d * d;
    sums.square_a[lane] += a * a;
    sums.square_b[lane] += b * b;
    sums.cross[lane] += d * (a + b);
  });
  return sums;
}

void find_extremes(const FinitePairs& pairs, DifferenceFigures& figures) {
  LaneValues absolute{}, relative{};
  LaneValues rise;
  rise.fill(-std::numeric_limits<double>::infinity());
  for_each_in_lanes(pairs.count(), [&](std::size_t entry, std::size_t lane) {
    const double a = std::abs(double{pairs.a[entry]});
    const double b = std::abs(double{pairs.b[entry]});
    const double d = widened_difference(pairs, entry);
    const double size = std::abs(d);
    const double larger = a > b ? a : b;
    const double ratio = size / (larger > 0.0 ? larger : 1.0);
    absolute[lane] = size > absolute[lane] ? size : absolute[lane];
    relative[lane] = ratio > relative[lane] ? ratio : relative[lane];
    rise[lane] = d > rise[lane] ? d : rise[lane];
  });
  figures.max_abs = combine_max(absolute);
  figures.max_rel = combine_max(relative);
  figures.largest_rise = combine_max(rise);
  for (std::size_t entry = 0; entry < pairs.count(); ++entry) {
    if (std::abs(widened_difference(pairs, entry)) == figures.max_abs) {
      figures.max_abs_token = pairs.token(entry);
      break;
    }
  }
}

double largest_ulp_distance(const FinitePairs& pairs) {
  std::int64_t largest = 0;
  for (std::size_t entry = 0; entry < pairs.count(); ++entry) {
    largest = std::max(largest, distance_in_order(pairs.a[entry], pairs.b[entry]));
  }
  return static_cast<double>(largest);
}

double centred_rms(const FinitePairs& pairs, double mean) {
  LaneValues squares{};
  for_each_in_lanes(pairs.count(), [&](std::size_t entry, std::size_t lane) {
    const double centred = widened_difference(pairs, entry) - mean;
    squares[lane] += centred * centred;
  });
  return std::sqrt(combine_sum(squares) / static_cast<double>(pairs.count()));
}

// 1 - cos(a, b) = (|d|^2 - (|b| - |a|)^2) / (2 |a| |b|), with |b| - |a| = sum d (a + b) / (|a| +
// |b|). Unlike one minus a quotient it is exactly 0 for equal rows and keeps its digits near 0.
double one_minus_cosine(double square_a, double square_b, double square_d, double cross) {
  const double length_a = std::sqrt(square_a);
  const double length_b = std::sqrt(square_b);
  if (length_a == 0.0 && length_b == 0.0) return 0.0;
  if (length_a == 0.0 || length_b == 0.0) return kUndefined;
  const double length_difference = cross / (length_a + length_b);
  const double numerator = square_d - length_difference * length_difference;
  return std::clamp(numerator / (2.0 * length_a * length_b), 0.0, 2.0);
}

}  // namespace

DifferenceFigures compare_differences(const FinitePairs& pairs) {
  DifferenceFigures figures;
  if (pairs.count() == 0) return figures;
  const auto count = static_cast<double>(pairs.count());
  const Sums sums = add_up(pairs);
  const double square_d = combine_sum(sums.square);
  const double square_a = combine_sum(sums.square_a);
  figures.mean_abs = combine_sum(sums.absolute) / count;
  figures.rms = std::sqrt(square_d / count);
  figures.logit_rms = std::sqrt(square_a / count);
  figures.cosine =
      one_minus_cosine(square_a, combine_sum(sums.square_b), square_d, combine_sum(sums.cross));
  figures.centred_rms = centred_rms(pairs, combine_sum(sums.difference) / count);
  figures.max_ulp = largest_ulp_distance(pairs);
  find_extremes(pairs, figures);
  return figures;
}

double count_different_bits(LogitsRow a, LogitsRow b) {
  std::int64_t different = 0;
  for (std::size_t entry = 0; entry < a.size(); ++entry) {
    different += static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(a[entry]) !=
                                           std::bit_cast<std::uint32_t>(b[entry]));
  }
  return static_cast<double>(different);
}

}  // namespace metrics
}  // namespace driftscope
