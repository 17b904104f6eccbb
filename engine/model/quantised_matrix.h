// SPDX-License-Identifier: Apache-2.0
// What the decoders of quantised layouts share: rows, words, scales, and the checks at opening.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/tensor_source.h"

namespace driftscope {

// A matrix whose values are computed row by row.
class MatrixDecoder : public TensorDecoder {
 public:
  void decode(std::int64_t first, std::int64_t count, float* values) const final;
  [[nodiscard]] std::string format() const final { return m_format; }
  [[nodiscard]] std::size_t stored_bytes() const final { return m_stored_bytes; }

 protected:
  MatrixDecoder(std::int64_t columns, std::string format, std::size_t stored_bytes)
      : m_columns(columns), m_format(std::move(format)), m_stored_bytes(stored_bytes) {}
  // Elements [first, first + count) of one row.
  virtual void decode_row(std::int64_t row, std::int64_t first, std::int64_t count,
                          float* values) const = 0;

 private:
  std::int64_t m_columns;
  std::string m_format;
  std::size_t m_stored_bytes;
};

// Little-endian words at any address.
[[nodiscard]] inline std::uint32_t word_at(const char* bytes, std::int64_t index) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes + 4 * index, sizeof word);
  return word;
}

// Scales of any of the types that scales come in.
class ScaleArray {
 public:
  ScaleArray() = default;
  explicit ScaleArray(const StoredElements& elements);  // is_scale_type(elements.dtype)
  [[nodiscard]] float at(std::int64_t index) const;
  [[nodiscard]] static bool is_scale_type(std::string_view dtype);

 private:
  enum class Type : std::uint8_t { f32, f16, bf16, e8m0 };
  const char* m_bytes = nullptr;
  Type m_type = Type::f32;
};

// Looks up the parts of one quantised tensor; the first error stays and later calls do nothing.
class PartReader {
 public:
  // `tensor` as it is called in messages.
  PartReader(const TensorSource& stored, std::string tensor)
      : m_stored(stored), m_tensor(std::move(tensor)) {}
  // The part must be there, of one of the types ("I32", or "I32 I64"), of rank 2 or as `rank` says.
  StoredElements take(const std::string& name, std::string_view types, std::size_t rank = 2);
  // Of a scale's type, of any shape.
  StoredElements take_scale(const std::string& name);
  void expect(bool holds, const std::string& rule);  // "{tensor}: {rule}; fix the checkpoint"
  [[nodiscard]] bool good() const { return m_done.has_value(); }
  [[nodiscard]] tl::unexpected<Error> failure() const { return tl::unexpected(m_done.error()); }
  [[nodiscard]] std::size_t bytes() const { return m_bytes; }  // of all parts taken

 private:
  void refuse(const std::string& what);
  const TensorSource& m_stored;
  std::string m_tensor;
  Result<void> m_done;
  std::size_t m_bytes = 0;
};

// The group of each input as the file lists it (I32, any address); empty where it lists none.
// Errors through `reader`: a length other than `inputs`, a group outside 0 ... groups - 1.
[[nodiscard]] std::vector<std::int32_t> read_group_index(PartReader& reader,
                                                         const TensorSource& stored,
                                                         const std::string& name,
                                                         std::int64_t inputs, std::int64_t groups);

// "X" of "X.weight"; empty where the name does not end so.
[[nodiscard]] std::string module_of(std::string_view name);
[[nodiscard]] constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace driftscope
