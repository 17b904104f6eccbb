// SPDX-License-Identifier: Apache-2.0
#include "engine/model/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/model/safetensors_header.h"
#include "engine/model/strict_json.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::string_view kRemedy = "download or convert the file again";

tl::unexpected<Error> malformed(std::string_view name, std::string_view what,
                                std::string detail = {}) {
  return fail(ErrorKind::malformed, fmt::format("{}: {}; {}", name, what, kRemedy),
              std::move(detail));
}

std::string shown(const SafetensorsEntry& entry) {
  return escape_for_display(std::string_view(entry.name).substr(0, 200));
}

std::uint64_t read_u64_little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = kSafetensorsPrefixBytes; i-- > 0;) {
    value = (value << 8U) | static_cast<std::uint8_t>(bytes[i]);
  }
  return value;
}

Result<std::string_view> header_text(std::string_view file, std::string_view name) {
  if (file.empty()) return malformed(name, "the file is empty");
  if (file.size() < kSafetensorsPrefixBytes) {
    return malformed(name, fmt::format("the header length at byte 0 needs 8 bytes, the file has {}",
                                       file.size()));
  }
  const std::uint64_t length = read_u64_little_endian(file);
  if (length > kMaxSafetensorsHeaderBytes) {
    return malformed(name, fmt::format("the header length at byte 0 is {}, more than the {} that "
                                       "the format allows",
                                       length, kMaxSafetensorsHeaderBytes));
  }
  const std::size_t rest = file.size() - kSafetensorsPrefixBytes;
  if (length > rest) {
    return malformed(name, fmt::format("the header length at byte 0 is {}, but only {} bytes "
                                       "follow: the file is cut short",
                                       length, rest));
  }
  const std::string_view text = file.substr(kSafetensorsPrefixBytes, length);
  if (!text.starts_with('{')) {
    return malformed(name, text.empty() ? std::string("the header at byte 8 is empty")
                                        : fmt::format("the header at byte 8 begins with byte "
                                                      "0x{:02X}, not with '{{'",
                                                      static_cast<std::uint8_t>(text[0])));
  }
  return text;
}

Result<std::vector<SafetensorsEntry>> read_header(std::string_view text, std::string_view name) {
  const JsonTextFault fault = find_json_text_fault(text);
  if (!fault.what.empty()) {
    return malformed(name, fmt::format("the header has {} at byte {}", fault.what,
                                       fault.offset + kSafetensorsPrefixBytes));
  }
  SafetensorsHeaderReader reader;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) {
    const std::string where =
        reader.m_position > 0
            ? fmt::format("header at byte {}", reader.m_position - 1 + kSafetensorsPrefixBytes)
            : std::string("header at byte 8");
    return malformed(name, fmt::format("{}: {}", where, reader.m_reason), reader.m_detail);
  }
  return std::move(reader.m_entries);
}

// Bytes of the tensor, or nothing where the product does not fit 64 bits or ends inside a byte.
std::optional<std::uint64_t> tensor_bytes(const SafetensorsEntry& entry) {
  const auto* dtype =
      std::find_if(kSafetensorsDtypes.begin(), kSafetensorsDtypes.end(),
                   [&](const SafetensorsDtype& row) { return row.name == entry.dtype; });
  // A dimension of 0 makes the tensor empty, however large the others are.
  if (std::find(entry.shape.begin(), entry.shape.end(), 0U) != entry.shape.end()) return 0;
  std::uint64_t bits = dtype->bits;
  for (const std::uint64_t dimension : entry.shape) {
    if (dimension > std::numeric_limits<std::uint64_t>::max() / bits) return std::nullopt;
    bits *= dimension;
  }
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

Result<void> check_entry(const SafetensorsEntry& entry, std::string_view name) {
  if (entry.begin > entry.end) {
    return malformed(name, fmt::format("tensor {}: data_offsets [{}, {}] end before they begin",
                                       shown(entry), entry.begin, entry.end));
  }
  const auto bytes = tensor_bytes(entry);
  if (!bytes) {
    return malformed(name, fmt::format("tensor {}: shape [{}] of {} has no size in whole bytes "
                                       "below 2^64 bits",
                                       shown(entry), fmt::join(entry.shape, ", "), entry.dtype));
  }
  if (*bytes != entry.end - entry.begin) {
    return malformed(name, fmt::format("tensor {}: shape [{}] of {} needs {} bytes, data_offsets "
                                       "[{}, {}] hold {}",
                                       shown(entry), fmt::join(entry.shape, ", "), entry.dtype,
                                       *bytes, entry.begin, entry.end, entry.end - entry.begin));
  }
  return {};
}

Result<void> check_names(const std::vector<SafetensorsEntry>& entries, std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) names.emplace_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return malformed(name, fmt::format("header at byte 8: tensor {} is there twice",
                                     escape_for_display(twice->substr(0, 200))));
}

// Tensors must cover the data exactly: no overlap, no gap, nothing after the last.
Result<void> check_coverage(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_begin,
                            std::uint64_t data_bytes, std::string_view name) {
  std::uint64_t position = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != position) {
      return malformed(name, fmt::format("tensor {}: begins at byte {} of the file, {} byte {} "
                                         "where the tensor before it ends",
                                         shown(entry), data_begin + entry.begin,
                                         entry.begin < position ? "which overlaps: it is before"
                                                                : "which leaves a gap after",
                                         data_begin + position));
    }
    if (entry.end > data_bytes) {
      return malformed(name,
                       fmt::format("tensor {}: ends at byte {}, but the file has only {}: "
                                   "it is cut short",
                                   shown(entry), data_begin + entry.end, data_begin + data_bytes));
    }
    position = entry.end;
  }
  if (position == data_bytes) return {};
  return malformed(name, fmt::format("{} bytes follow the last tensor at byte {}",
                                     data_bytes - position, data_begin + position));
}

}  // namespace

Result<std::vector<SafetensorsEntry>> parse_safetensors(std::string_view file,
                                                        std::string_view name) {
  const auto text = header_text(file, name);
  if (!text) return tl::unexpected(text.error());
  auto entries = read_header(*text, name);
  if (!entries) return entries;
  for (const SafetensorsEntry& entry : *entries) {
    if (auto good = check_entry(entry, name); !good) return tl::unexpected(good.error());
  }
  if (auto good = check_names(*entries, name); !good) return tl::unexpected(good.error());
  std::sort(entries->begin(), entries->end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  const std::uint64_t data_begin = kSafetensorsPrefixBytes + text->size();
  const std::uint64_t data_bytes = file.size() - data_begin;
  if (auto good = check_coverage(*entries, data_begin, data_bytes, name); !good) {
    return tl::unexpected(good.error());
  }
  for (SafetensorsEntry& entry : *entries) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  return entries;
}

}  // namespace driftscope
