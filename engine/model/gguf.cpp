// SPDX-License-Identifier: Apache-2.0
#include "engine/model/gguf.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "engine/model/gguf_cursor.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::string_view kMagic = "GGUF";
// The least that a key with its value and a tensor's description can take.
constexpr std::uint64_t kLeastValueBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 4 + 8;

std::string shown(std::string_view text) { return escape_for_display(text.substr(0, 200)); }

std::uint64_t size_of(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::string:
    case GgufType::list:
      break;
  }
  return 0;
}

bool is_power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

// Lives during parse_gguf() only.
class Parser {
 public:
  Parser(std::string_view file, std::string_view name)
      : m_file(file), m_cursor(file, name), m_name(name) {}

  Result<GgufHeader> run() {
    read_start();
    for (std::uint64_t i = 0; i < m_value_count && m_cursor.good(); ++i) read_pair();
    const std::uint32_t alignment = read_alignment();
    for (std::uint64_t i = 0; i < m_tensor_count && m_cursor.good(); ++i) read_tensor(alignment);
    if (m_cursor.good()) place_tensors(alignment);
    if (m_cursor.good()) check_overlaps();
    if (!m_cursor.good()) return m_cursor.failure();
    return std::move(m_header);
  }

 private:
  void read_start();
  void check_version(std::uint32_t version);
  void read_pair();
  GgufValue read_value(std::string_view what);
  void read_elements(GgufValue& value, std::string_view what);
  std::uint32_t read_alignment();
  void read_tensor(std::uint32_t alignment);
  bool read_shape(GgufTensor& tensor, std::string_view what);
  bool find_size(GgufTensor& tensor, std::string_view what);
  void place_tensors(std::uint32_t alignment);
  void check_overlaps();

  std::string_view m_file;
  GgufCursor m_cursor;
  std::string_view m_name;
  std::uint64_t m_value_count = 0;
  std::uint64_t m_tensor_count = 0;
  GgufHeader m_header;
};

void Parser::read_start() {
  if (m_file.empty()) return m_cursor.refuse("the file is empty");
  const std::string_view magic = m_cursor.take(kMagic.size(), "the magic number");
  if (m_cursor.good() && magic != kMagic) {
    return m_cursor.refuse(fmt::format(
        "begins with the bytes {:02x}, not with \"GGUF\"",
        fmt::join(reinterpret_cast<const std::uint8_t*>(magic.data()),
                  reinterpret_cast<const std::uint8_t*>(magic.data()) + magic.size(), " ")));
  }
  m_header.version = m_cursor.number<std::uint32_t>("the version");
  if (m_cursor.good()) check_version(m_header.version);
  m_tensor_count = m_cursor.number<std::uint64_t>("the number of tensors");
  m_value_count = m_cursor.number<std::uint64_t>("the number of metadata keys");
  if (!m_cursor.good()) return;
  if (m_value_count > m_cursor.rest() / kLeastValueBytes) {
    return m_cursor.refuse(
        fmt::format("the number of metadata keys at byte 16 is {}, which the {} "
                    "bytes that follow cannot hold",
                    m_value_count, m_cursor.rest()));
  }
  if (m_tensor_count > m_cursor.rest() / kLeastTensorBytes) {
    m_cursor.refuse(
        fmt::format("the number of tensors at byte 8 is {}, which the {} bytes that "
                    "follow cannot hold",
                    m_tensor_count, m_cursor.rest()));
  }
}

void Parser::check_version(std::uint32_t version) {
  if (version == 2 || version == 3) return;
  if (version != 0 && (version & 0xffffU) == 0) {
    return m_cursor.refuse(fmt::format(
        "the version at byte 4 is 0x{:08x}: a big-endian GGUF file, only little-endian is read",
        version));
  }
  m_cursor.refuse(fmt::format("the version at byte 4 is {}, 2 and 3 are read", version));
}

void Parser::read_pair() {
  const std::uint64_t at = m_cursor.offset();
  const std::string_view key = m_cursor.text("a metadata key");
  if (!m_cursor.good()) return;
  if (key.empty() || key.size() > kMaxGgufKeyBytes) {
    return m_cursor.refuse(
        fmt::format("the metadata key at byte {} has {} bytes, 1 to {} are "
                    "allowed",
                    at, key.size(), kMaxGgufKeyBytes));
  }
  GgufValue value = read_value(fmt::format("metadata {}", shown(key)));
  if (!m_cursor.good()) return;
  if (!m_header.values.emplace(key, std::move(value)).second) {
    m_cursor.refuse(fmt::format("metadata {} at byte {} is there twice", shown(key), at));
  }
}

