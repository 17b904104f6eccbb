// SPDX-License-Identifier: Apache-2.0
// Whether every portable variant gives the same bits: the host's instruction sets, and a device (a
// GPU, or the SIMT harness) through the table of the CUDA module. Needs no test library.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/cuda/cuda_interface.h"
#include "kernels/base/isa.h"
#include "kernels/plan/dtype.h"

namespace driftscope::parity {

struct Device {
  const CudaTable* table = nullptr;
  CudaContext* context = nullptr;
  std::string name = {};  // for the report: "simt", "NVIDIA H200"
};

// One line of the table "same bits".
struct Line {
  std::string operation;
  std::string variants;  // "scalar = avx2 = avx512 = simt"
  std::int64_t cases = 0;
  std::int64_t equal = 0;  // cases in which all variants gave the same bits
  std::string first_difference;
};

// Each runs some operations over their grids of shapes and plans and hands each line on as it is
// done. They throw std::runtime_error if the device fails.
using OnLine = std::function<void(const Line&)>;
void matmul_lines(const Device& device, const OnLine& on_line);
void quantised_lines(const Device& device, const OnLine& on_line);
void row_lines(const Device& device, const OnLine& on_line);
void expert_and_rank_lines(const Device& device, const OnLine& on_line);
void attention_lines(const Device& device, const OnLine& on_line);
// All of them, in this order.
std::vector<Line> run_all(const Device& device, const OnLine& on_line);

// ---- for the files that run cases ----

// Memory and calls of one case; released at its end.
class Case {
 public:
  explicit Case(const Device& device) : m_device(device) {}
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  ~Case() {
    for (void* pointer : m_memory) m_device.table->release(m_device.context, pointer);
  }
  template <class T>
  [[nodiscard]] T* room(std::size_t count) {
    void* pointer = nullptr;
    CudaMessage message{};
    // At least one byte, so that an empty array has an address, too.
    check(m_device.table->allocate(m_device.context, "a case", count * sizeof(T) + 1, &pointer,
                                   &message),
          message);
    m_memory.push_back(pointer);
    return static_cast<T*>(pointer);
  }
  template <class T>
  [[nodiscard]] T* put(const T* values, std::size_t count) {
    T* pointer = room<T>(count);
    CudaMessage message{};
    check(m_device.table->upload(m_device.context, pointer, values, count * sizeof(T), &message),
          message);
    return pointer;
  }
  template <class T>
  [[nodiscard]] T* put(const std::vector<T>& values) {
    return put(values.data(), values.size());
  }
  template <class T>
  [[nodiscard]] std::vector<T> get(const T* pointer, std::size_t count) {
    std::vector<T> values(count);
    CudaMessage message{};
    check(m_device.table->download(m_device.context, values.data(), pointer, count * sizeof(T),
                                   &message),
          message);
    return values;
  }
  template <class Request>
  void run(int (*CudaTable::*operation)(CudaContext*, int, const Request*, CudaMessage*),
           const Request& request) {
    CudaMessage message{};
    check((m_device.table->*operation)(m_device.context, 0, &request, &message), message);
  }
  // The plan with its order of arrival in device memory.
  [[nodiscard]] DevicePlan plan(const ReductionPlan& plan) {
    return device_plan(plan, put(arrival_order(plan.arrival_seed, plan.split_k)));
  }

 private:
  static void check(int status, const CudaMessage& message) {
    if (status != 0) throw std::runtime_error(message.text);
  }
  const Device& m_device;
  std::vector<void*> m_memory;
};

// Counts the cases of one operation.
class Tally {
 public:
  Tally(std::string operation, const Device& device);
  // results[0] is the scalar definition's.
  template <class T>
  void add(const std::vector<std::vector<T>>& results, const std::string& what) {
    ++m_line.cases;
    for (const std::vector<T>& result : results) {
      if (result.size() != results[0].size() ||
          std::memcmp(result.data(), results[0].data(), result.size() * sizeof(T)) != 0) {
        if (m_line.first_difference.empty()) m_line.first_difference = what;
        return;
      }
    }
    ++m_line.equal;
  }
  [[nodiscard]] const Line& line() const { return m_line; }

 private:
  Line m_line;
};

[[nodiscard]] std::vector<Isa> host_isas();  // those that this CPU has, the scalar one first

// splitmix64: the same values on every machine; about one in eight is a signed zero, large or tiny.
[[nodiscard]] std::vector<float> draw(std::int64_t count, std::uint64_t seed);
[[nodiscard]] std::vector<char> stored(Dtype dtype, const std::vector<float>& values);

}  // namespace driftscope::parity
