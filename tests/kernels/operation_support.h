// SPDX-License-Identifier: Apache-2.0
// Inputs and comparisons shared by the tests of the row operations.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/isa.h"
#include "kernels/base/parallel.h"
#include "kernels/plan/dtype.h"

namespace driftscope::testing {

// splitmix64: the same values on every machine.
class Values {
 public:
  explicit Values(std::uint64_t seed) : m_state(seed) {}
  [[nodiscard]] std::uint64_t next() {
    m_state += 0x9e3779b97f4a7c15U;
    std::uint64_t z = m_state;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  // Uniform in [-range, range), a multiple of range / 2^23: every value is an exact f32.
  [[nodiscard]] float uniform(float range) {
    const auto integer = static_cast<std::int32_t>(next() >> 40U) - (1 << 23);
    return static_cast<float>(integer) * 0x1p-23F * range;
  }
  [[nodiscard]] std::vector<float> uniform(std::int64_t count, float range) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = uniform(range);
    return values;
  }

 private:
  std::uint64_t m_state;
};

// Empty if the same bits, else where the first difference is.
[[nodiscard]] inline std::string bit_difference(const std::vector<float>& a,
                                                const std::vector<float>& b) {
  if (a.size() != b.size()) return "different sizes";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) {
      return "element " + std::to_string(i) + ": " + std::to_string(a[i]) + " and " +
             std::to_string(b[i]);
    }
  }
  return {};
}

// Runs tasks backwards and reports several workers, to show that neither matters.
class BackwardParallel final : public Parallel {
 public:
  explicit BackwardParallel(int workers) : m_workers(workers) {}
  [[nodiscard]] int workers() const override { return m_workers; }
  void run(std::size_t tasks, TaskRef task) override {
    for (std::size_t i = tasks; i-- > 0;) task(i, static_cast<int>(i) % m_workers);
  }

 private:
  int m_workers;
};

// Real threads that take tasks in whatever order they come to them.
class ThreadedParallel final : public Parallel {
 public:
  explicit ThreadedParallel(int workers) : m_workers(workers) {}
  [[nodiscard]] int workers() const override { return m_workers; }
  void run(std::size_t tasks, TaskRef task) override {
    std::atomic<std::size_t> next = 0;
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < m_workers; ++worker) {
      threads.emplace_back([&, worker] {
        for (std::size_t i = next++; i < tasks; i = next++) task(i, worker);
      });
    }
  }

 private:
  int m_workers;
};

// Half a unit in the last place of 1: the greatest relative error of one rounding.
[[nodiscard]] inline double unit_roundoff(Dtype dtype) {
  double unit = 1.0;
  for (int i = 0; i < significand_bits(dtype); ++i) unit /= 2.0;
  return unit;
}

}  // namespace driftscope::testing
