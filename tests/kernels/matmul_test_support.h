// SPDX-License-Identifier: Apache-2.0
// Inputs and a thread pool for the matmul tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/matmul/matmul.h"
#include "kernels/plan/dtype.h"

namespace driftscope::test {

// Real threads that take tasks from the last to the first, unlike any sensible pool.
class ThreadsParallel final : public Parallel {
 public:
  explicit ThreadsParallel(int workers) : m_workers(workers) {}
  [[nodiscard]] int workers() const override { return m_workers; }
  void run(std::size_t tasks, TaskRef task) override {
    std::atomic<std::size_t> left{tasks};
    std::vector<std::thread> threads;
    for (int worker = 0; worker < m_workers; ++worker) {
      threads.emplace_back([&, worker] {
        for (;;) {
          std::size_t now = left.load();
          while (now > 0 && !left.compare_exchange_weak(now, now - 1)) {
          }
          if (now == 0) return;
          task(now - 1, worker);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  int m_workers;
};

struct MatmulCase {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  Dtype dtype = Dtype::f32;
  bool bias = false;
};

// Owned inputs of one case: random, with exact zeros of both signs, and large and tiny magnitudes
// so that a changed order changes bits.
class MatmulInputs {
 public:
  explicit MatmulInputs(const MatmulCase& shape, std::uint64_t seed = 1) : m_case(shape) {
    std::mt19937_64 random(seed);
    m_x = draw(random, shape.m * shape.k);
    m_wide = draw(random, shape.n * shape.k);
    m_bias = draw(random, shape.n);
    m_stored.resize(m_wide.size() * dtype_size(shape.dtype) + 64);
    narrow(shape.dtype, m_wide.data(), m_stored.data(), m_wide.size());
    widen(shape.dtype, m_stored.data(), m_wide.data(), m_wide.size());
  }

  [[nodiscard]] MatmulArguments arguments(const ReductionPlan& plan, float* y) const {
    MatmulArguments arguments;
    arguments.x = m_x.data();
    arguments.m = m_case.m;
    arguments.weight = {m_stored.data(), m_case.dtype, m_case.n, m_case.k};
    arguments.bias = m_case.bias ? m_bias.data() : nullptr;
    arguments.y = y;
    arguments.plan = plan;
    return arguments;
  }
  [[nodiscard]] const float* x_row(std::int64_t i) const { return m_x.data() + i * m_case.k; }
  [[nodiscard]] float* x_row(std::int64_t i) { return m_x.data() + i * m_case.k; }
  [[nodiscard]] const float* w_row(std::int64_t j) const { return m_wide.data() + j * m_case.k; }
  [[nodiscard]] float bias(std::int64_t j) const { return m_bias[static_cast<std::size_t>(j)]; }
  [[nodiscard]] std::size_t outputs() const {
    return static_cast<std::size_t>(m_case.m * m_case.n);
  }

 private:
  static std::vector<float> draw(std::mt19937_64& random, std::int64_t count) {
    std::normal_distribution<float> normal(0.0F, 1.0F);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) {
      const std::uint64_t kind = random() % 16;
      value = normal(random);
      if (kind == 0) value = 0.0F;
      if (kind == 1) value = -0.0F;
      if (kind == 2) value *= 0x1p+7F;
      if (kind == 3) value *= 0x1p-12F;
    }
    return values;
  }

  MatmulCase m_case;
  std::vector<float> m_x;
  std::vector<float> m_wide;  // the weights after storing, as f32
  std::vector<float> m_bias;
  std::vector<std::uint8_t> m_stored;
};

[[nodiscard]] inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace driftscope::test
