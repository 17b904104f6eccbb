// SPDX-License-Identifier: Apache-2.0
#include "engine/model/tensor_transforms.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <string_view>
#include <utility>

namespace driftscope {
namespace {

template <Dtype dtype>
void gather(const std::byte* data, std::int64_t stride, std::int64_t count, float* values) {
  constexpr std::size_t kSize = dtype_size(dtype);
  for (std::int64_t i = 0; i < count; ++i, data += stride * static_cast<std::int64_t>(kSize)) {
    if constexpr (dtype == Dtype::f32) {
      std::memcpy(values + i, data, kSize);
    } else if constexpr (dtype == Dtype::bf16) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, data, kSize);
      values[i] = std::bit_cast<float>(std::uint32_t{bits} << 16U);
    } else {
      widen(dtype, data, values + i, 1);
    }
  }
}

// `count` elements of the base from `offset`, `stride` elements apart.
void read(const TensorView& base, std::int64_t offset, std::int64_t stride, std::int64_t count,
          float* values) {
  if (stride == 1 || count == 1) {
    base.values(offset, count, values);
    return;
  }
  if (base.decoder != nullptr) {
    for (std::int64_t i = 0; i < count; ++i) base.values(offset + i * stride, 1, values + i);
    return;
  }
  const auto* data = static_cast<const std::byte*>(base.data) +
                     static_cast<std::size_t>(offset) * dtype_size(base.dtype);
  switch (base.dtype) {
    case Dtype::f32:
      return gather<Dtype::f32>(data, stride, count, values);
    case Dtype::bf16:
      return gather<Dtype::bf16>(data, stride, count, values);
    case Dtype::f16:
      return gather<Dtype::f16>(data, stride, count, values);
    case Dtype::f64:
      break;
  }
  assert(false);  // no weight is f64
}

class StridedDecoder final : public TensorDecoder {
 public:
  StridedDecoder(TensorView base, std::int64_t offset, std::vector<StridedView::Axis> axes,
                 bool plus_one, std::string note)
      : m_base(std::move(base)),
        m_offset(offset),
        m_axes(std::move(axes)),
        m_plus_one(plus_one),
        m_note(std::move(note)) {}

  void decode(std::int64_t first, std::int64_t count, float* values) const override {
    const StridedView::Axis& inner = m_axes.back();
    while (count > 0) {
      const std::int64_t within = first % inner.size;
      const std::int64_t run = std::min(count, inner.size - within);
      read(m_base, row_offset(first / inner.size) + within * inner.stride, inner.stride, run,
           values);
      if (m_plus_one) {
        for (std::int64_t i = 0; i < run; ++i) values[i] += 1.0F;
      }
      first += run;
      count -= run;
      values += run;
    }
  }
  std::string format() const override {
    return (m_base.decoder != nullptr ? m_base.decoder->format()
                                      : std::string(dtype_name(m_base.dtype))) +
           m_note;
  }
  std::size_t stored_bytes() const override {
    std::int64_t elements = 1;
    for (const StridedView::Axis& axis : m_axes) elements *= axis.size;
    if (m_base.decoder == nullptr) {
      return static_cast<std::size_t>(elements) * dtype_size(m_base.dtype);
    }
    const double share = static_cast<double>(elements) / static_cast<double>(m_base.elements());
    return static_cast<std::size_t>(share * static_cast<double>(m_base.decoder->stored_bytes()));
  }

  [[nodiscard]] const TensorView& base() const { return m_base; }
  [[nodiscard]] std::int64_t offset() const { return m_offset; }
  [[nodiscard]] const std::vector<StridedView::Axis>& axes() const { return m_axes; }
  [[nodiscard]] bool plus_one() const { return m_plus_one; }
  [[nodiscard]] const std::string& note() const { return m_note; }

 private:
  // Where a run of the innermost axis begins.
  [[nodiscard]] std::int64_t row_offset(std::int64_t row) const {
    std::int64_t offset = m_offset;
    for (std::size_t i = m_axes.size() - 1; i-- > 0;) {
      offset += row % m_axes[i].size * m_axes[i].stride;
      row /= m_axes[i].size;
    }
    return offset;
  }

  TensorView m_base;
  std::int64_t m_offset;
  std::vector<StridedView::Axis> m_axes;
  bool m_plus_one;
  std::string m_note;
};

