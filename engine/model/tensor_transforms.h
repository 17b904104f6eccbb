// SPDX-License-Identifier: Apache-2.0
// Tensors that a file holds in another order: read through strides, nothing is copied.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/checkpoint.h"

namespace driftscope {

// A tensor seen with other axes. What finish() returns is plain (a pointer into the file) if its
// elements lie one after another there, else it has a decoder. Strided views of strided views
// become one.
class StridedView {
 public:
  explicit StridedView(TensorView base);

  [[nodiscard]] std::int64_t size(std::size_t axis) const { return m_axes[axis].size; }
  // Of the outermost axis: `count` indices from `first`.
  void slice(std::int64_t first, std::int64_t count);
  // Of the outermost axis: every second index, from `first` (0 or 1).
  void every_second(std::int64_t first);
  // One index of the outermost axis, which goes away.
  void pick(std::int64_t index);
  void transpose(std::size_t axis = 0);  // with the next one
  // Rows (the outermost axis) of each head in the order 0, 2, 4 …, 1, 3, 5 … of the file's.
  void unpair_rows(std::int64_t head_dim);
  void add_one();
  // shape: of the result, as many elements as the axes have.
  [[nodiscard]] TensorView finish(std::vector<std::int64_t> shape) &&;

  struct Axis {
    std::int64_t size = 0;
    std::int64_t stride = 0;  // elements of the base
    friend bool operator==(const Axis&, const Axis&) = default;
  };

 private:
  void note(const std::string& what);
  [[nodiscard]] bool is_contiguous() const;

  TensorView m_base;
  std::int64_t m_offset = 0;
  std::vector<Axis> m_axes;
  bool m_plus_one = false;
  std::string m_note;  // what was done, for TensorDecoder::format()
};

}  // namespace driftscope
