// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/logits/logit_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cassert>
#include <cstring>
#include <limits>

#include "kernels/plan/dtype.h"

// Values are taken as they lie in the file.
static_assert(std::endian::native == std::endian::little);

namespace driftscope {
namespace {

template <class T>
T value_at(std::string_view bytes, std::size_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

template <class T>
std::vector<std::int32_t> ids_of(std::string_view bytes) {
  std::vector<std::int32_t> ids(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const T value = value_at<T>(bytes, i);
    if (!std::in_range<std::int32_t>(value)) return {};
    ids[i] = static_cast<std::int32_t>(value);
  }
  return ids;
}

}  // namespace

std::string_view element_name(ElementType type) {
  constexpr std::array<std::string_view, 12> kNames{"f16", "bf16", "f32", "f64", "i32", "i64",
                                                    "u8",  "u16",  "u32", "u64", "i8",  "i16"};
  return kNames[static_cast<std::size_t>(type)];
}

std::size_t element_bytes(ElementType type) {
  constexpr std::array<std::size_t, 12> kBytes{2, 2, 4, 8, 4, 8, 1, 2, 4, 8, 1, 2};
  return kBytes[static_cast<std::size_t>(type)];
}

bool is_float_type(ElementType type) {
  return type == ElementType::f16 || type == ElementType::bf16 || type == ElementType::f32 ||
         type == ElementType::f64;
}

void read_numbers(ElementType type, std::string_view bytes, std::span<float> target) {
  assert(bytes.size() >= target.size() * element_bytes(type));
  for (std::size_t i = 0; i < target.size(); ++i) {
    switch (type) {
      case ElementType::f16:
        target[i] = f16_to_float(value_at<std::uint16_t>(bytes, i));
        break;
      case ElementType::bf16:
        target[i] = bf16_to_float(value_at<std::uint16_t>(bytes, i));
        break;
      case ElementType::f64:
        target[i] = static_cast<float>(value_at<double>(bytes, i));
        break;
      default:
        target[i] = value_at<float>(bytes, i);
    }
  }
}

std::vector<std::int32_t> read_ids(ElementType type, std::string_view bytes) {
  switch (type) {
    case ElementType::i8:
      return ids_of<std::int8_t>(bytes);
    case ElementType::i16:
      return ids_of<std::int16_t>(bytes);
    case ElementType::i32:
      return ids_of<std::int32_t>(bytes);
    case ElementType::i64:
      return ids_of<std::int64_t>(bytes);
    case ElementType::u8:
      return ids_of<std::uint8_t>(bytes);
    case ElementType::u16:
      return ids_of<std::uint16_t>(bytes);
    case ElementType::u32:
      return ids_of<std::uint32_t>(bytes);
    default:
      return ids_of<std::uint64_t>(bytes);
  }
}

tl::unexpected<Error> broken_file(const LogitSource& source, std::string_view what) {
  return fail(ErrorKind::malformed, fmt::format("{}: {}", source.name, what));
}

Result<void> set_dense_rows(LogitFile& file, const LogitSource& source, ElementType type,
                            std::string_view bytes, std::int64_t rows, std::int64_t vocabulary) {
  if (rows < 1 || vocabulary < 2 || rows > kMostLogitRows || vocabulary > kMostLogitColumns) {
    return broken_file(source,
                       fmt::format("{} rows of {} logits cannot be; 1 to {} rows of 2 to {} "
                                   "are read",
                                   rows, vocabulary, kMostLogitRows, kMostLogitColumns));
  }
  const std::size_t row_bytes = static_cast<std::size_t>(vocabulary) * element_bytes(type);
  if (bytes.size() / row_bytes < static_cast<std::size_t>(rows)) {
    return broken_file(source, fmt::format("{} bytes of logits where {} rows of {} {} need {}; the "
                                           "file is cut short",
                                           bytes.size(), rows, vocabulary, element_name(type),
                                           static_cast<std::size_t>(rows) * row_bytes));
  }
  file.rows = rows;
  file.vocabulary = vocabulary;
  file.element = element_name(type);
  file.read = [type, bytes, row_bytes](std::int64_t row, std::span<float> target) -> Result<void> {
    read_numbers(type, bytes.substr(static_cast<std::size_t>(row) * row_bytes, row_bytes), target);
    return {};
  };
  return {};
}

Result<std::pair<std::int64_t, std::int64_t>> matrix_extents(
    const LogitSource& source, std::string_view what, const std::vector<std::uint64_t>& shape) {
  std::vector<std::uint64_t> extents = shape;
  while (extents.size() > 2 && extents.front() == 1) extents.erase(extents.begin());
  const bool small = extents.size() == 2 &&
                     extents[0] <= static_cast<std::uint64_t>(kMostLogitRows) &&
                     extents[1] <= static_cast<std::uint64_t>(kMostLogitColumns);
  if (!small) {
    return broken_file(source, fmt::format("{} has the shape [{}]; wanted [positions, vocabulary], "
                                           "or that with a batch of one before it",
                                           what, fmt::join(shape, ", ")));
  }
  return std::pair{static_cast<std::int64_t>(extents[0]), static_cast<std::int64_t>(extents[1])};
}

Result<void> set_tokens(LogitFile& file, const LogitSource& source, std::vector<std::int32_t> ids,
                        bool places_of_text) {
  if (static_cast<std::int64_t>(ids.size()) != file.rows) {
    return broken_file(source, fmt::format("{} token ids for {} rows", ids.size(), file.rows));
  }
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < file.vocabulary) continue;
    return broken_file(
        source, fmt::format("token {} is outside of the vocabulary of {}", id, file.vocabulary));
  }
  if (places_of_text) {
    ids.erase(ids.begin());
    ids.push_back(-1);
  }
  file.tokens = std::move(ids);
  return {};
}

}  // namespace driftscope