GgufValue Parser::read_value(std::string_view what) {
  GgufValue value;
  const std::uint64_t at = m_cursor.offset();
  auto type = m_cursor.number<std::uint32_t>(what);
  if (type == static_cast<std::uint32_t>(GgufType::list)) {
    value.is_list = true;
    type = m_cursor.number<std::uint32_t>(what);
    if (type == static_cast<std::uint32_t>(GgufType::list)) {
      m_cursor.refuse(fmt::format("{} at byte {} is a list of lists", what, at));
    }
    value.count = m_cursor.number<std::uint64_t>(what);
  }
  if (type > static_cast<std::uint32_t>(GgufType::f64)) {
    m_cursor.refuse(fmt::format("{} at byte {} has type {}, the format has 0 to {}", what, at, type,
                                static_cast<std::uint32_t>(GgufType::f64)));
  }
  if (!m_cursor.good()) return value;
  value.type = static_cast<GgufType>(type);
  value.offset = m_cursor.offset();
  read_elements(value, what);
  return value;
}

void Parser::read_elements(GgufValue& value, std::string_view what) {
  const std::uint64_t begin = m_cursor.offset();
  const bool is_string = value.type == GgufType::string;
  const std::uint64_t least = is_string ? sizeof(std::uint64_t) : size_of(value.type);
  if (value.count > m_cursor.rest() / least) {
    return m_cursor.refuse(
        fmt::format("{} at byte {} has {} elements, which the {} bytes that "
                    "follow cannot hold",
                    what, begin, value.count, m_cursor.rest()));
  }
  if (is_string) {
    for (std::uint64_t i = 0; i < value.count && m_cursor.good(); ++i) {
      static_cast<void>(m_cursor.text(what));
    }
  } else {
    static_cast<void>(m_cursor.take(value.count * least, what));
  }
  if (!m_cursor.good()) return;
  value.bytes = m_file.substr(begin, m_cursor.offset() - begin);
  if (value.type != GgufType::boolean) return;
  for (std::size_t i = 0; i < value.bytes.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(value.bytes[i]);
    if (byte <= 1) continue;
    return m_cursor.refuse(
        fmt::format("{}: the boolean at byte {} is {}, not 0 or 1", what, begin + i, byte));
  }
}

std::uint32_t Parser::read_alignment() {
  const auto found = m_header.values.find("general.alignment");
  if (!m_cursor.good() || found == m_header.values.end()) return kDefaultGgufAlignment;
  const GgufValue& value = found->second;
  std::uint32_t alignment = 0;
  if (value.type != GgufType::u32 || value.is_list) {
    m_cursor.refuse(fmt::format("metadata general.alignment at byte {} is {}{}, not a u32",
                                value.offset, value.is_list ? "a list of " : "",
                                gguf_type_name(value.type)));
    return kDefaultGgufAlignment;
  }
  std::memcpy(&alignment, value.bytes.data(), sizeof alignment);
  if (!is_power_of_two(alignment) || alignment % 8 != 0 || alignment > m_file.size()) {
    m_cursor.refuse(
        fmt::format("metadata general.alignment at byte {} is {}; it must be a power "
                    "of two from 8 on, not beyond the file's {} bytes",
                    value.offset, alignment, m_file.size()));
  }
  return alignment;
}

void Parser::read_tensor(std::uint32_t alignment) {
  const std::uint64_t at = m_cursor.offset();
  const std::string_view name = m_cursor.text("a tensor name");
  if (!m_cursor.good()) return;
  if (name.empty() || name.size() > kMaxGgufNameBytes ||
      name.find('\0') != std::string_view::npos) {
    return m_cursor.refuse(
        fmt::format("the tensor name {} at byte {} has {} bytes; 1 to {} "
                    "without NUL are allowed",
                    shown(name), at, name.size(), kMaxGgufNameBytes));
  }
  const std::string what = fmt::format("tensor {}", shown(name));
  GgufTensor tensor;
  if (!read_shape(tensor, what)) return;
  const std::uint64_t type_at = m_cursor.offset();
  const auto type = m_cursor.number<std::uint32_t>(what);
  tensor.begin = m_cursor.number<std::uint64_t>(what);
  if (!m_cursor.good()) return;
  tensor.format = find_element_format(type);
  if (tensor.format == nullptr) {
    return m_cursor.refuse(fmt::format("{}: the type at byte {} is {}, which is none of the format",
                                       what, type_at, type));
  }
  if (!find_size(tensor, what)) return;
  if (tensor.begin % alignment != 0) {
    return m_cursor.refuse(
        fmt::format("{}: the data offset {} at byte {} is not a multiple of the "
                    "alignment {}",
                    what, tensor.begin, type_at + sizeof type, alignment));
  }
  if (!m_header.tensors.emplace(name, std::move(tensor)).second) {
    m_cursor.refuse(fmt::format("{} at byte {} is there twice", what, at));
  }
}

