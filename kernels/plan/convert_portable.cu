// SPDX-License-Identifier: Apache-2.0
// A thread an element.
#include "kernels/plan/convert_portable.cuh"

#include "kernels/plan/device_store.cuh"

namespace driftscope::cuda {

namespace {

__global__ void embed_rows(DeviceEmbed a) {
  const Global<const void> table(a.table);
  const Global<const std::int32_t> ids(a.ids);
  const Global<float> y(a.y);
  for (std::int64_t i = thread_number(); i < a.rows * a.width; i += threads_in_grid()) {
    const std::int64_t id = ids[i / a.width];
    y[i] = exact::rounded(a.output_dtype, load(table, a.table_dtype, id * a.width + i % a.width));
  }
}

__global__ void round_elements(DeviceRound a) {
  const Global<float> values(a.values);
  for (std::int64_t i = thread_number(); i < a.count; i += threads_in_grid()) {
    values[i] = exact::rounded(a.dtype, values[i]);
  }
}

__global__ void gather_rows(DeviceGather a) {
  const Global<const float> x(a.x);
  const Global<const std::int64_t> rows(a.rows);
  const Global<float> y(a.y);
  for (std::int64_t i = thread_number(); i < a.count * a.width; i += threads_in_grid()) {
    const std::int64_t row = i / a.width;
    const std::int64_t from = a.rows == nullptr ? row : rows[row];
    y[row * a.y_stride + i % a.width] = x[from * a.x_stride + i % a.width];
  }
}

__global__ void narrow_elements(DeviceNarrow a) {
  const Global<const float> source(a.source);
  const Global<void> target(a.target);
  for (std::int64_t i = thread_number(); i < a.count; i += threads_in_grid()) {
    store(target, a.dtype, i, source[i]);
  }
}

}  // namespace

cudaError_t launch_embed(const DeviceEmbed& a, cudaStream_t stream) {
  if (a.rows < 0 || a.width < 0 || a.table_dtype == Dtype::f64) return cudaErrorInvalidValue;
  if (a.rows * a.width == 0) return cudaSuccess;
  return launch(embed_rows, "embed_rows", element_shape(a.rows * a.width), stream, a);
}

cudaError_t launch_round(const DeviceRound& a, cudaStream_t stream) {
  if (a.count < 0) return cudaErrorInvalidValue;
  if (a.count == 0 || a.dtype == Dtype::f32 || a.dtype == Dtype::f64) return cudaSuccess;
  return launch(round_elements, "round_elements", element_shape(a.count), stream, a);
}

cudaError_t launch_gather(const DeviceGather& a, cudaStream_t stream) {
  if (a.count < 0 || a.width < 0) return cudaErrorInvalidValue;
  if (a.count * a.width == 0) return cudaSuccess;
  return launch(gather_rows, "gather_rows", element_shape(a.count * a.width), stream, a);
}

cudaError_t launch_narrow(const DeviceNarrow& a, cudaStream_t stream) {
  if (a.count < 0 || a.dtype == Dtype::f64) return cudaErrorInvalidValue;
  if (a.count == 0) return cudaSuccess;
  return launch(narrow_elements, "narrow_elements", element_shape(a.count), stream, a);
}

}  // namespace driftscope::cuda
