// SPDX-License-Identifier: Apache-2.0
// Reads the JSON header of a safetensors file without building a document of it, so that memory
// stays in proportion to the tensors that are really described.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/safetensors.h"

namespace driftscope {

struct SafetensorsDtype {
  std::string_view name;
  unsigned bits;
};

inline constexpr std::array<SafetensorsDtype, 22> kSafetensorsDtypes{{
    {"F64", 64},        {"F32", 32},        {"F16", 16}, {"BF16", 16},   {"I64", 64},
    {"I32", 32},        {"I16", 16},        {"I8", 8},   {"U64", 64},    {"U32", 32},
    {"U16", 16},        {"U8", 8},          {"BOOL", 8}, {"F8_E5M2", 8}, {"F8_E4M3", 8},
    {"F8_E8M0", 8},     {"C64", 64},        {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
}};

class SafetensorsHeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return refuse_value("null"); }
  bool boolean(bool) override { return refuse_value("a boolean"); }
  bool number_integer(number_integer_t) override { return refuse_value("a negative number"); }
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t, const string_t&) override;
  bool string(string_t& value) override;
  bool binary(binary_t&) override { return refuse_value("binary data"); }
  bool start_object(std::size_t) override;
  bool key(string_t& value) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& exception) override;

  std::vector<SafetensorsEntry> m_entries;  // begin and end relative to the data
  std::string m_reason;                     // why reading stopped
  std::string m_detail;
  std::size_t m_position = 0;  // 1-based byte in the header; 0: not known

 private:
  enum class Place : std::uint8_t {
    before,
    top,
    metadata,
    tensor,
    dtype,
    shape,
    shape_list,
    offsets,
    offsets_list,
    after,
  };
  bool stop(std::string reason);
  bool refuse_value(std::string_view what);
  bool tensor_key(std::string_view key);
  bool finish_tensor();

  Place m_place = Place::before;
  SafetensorsEntry m_entry;
  std::vector<std::uint64_t> m_offsets;
  std::vector<std::string> m_metadata_keys;
  unsigned m_seen = 0;  // bits: dtype 1, shape 2, data_offsets 4
  bool m_metadata_seen = false;
  bool m_metadata_next = false;
};

}  // namespace driftscope