// Without axes of one element, and with neighbours that run on put together.
std::vector<StridedView::Axis> merged(const std::vector<StridedView::Axis>& axes) {
  std::vector<StridedView::Axis> result;
  for (const StridedView::Axis& axis : axes) {
    if (axis.size == 1) continue;
    if (!result.empty() && result.back().stride == axis.size * axis.stride) {
      result.back() = {result.back().size * axis.size, axis.stride};
    } else {
      result.push_back(axis);
    }
  }
  if (result.empty()) result.push_back({1, 1});
  return result;
}

}  // namespace

StridedView::StridedView(TensorView base) : m_base(std::move(base)) {
  std::int64_t stride = 1;
  for (std::size_t i = m_base.shape.size(); i-- > 0;) {
    m_axes.insert(m_axes.begin(), {m_base.shape[i], stride});
    stride *= m_base.shape[i];
  }
  const auto* inner = dynamic_cast<const StridedDecoder*>(m_base.decoder.get());
  // Its axes were merged; only where they are the shape's can they be told apart again.
  if (inner == nullptr || inner->axes().size() != m_axes.size()) return;
  for (std::size_t i = 0; i < m_axes.size(); ++i) {
    if (inner->axes()[i].size != m_axes[i].size) return;
  }
  m_axes = inner->axes();
  m_offset = inner->offset();
  m_plus_one = inner->plus_one();
  m_note = inner->note();
  std::string name = std::move(m_base.name);
  TensorView own = inner->base();
  own.name = std::move(name);
  m_base = std::move(own);
}

void StridedView::note(const std::string& what) { m_note += ", " + what; }

void StridedView::slice(std::int64_t first, std::int64_t count) {
  assert(first >= 0 && count > 0 && first + count <= m_axes[0].size);
  m_offset += first * m_axes[0].stride;
  m_axes[0].size = count;
}

void StridedView::every_second(std::int64_t first) {
  m_offset += first * m_axes[0].stride;
  m_axes[0] = {(m_axes[0].size - first + 1) / 2, 2 * m_axes[0].stride};
  note("every second row");
}

void StridedView::pick(std::int64_t index) {
  assert(index >= 0 && index < m_axes[0].size && m_axes.size() > 1);
  m_offset += index * m_axes[0].stride;
  m_axes.erase(m_axes.begin());
}

void StridedView::transpose(std::size_t axis) {
  std::swap(m_axes[axis], m_axes[axis + 1]);
  constexpr std::string_view kNote = ", transposed";
  if (m_note.ends_with(kNote)) {  // back again
    m_note.resize(m_note.size() - kNote.size());
  } else {
    m_note += kNote;
  }
}

void StridedView::unpair_rows(std::int64_t head_dim) {
  const Axis rows = m_axes[0];
  assert(rows.size % head_dim == 0 && head_dim % 2 == 0);
  m_axes[0] = {head_dim / 2, 2 * rows.stride};
  m_axes.insert(m_axes.begin(), {2, rows.stride});
  m_axes.insert(m_axes.begin(), {rows.size / head_dim, head_dim * rows.stride});
  note("rows permuted");
}

void StridedView::add_one() {
  m_plus_one = true;
  note("plus 1");
}

bool StridedView::is_contiguous() const {
  const auto axes = merged(m_axes);
  return axes.size() == 1 && (axes[0].stride == 1 || axes[0].size == 1);
}

TensorView StridedView::finish(std::vector<std::int64_t> shape) && {
  TensorView result;
  result.name = m_base.name;
  result.shape = std::move(shape);
  result.dtype = m_plus_one ? Dtype::f32 : m_base.dtype;
  if (m_base.decoder == nullptr && !m_plus_one && is_contiguous()) {
    result.data = static_cast<const std::byte*>(m_base.data) +
                  static_cast<std::size_t>(m_offset) * dtype_size(m_base.dtype);
    return result;
  }
  // The axes stay as the shape has them where they are the same, so that another view of this one
  // can go on from them.
  bool same = m_axes.size() == result.shape.size();
  for (std::size_t i = 0; same && i < m_axes.size(); ++i) same = m_axes[i].size == result.shape[i];
  result.decoder = std::make_shared<StridedDecoder>(std::move(m_base), m_offset,
                                                    same ? std::move(m_axes) : merged(m_axes),
                                                    m_plus_one, std::move(m_note));
  assert(result.elements() > 0);
  return result;
}

}  // namespace driftscope
