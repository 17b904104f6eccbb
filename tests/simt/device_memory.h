// SPDX-License-Identifier: Apache-2.0
// Arrays in (simulated) device memory, for tests.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

#include "kernels/plan/device_plan.h"

namespace driftscope::test {

template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t count) : m_count(count) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, count * sizeof(T)) != cudaSuccess) throw std::runtime_error("memory");
    m_data = static_cast<T*>(memory);
  }
  DeviceArray(const T* source, std::size_t count) : DeviceArray(count) {
    cudaMemcpy(m_data, source, count * sizeof(T), cudaMemcpyHostToDevice);
  }
  explicit DeviceArray(const std::vector<T>& source) : DeviceArray(source.data(), source.size()) {}
  DeviceArray(DeviceArray&& other) noexcept : m_data(other.m_data), m_count(other.m_count) {
    other.m_data = nullptr;
  }
  DeviceArray& operator=(DeviceArray&&) = delete;
  ~DeviceArray() { cudaFree(m_data); }
  [[nodiscard]] T* data() const { return m_data; }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> result(m_count);
    cudaMemcpy(result.data(), m_data, m_count * sizeof(T), cudaMemcpyDeviceToHost);
    return result;
  }

 private:
  T* m_data = nullptr;
  std::size_t m_count = 0;
};

// A plan with its order of arrival in device memory.
class PlanOnDevice {
 public:
  explicit PlanOnDevice(const ReductionPlan& plan)
      : m_order(arrival_order(plan.arrival_seed, plan.split_k)),
        m_plan(device_plan(plan, m_order.data())) {}
  [[nodiscard]] const DevicePlan& get() const { return m_plan; }

 private:
  DeviceArray<int> m_order;
  DevicePlan m_plan;
};

}  // namespace driftscope::test
