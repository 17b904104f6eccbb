// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/weight_conversion.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace driftscope {
namespace {

// Two huge pages of f32: threads do not touch the same page but at the ends.
constexpr std::int64_t kTask = std::int64_t{1} << 20;
constexpr std::int64_t kPiece = 4096;

void convert_range(const TensorView& tensor, Dtype dtype, std::int64_t first, std::int64_t count,
                   std::byte* target) {
  const std::size_t size = dtype_size(dtype);
  if (tensor.decoder == nullptr && tensor.dtype == dtype) {
    std::memcpy(target,
                static_cast<const std::byte*>(tensor.data) + static_cast<std::size_t>(first) * size,
                static_cast<std::size_t>(count) * size);
    return;
  }
  std::array<float, kPiece> piece{};
  for (std::int64_t done = 0; done < count; done += kPiece) {
    const std::int64_t n = std::min(kPiece, count - done);
    tensor.values(first + done, n, piece.data());
    narrow(dtype, piece.data(), target + static_cast<std::size_t>(done) * size,
           static_cast<std::size_t>(n));
  }
}

}  // namespace

void convert_weights(const TensorView& tensor, Dtype dtype, std::byte* target, Parallel* parallel) {
  SerialParallel serial;
  const std::int64_t elements = tensor.elements();
  const auto tasks = static_cast<std::size_t>((elements + kTask - 1) / kTask);
  const auto task = [&](std::size_t index, int) {
    const std::int64_t first = static_cast<std::int64_t>(index) * kTask;
    convert_range(tensor, dtype, first, std::min(kTask, elements - first),
                  target + static_cast<std::size_t>(first) * dtype_size(dtype));
  };
  (parallel == nullptr ? serial : *parallel).run(tasks, task);
}

}  // namespace driftscope
