// SPDX-License-Identifier: Apache-2.0
// Files of other programs, byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace driftscope::test {

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class T>
std::string bytes_of_all(const std::vector<T>& values) {
  std::string bytes;
  for (const T value : values) bytes += bytes_of(value);
  return bytes;
}

// NumPy's layout with this header text.
inline std::string npy(const std::string& header, const std::string& data, int version = 1) {
  std::string text = header + "\n";
  std::string bytes("\x93NUMPY", 6);
  bytes += static_cast<char>(version);
  bytes += '\0';
  bytes += version == 1 ? bytes_of(static_cast<std::uint16_t>(text.size()))
                        : bytes_of(static_cast<std::uint32_t>(text.size()));
  return bytes + text + data;
}

inline std::string npy_f32(std::int64_t rows, std::int64_t columns,
                           const std::vector<float>& values) {
  return npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                 std::to_string(columns) + "), }",
             bytes_of_all(values));
}

// CRC-32 as in zip, bit by bit.
inline std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

// A raw deflate stream of one stored block (RFC 1951, 3.2.4); at most 65535 bytes.
inline std::string deflated(const std::string& data) {
  const auto length = static_cast<std::uint16_t>(data.size());
  return std::string(1, '\x01') + bytes_of(length) +
         bytes_of(static_cast<std::uint16_t>(~static_cast<unsigned>(length))) + data;
}

struct ZipMember {
  std::string name;
  std::string data;
  bool deflate = false;
};

inline std::string zip(const std::vector<ZipMember>& members) {
  std::string bytes, directory;
  for (const ZipMember& member : members) {
    const std::string packed = member.deflate ? deflated(member.data) : member.data;
    const auto offset = static_cast<std::uint32_t>(bytes.size());
    // From "version needed" to "extra length", shared by both records.
    const std::string common =
        bytes_of(std::uint16_t{20}) + bytes_of(std::uint16_t{0}) +
        bytes_of(static_cast<std::uint16_t>(member.deflate ? 8 : 0)) + bytes_of(std::uint32_t{0}) +
        bytes_of(crc32_of(member.data)) + bytes_of(static_cast<std::uint32_t>(packed.size())) +
        bytes_of(static_cast<std::uint32_t>(member.data.size())) +
        bytes_of(static_cast<std::uint16_t>(member.name.size())) + bytes_of(std::uint16_t{0});
    bytes += std::string("PK\x03\x04", 4) + common + member.name + packed;
    directory += std::string("PK\x01\x02", 4) + bytes_of(std::uint16_t{20}) + common +
                 bytes_of(std::uint16_t{0}) + bytes_of(std::uint16_t{0}) +
                 bytes_of(std::uint16_t{0}) + bytes_of(std::uint32_t{0}) + bytes_of(offset) +
                 member.name;
  }
  const auto count = static_cast<std::uint16_t>(members.size());
  return bytes + directory + std::string("PK\x05\x06", 4) + bytes_of(std::uint32_t{0}) +
         bytes_of(count) + bytes_of(count) +
         bytes_of(static_cast<std::uint32_t>(directory.size())) +
         bytes_of(static_cast<std::uint32_t>(bytes.size())) + bytes_of(std::uint16_t{0});
}

inline std::string safetensors(std::string header, const std::string& data) {
  while (header.size() % 8 != 0) header += ' ';
  return bytes_of(static_cast<std::uint64_t>(header.size())) + header + data;
}

// GGUF version 3 with two tensors, as llama-results writes it. `extents`: of logits, in the order
// of the file (first extent fastest).
inline std::string results_gguf(const std::vector<std::int32_t>& tokens,
                                const std::vector<float>& logits,
                                const std::vector<std::uint64_t>& extents,
                                std::uint32_t decode_steps = 0) {
  const auto text = [](const std::string& value) {
    return bytes_of(static_cast<std::uint64_t>(value.size())) + value;
  };
  std::string bytes =
      "GGUF" + bytes_of(std::uint32_t{3}) + bytes_of(std::uint64_t{2}) + bytes_of(std::uint64_t{2});
  bytes += text("path_model") + bytes_of(std::uint32_t{8}) + text("m.gguf");
  bytes += text("decode_steps") + bytes_of(std::uint32_t{4}) + bytes_of(decode_steps);
  const std::string ids = bytes_of_all(tokens);
  const std::uint64_t second = (ids.size() + 31) / 32 * 32;
  bytes += text("tokens") + bytes_of(std::uint32_t{1}) +
           bytes_of(static_cast<std::uint64_t>(tokens.size())) + bytes_of(std::uint32_t{26}) +
           bytes_of(std::uint64_t{0});
  bytes += text("logits") + bytes_of(std::uint32_t{2}) + bytes_of(extents[0]) +
           bytes_of(extents[1]) + bytes_of(std::uint32_t{0}) + bytes_of(second);
  bytes.resize((bytes.size() + 31) / 32 * 32, '\0');
  bytes += ids;
  bytes.resize(bytes.size() + static_cast<std::size_t>(second - ids.size()), '\0');
  return bytes + bytes_of_all(logits);
}

// A --kl-divergence-base file of one chunk of four tokens and an even vocabulary: one record.
inline std::string kld_file(const std::vector<std::int32_t>& tokens, std::int32_t vocabulary,
                            float scale, float minimum, const std::vector<std::uint16_t>& codes) {
  return "_logits_" + bytes_of(static_cast<std::int32_t>(tokens.size())) + bytes_of(vocabulary) +
         bytes_of(std::int32_t{1}) + bytes_of_all(tokens) + bytes_of(scale) + bytes_of(minimum) +
         bytes_of_all(codes);
}

}  // namespace driftscope::test
