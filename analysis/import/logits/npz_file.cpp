// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz: a zip archive of .npy members, stored or deflated. Read from the central directory
// at the end; sizes of the archive are checked against its bytes before memory is taken.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "analysis/import/logits/logit_formats.h"
#include "analysis/import/logits/npy_array.h"
#include "kernels/base/display_text.h"

namespace driftscope::logits {
namespace {

constexpr std::string_view kLocal("PK\x03\x04", 4);
constexpr std::string_view kCentral("PK\x01\x02", 4);
constexpr std::string_view kEnd("PK\x05\x06", 4);
constexpr std::uint64_t kMostMembers = 4096;
// Deflate makes at most this many bytes of one.
constexpr std::uint64_t kMostRatio = 1032;
constexpr std::uint64_t kMostInflated = std::uint64_t{1} << 34;

struct Member {
  std::string name;
  unsigned method = 0;
  std::uint64_t packed = 0, size = 0, header = 0;
  std::uint32_t crc = 0;
};

template <class T>
T number_at(std::string_view bytes, std::uint64_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Sizes of 32 bits that are all ones stand in the extra field 1 as 64 bits, in this order.
bool read_wide_sizes(std::string_view extra, Member& member) {
  constexpr std::uint64_t kWide = 0xffffffffU;
  while (extra.size() >= 4) {
    const auto id = number_at<std::uint16_t>(extra, 0);
    const auto size = number_at<std::uint16_t>(extra, 2);
    if (size > extra.size() - 4) return false;
    std::string_view field = extra.substr(4, size);
    extra.remove_prefix(std::size_t{4} + size);
    if (id != 1) continue;
    for (std::uint64_t* value : {&member.size, &member.packed, &member.header}) {
      if (*value != kWide) continue;
      if (field.size() < 8) return false;
      *value = number_at<std::uint64_t>(field, 0);
      field.remove_prefix(8);
    }
  }
  return true;
}

Result<std::vector<Member>> read_directory(const LogitSource& source) {
  const std::string_view bytes = source.bytes;
  const std::size_t end = bytes.rfind(kEnd);
  if (end == std::string_view::npos || bytes.size() - end < 22) {
    return broken_file(source, "zip archive without its directory; the file is cut short");
  }
  const auto count = number_at<std::uint16_t>(bytes, end + 10);
  std::uint64_t at = number_at<std::uint32_t>(bytes, end + 16);
  if (count > kMostMembers) return broken_file(source, "zip archive with too many members");
  std::vector<Member> members;
  for (unsigned i = 0; i < count; ++i) {
    if (at > end || end - at < 46 || bytes.substr(at, 4) != kCentral) {
      return broken_file(source, fmt::format("zip directory: no entry at byte {}", at));
    }
    const std::uint64_t name = number_at<std::uint16_t>(bytes, at + 28);
    const std::uint64_t extra = number_at<std::uint16_t>(bytes, at + 30);
    const std::uint64_t comment = number_at<std::uint16_t>(bytes, at + 32);
    if (end - at < 46 + name + extra + comment) {
      return broken_file(source,
                         fmt::format("zip directory: the entry at byte {} does not fit", at));
    }
    Member member{.name = std::string(bytes.substr(at + 46, name)),
                  .method = number_at<std::uint16_t>(bytes, at + 10),
                  .packed = number_at<std::uint32_t>(bytes, at + 20),
                  .size = number_at<std::uint32_t>(bytes, at + 24),
                  .header = number_at<std::uint32_t>(bytes, at + 42),
                  .crc = number_at<std::uint32_t>(bytes, at + 16)};
    if ((number_at<std::uint16_t>(bytes, at + 8) & 1U) != 0) {
      return broken_file(source, "the zip archive is encrypted");
    }
    if (!read_wide_sizes(bytes.substr(at + 46 + name, extra), member)) {
      return broken_file(source, fmt::format("zip directory: sizes of \"{}\" cannot be read",
                                             escape_for_display(member.name)));
    }
    members.push_back(std::move(member));
    at += 46 + name + extra + comment;
  }
  return members;
}

std::optional<std::string> inflate_member(std::string_view packed, std::uint64_t size) {
  std::string target(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return std::nullopt;
  // zlib counts in 32 bits.
  constexpr std::size_t kPart = std::size_t{1} << 30;
  std::size_t in = 0, out = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    const std::size_t give = std::min(kPart, packed.size() - in);
    const std::size_t room = std::min(kPart, target.size() - out);
    // zlib does not write to its input; the interface predates const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in));
    stream.avail_in = static_cast<uInt>(give);
    stream.next_out = reinterpret_cast<Bytef*>(target.data() + out);
    stream.avail_out = static_cast<uInt>(room);
    code = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in;
    out += room - stream.avail_out;
    if (code == Z_OK && give == stream.avail_in && room == stream.avail_out) break;
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END || out != size) return std::nullopt;
  return target;
}

// The bytes of one member: of the file itself, or inflated into `owner`.
Result<std::string_view> member_bytes(const LogitSource& source, const Member& member,
                                      std::shared_ptr<std::string>& owner) {
  const std::string_view bytes = source.bytes;
  const auto broken = [&](std::string_view why) {
    return broken_file(source, fmt::format("{}: {}", escape_for_display(member.name), why));
  };
  if (member.header > bytes.size() || bytes.size() - member.header < 30 ||
      bytes.substr(member.header, 4) != kLocal) {
    return broken("the zip archive has no such member where its directory says");
  }
  const std::uint64_t skip = std::uint64_t{30} +
                             number_at<std::uint16_t>(bytes, member.header + 26) +
                             number_at<std::uint16_t>(bytes, member.header + 28);
  const std::uint64_t left = bytes.size() - member.header;
  if (skip > left || member.packed > left - skip) return broken("goes beyond the end of the file");
  const std::string_view packed = bytes.substr(member.header + skip, member.packed);
  std::string_view data = packed;
  if (member.method == 0) {
    if (member.packed != member.size) return broken("a stored member of two sizes");
  } else if (member.method == 8) {
    if (member.size > kMostInflated || member.size / kMostRatio > member.packed + 1) {
      return broken(fmt::format("{} bytes cannot be made of {}", member.size, member.packed));
    }
    auto inflated = inflate_member(packed, member.size);
    if (!inflated) return broken("the deflated data is damaged");
    owner = std::make_shared<std::string>(std::move(*inflated));
    data = *owner;
  } else {
    return broken(
        fmt::format("compression method {}; stored and deflated members are read", member.method));
  }
  const auto crc = static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
  if (crc != member.crc) return broken("does not have the CRC-32 of the zip directory");
  return data;
}

const Member* find_member(const std::vector<Member>& members,
                          std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (const Member& member : members) {
      if (member.name == std::string(name) + ".npy") return &member;
    }
  }
  return nullptr;
}

}  // namespace

bool is_npz(std::string_view bytes) { return bytes.starts_with(kLocal) || bytes.starts_with(kEnd); }

Result<LogitFile> read_npz(const LogitSource& source) {
  auto members = read_directory(source);
  if (!members) return tl::unexpected<Error>(members.error());
  const Member* rows = find_member(*members, {"logits", "logprobs"});
  if (rows == nullptr && members->size() == 1) rows = &members->front();
  if (rows == nullptr) {
    return broken_file(source, fmt::format("has no member logits.npy or logprobs.npy among its {}",
                                           members->size()));
  }
  LogitFile file;
  if (rows->name == "logprobs.npy") file.values = "log_probability";
  if (rows->name == "logits.npy") file.values = "logit";
  std::shared_ptr<std::string> owner;
  auto bytes = member_bytes(source, *rows, owner);
  if (!bytes) return tl::unexpected<Error>(bytes.error());
  const std::string what = escape_for_display(rows->name);
  auto array = parse_npy(*bytes, source, what);
  if (!array) return tl::unexpected<Error>(array.error());
  if (auto set = set_npy_rows(file, source, *array, what); !set) {
    return tl::unexpected<Error>(set.error());
  }
  // The rows hold on to what was inflated for them.
  file.read = [inner = std::move(file.read), owner](std::int64_t row, std::span<float> target) {
    return inner(row, target);
  };
  for (const bool text : {false, true}) {
    const Member* ids =
        text ? find_member(*members, {"input_ids"}) : find_member(*members, {"tokens"});
    if (ids == nullptr || !file.tokens.empty()) continue;
    std::shared_ptr<std::string> ids_owner;
    auto id_bytes = member_bytes(source, *ids, ids_owner);
    if (!id_bytes) return tl::unexpected<Error>(id_bytes.error());
    auto list = parse_npy(*id_bytes, source, escape_for_display(ids->name));
    if (!list) return tl::unexpected<Error>(list.error());
    if (is_float_type(list->type)) return broken_file(source, "token ids are no integers");
    if (auto set = set_tokens(file, source, read_ids(list->type, list->data), text); !set) {
      return tl::unexpected<Error>(set.error());
    }
  }
  return file;
}

}  // namespace driftscope::logits