bool Parser::read_shape(GgufTensor& tensor, std::string_view what) {
  const std::uint64_t at = m_cursor.offset();
  const auto rank = m_cursor.number<std::uint32_t>(what);
  if (m_cursor.good() && rank > kMaxGgufRank) {
    m_cursor.refuse(
        fmt::format("{}: the number of dimensions at byte {} is {}, at most {} are "
                    "allowed",
                    what, at, rank, kMaxGgufRank));
  }
  for (std::uint32_t i = 0; i < rank && m_cursor.good(); ++i) {
    const std::uint64_t dimension_at = m_cursor.offset();
    const auto size = m_cursor.number<std::uint64_t>(what);
    if (!m_cursor.good()) break;
    if (size == 0 || size > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      m_cursor.refuse(fmt::format("{}: the dimension at byte {} is {}; 1 to 2^63 - 1 are allowed",
                                  what, dimension_at, size));
    }
    tensor.shape.push_back(static_cast<std::int64_t>(size));
  }
  // The file lists the innermost dimension first.
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  return m_cursor.good();
}

// Leaves the number of bytes in `end`.
bool Parser::find_size(GgufTensor& tensor, std::string_view what) {
  const ElementFormat& format = *tensor.format;
  const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % format.block_elements != 0) {
    m_cursor.refuse(
        fmt::format("{}: rows of {} elements are no multiple of the {} in a block of "
                    "{}",
                    what, row, format.block_elements, format.name));
    return false;
  }
  std::uint64_t bytes = format.block_bytes;
  bool fits = true;
  const auto multiply = [&](std::uint64_t factor) {
    fits = fits && bytes <= std::numeric_limits<std::uint64_t>::max() / factor;
    if (fits) bytes *= factor;
  };
  multiply(static_cast<std::uint64_t>(row / format.block_elements));
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) {
    multiply(static_cast<std::uint64_t>(tensor.shape[i]));
  }
  if (!fits || bytes > m_file.size()) {
    m_cursor.refuse(fmt::format("{}: shape [{}] of {} needs {} bytes, the file has {}", what,
                                fmt::join(tensor.shape, ", "), format.name,
                                fits ? fmt::format("{}", bytes) : std::string("more than 2^64"),
                                m_file.size()));
    return false;
  }
  tensor.end = bytes;
  return true;
}

// Offsets count from where the descriptions end, rounded up to the alignment.
void Parser::place_tensors(std::uint32_t alignment) {
  const std::uint64_t header = m_cursor.offset();
  const std::uint64_t data = (header + alignment - 1) / alignment * alignment;
  for (auto& [name, tensor] : m_header.tensors) {
    const std::uint64_t bytes = tensor.end;
    if (data > m_file.size() || tensor.begin > m_file.size() - data ||
        bytes > m_file.size() - data - tensor.begin) {
      return m_cursor.refuse(
          fmt::format("tensor {}: {} bytes at offset {} of the data, which begins at byte {}, end "
                      "beyond the file's {} bytes: it is cut short",
                      shown(name), bytes, tensor.begin, data, m_file.size()));
    }
    tensor.begin += data;
    tensor.end = tensor.begin + bytes;
  }
}

void Parser::check_overlaps() {
  std::vector<std::pair<std::uint64_t, std::string_view>> order;
  order.reserve(m_header.tensors.size());
  for (const auto& [name, tensor] : m_header.tensors) order.emplace_back(tensor.begin, name);
  std::sort(order.begin(), order.end());
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::uint64_t end = m_header.tensors.find(order[i - 1].second)->second.end;
    if (order[i].first >= end) continue;
    return m_cursor.refuse(
        fmt::format("tensor {} begins at byte {}, where {} has not ended yet "
                    "(byte {}): they overlap",
                    shown(order[i].second), order[i].first, shown(order[i - 1].second), end));
  }
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  constexpr std::array<std::string_view, 13> kNames{
      "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "list", "u64", "i64", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

Result<GgufHeader> parse_gguf(std::string_view file, std::string_view name) {
  return Parser(file, name).run();
}

std::vector<std::string_view> gguf_strings(const GgufValue& value) {
  std::vector<std::string_view> strings;
  strings.reserve(value.count);
  std::string_view rest = value.bytes;
  for (std::uint64_t i = 0; i < value.count; ++i) {
    std::uint64_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    strings.push_back(rest.substr(sizeof length, length));
    rest.remove_prefix(sizeof length + length);
  }
  return strings;
}

}  // namespace driftscope
