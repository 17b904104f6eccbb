// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/logits/npy_array.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

#include "analysis/import/logits/logit_formats.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostHeader = 1 << 20;
constexpr std::size_t kMostRank = 8;

// The header is the text of a dictionary; only what NumPy writes is read.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : m_rest(text) {}
  bool take(char wanted) {
    skip_space();
    if (!m_rest.starts_with(wanted)) return false;
    m_rest.remove_prefix(1);
    return true;
  }
  std::optional<std::string> quoted() {
    skip_space();
    if (m_rest.empty() || (m_rest[0] != '\'' && m_rest[0] != '"')) return std::nullopt;
    const std::size_t end = m_rest.find(m_rest[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(m_rest.substr(1, end - 1));
    m_rest.remove_prefix(end + 1);
    return text;
  }
  bool word(std::string_view wanted) {
    skip_space();
    if (!m_rest.starts_with(wanted)) return false;
    m_rest.remove_prefix(wanted.size());
    return true;
  }
  std::optional<std::uint64_t> number() {
    skip_space();
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(m_rest.data(), m_rest.data() + m_rest.size(), value);
    if (code != std::errc()) return std::nullopt;
    m_rest.remove_prefix(static_cast<std::size_t>(end - m_rest.data()));
    if (m_rest.starts_with('L')) m_rest.remove_prefix(1);  // written by Python 2
    return value;
  }
  bool at_end() {
    skip_space();
    return m_rest.empty();
  }

 private:
  void skip_space() {
    const std::size_t at = m_rest.find_first_not_of(" \t\r\n");
    m_rest.remove_prefix(at == std::string_view::npos ? m_rest.size() : at);
  }
  std::string_view m_rest;
};

bool read_shape(HeaderText& text, std::vector<std::uint64_t>& shape) {
  if (!text.take('(')) return false;
  while (!text.take(')')) {
    const auto extent = text.number();
    if (!extent || shape.size() == kMostRank) return false;
    shape.push_back(*extent);
    if (!text.take(',')) return text.take(')');
  }
  return true;
}

bool read_dictionary(HeaderText& text, NpyArray& array) {
  bool descr = false, order = false, shape = false;
  if (!text.take('{')) return false;
  while (!text.take('}')) {
    const auto key = text.quoted();
    if (!key || !text.take(':')) return false;
    if (*key == "descr") {
      const auto value = text.quoted();
      if (!value || std::exchange(descr, true)) return false;
      array.descr = *value;
    } else if (*key == "fortran_order") {
      if (std::exchange(order, true)) return false;
      array.fortran_order = text.word("True");
      if (!array.fortran_order && !text.word("False")) return false;
    } else if (*key == "shape") {
      if (std::exchange(shape, true) || !read_shape(text, array.shape)) return false;
    } else {
      return false;
    }
    if (!text.take(',')) return text.take('}') && text.at_end() && descr && order && shape;
  }
  return text.at_end() && descr && order && shape;
}

struct DescrRow {
  std::string_view descr;
  ElementType type;
};
constexpr std::array kDescrs{DescrRow{"<f2", ElementType::f16}, DescrRow{"<f4", ElementType::f32},
                             DescrRow{"<f8", ElementType::f64}, DescrRow{"<i4", ElementType::i32},
                             DescrRow{"<i8", ElementType::i64}, DescrRow{"<i2", ElementType::i16},
                             DescrRow{"|i1", ElementType::i8},  DescrRow{"|u1", ElementType::u8},
                             DescrRow{"<u2", ElementType::u16}, DescrRow{"<u4", ElementType::u32},
                             DescrRow{"<u8", ElementType::u64}, DescrRow{"|V2", ElementType::bf16},
                             DescrRow{"<V2", ElementType::bf16}};

}  // namespace

Result<NpyArray> parse_npy(std::string_view bytes, const LogitSource& source,
                           std::string_view what) {
  const auto broken = [&](const std::string& why) {
    return broken_file(source, fmt::format("{}: {}", what, why));
  };
  if (bytes.size() < 10 || !bytes.starts_with(kMagic)) return broken("is no NumPy array");
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  const unsigned version = byte(6);
  if (version < 1 || version > 3) {
    return broken(fmt::format("NumPy format version {}; 1 to 3 are read", version));
  }
  const std::size_t prefix = version == 1 ? 10 : 12;
  if (bytes.size() < prefix) return broken("ends within its header");
  std::size_t length = byte(8) | static_cast<std::size_t>(byte(9)) << 8U;
  if (version > 1) {
    length |= static_cast<std::size_t>(byte(10)) << 16U | static_cast<std::size_t>(byte(11)) << 24U;
  }
  if (length > kMostHeader || length > bytes.size() - prefix) {
    return broken(fmt::format("a header of {} bytes does not fit", length));
  }
  NpyArray array;
  HeaderText header(bytes.substr(prefix, length));
  if (!read_dictionary(header, array)) {
    return broken("the header is not the dictionary of descr, fortran_order and shape");
  }
  const DescrRow* row = nullptr;
  for (const DescrRow& entry : kDescrs) {
    if (entry.descr == array.descr) row = &entry;
  }
  if (row == nullptr) {
    return broken(
        fmt::format("elements of type \"{}\"; little-endian f2, f4, f8, integers and bf16 "
                    "as u2 or V2 are read",
                    escape_for_display(array.descr)));
  }
  array.type = row->type;
  array.data = bytes.substr(prefix + length);
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : array.shape) {
    if (extent != 0 && elements > array.data.size() / extent) {
      return broken(
          fmt::format("{} bytes of elements are fewer than the shape needs; the file is "
                      "cut short",
                      array.data.size()));
    }
    elements *= extent;
  }
  if (elements * element_bytes(array.type) != array.data.size()) {
    return broken(fmt::format("{} bytes of elements where the shape needs {}", array.data.size(),
                              elements * element_bytes(array.type)));
  }
  return array;
}

Result<void> set_npy_rows(LogitFile& file, const LogitSource& source, const NpyArray& array,
                          std::string_view what) {
  const auto extents = matrix_extents(source, what, array.shape);
  if (!extents) return tl::unexpected<Error>(extents.error());
  const ElementType type = array.type == ElementType::u16 ? ElementType::bf16 : array.type;
  if (!is_float_type(type)) {
    return broken_file(source, fmt::format("{}: elements of type \"{}\" are no logits", what,
                                           escape_for_display(array.descr)));
  }
  if (array.fortran_order) {
    return broken_file(source, fmt::format("{}: is stored column by column (fortran_order); save "
                                           "numpy.ascontiguousarray of it",
                                           what));
  }
  if (type != array.type || array.type == ElementType::bf16) {
    file.findings.push_back(
        {"bf16_assumed", fmt::format("elements of type \"{}\" were read as bf16: two bytes without "
                                     "a float type can be no other logits",
                                     escape_for_display(array.descr))});
  }
  return set_dense_rows(file, source, type, array.data, extents->first, extents->second);
}

namespace logits {

bool is_npy(std::string_view bytes) { return bytes.starts_with(kMagic); }

Result<LogitFile> read_npy(const LogitSource& source) {
  auto array = parse_npy(source.bytes, source, "array");
  if (!array) return tl::unexpected<Error>(array.error());
  LogitFile file;
  if (auto set = set_npy_rows(file, source, *array, "array"); !set) {
    return tl::unexpected<Error>(set.error());
  }
  return file;
}

}  // namespace logits
}  // namespace driftscope
