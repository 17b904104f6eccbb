// SPDX-License-Identifier: Apache-2.0
#include "engine/model/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/model/strict_json.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr unsigned kSeenDtype = 1;
constexpr unsigned kSeenShape = 2;
constexpr unsigned kSeenOffsets = 4;
constexpr unsigned kSeenAll = 7;
constexpr std::size_t kMaxMetadataKeys = 10'000;

std::string shown_text(std::string_view text) {
  return fmt::format("\"{}\"", escape_for_display(text.substr(0, 200)));
}

}  // namespace

bool SafetensorsHeaderReader::stop(std::string reason) {
  m_reason = std::move(reason);
  return false;
}

bool SafetensorsHeaderReader::refuse_value(std::string_view what) {
  switch (m_place) {
    case Place::before:
    case Place::after:
      return stop(fmt::format("the header is {}, not an object", what));
    case Place::top:
      return stop(m_metadata_next ? fmt::format("__metadata__ is {}, not an object", what)
                                  : fmt::format("tensor {}: is {}, not an object",
                                                shown_text(m_entry.name), what));
    case Place::metadata:
      return stop(fmt::format("__metadata__ holds {}; its values must be strings", what));
    case Place::tensor:
    case Place::dtype:
      return stop(
          fmt::format("tensor {}: dtype is {}, not a string", shown_text(m_entry.name), what));
    case Place::shape:
    case Place::shape_list:
      return stop(fmt::format("tensor {}: shape has {} where sizes of dimensions belong",
                              shown_text(m_entry.name), what));
    case Place::offsets:
    case Place::offsets_list:
      return stop(fmt::format("tensor {}: data_offsets has {} where two byte offsets belong",
                              shown_text(m_entry.name), what));
  }
  return false;
}

bool SafetensorsHeaderReader::number_unsigned(number_unsigned_t value) {
  if (m_place == Place::shape_list) {
    if (m_entry.shape.size() == kMaxTensorRank) {
      return stop(fmt::format("tensor {}: shape has more than {} dimensions",
                              shown_text(m_entry.name), kMaxTensorRank));
    }
    m_entry.shape.push_back(value);
    return true;
  }
  if (m_place == Place::offsets_list && m_offsets.size() < 2) {
    m_offsets.push_back(value);
    return true;
  }
  return refuse_value(m_place == Place::offsets_list ? "a third number" : "a number");
}

bool SafetensorsHeaderReader::number_float(number_float_t, const string_t& text) {
  return refuse_value(fmt::format("{} (not an integer of 64 bits)", text.substr(0, 40)));
}

bool SafetensorsHeaderReader::string(string_t& value) {
  if (m_place == Place::metadata) return true;
  if (m_place != Place::dtype) return refuse_value("a string");
  const auto* found = std::find_if(kSafetensorsDtypes.begin(), kSafetensorsDtypes.end(),
                                   [&](const SafetensorsDtype& row) { return row.name == value; });
  if (found == kSafetensorsDtypes.end()) {
    return stop(fmt::format("tensor {}: dtype {} is not one of the format",
                            shown_text(m_entry.name), shown_text(value)));
  }
  m_entry.dtype = found->name;
  m_place = Place::tensor;
  return true;
}

bool SafetensorsHeaderReader::start_object(std::size_t) {
  if (m_place == Place::before) {
    m_place = Place::top;
    return true;
  }
  if (m_place != Place::top) return refuse_value("an object");
  m_place = m_metadata_next ? Place::metadata : Place::tensor;
  m_seen = 0;
  return true;
}

bool SafetensorsHeaderReader::key(string_t& value) {
  if (m_place == Place::tensor) return tensor_key(value);
  if (m_place == Place::metadata) {
    if (m_metadata_keys.size() == kMaxMetadataKeys) {
      return stop(fmt::format("__metadata__ has more than {} keys", kMaxMetadataKeys));
    }
    m_metadata_keys.push_back(std::move(value));
    return true;
  }
  m_metadata_next = value == "__metadata__";
  if (m_metadata_next) {
    if (std::exchange(m_metadata_seen, true)) return stop("key \"__metadata__\" twice");
    return true;
  }
  m_entry = SafetensorsEntry{};
  m_entry.name = std::move(value);
  m_offsets.clear();
  return true;
}

bool SafetensorsHeaderReader::tensor_key(std::string_view key) {
  unsigned bit = 0;
  if (key == "dtype") {
    bit = kSeenDtype;
    m_place = Place::dtype;
  } else if (key == "shape") {
    bit = kSeenShape;
    m_place = Place::shape;
  } else if (key == "data_offsets") {
    bit = kSeenOffsets;
    m_place = Place::offsets;
  } else {
    return stop(
        fmt::format("tensor {}: unknown key {}", shown_text(m_entry.name), shown_text(key)));
  }
  if ((m_seen & bit) != 0) {
    return stop(fmt::format("tensor {}: key \"{}\" twice", shown_text(m_entry.name), key));
  }
  m_seen |= bit;
  return true;
}

bool SafetensorsHeaderReader::end_object() {
  switch (m_place) {
    case Place::tensor:
      return finish_tensor();
    case Place::metadata: {
      std::sort(m_metadata_keys.begin(), m_metadata_keys.end());
      const auto twice = std::adjacent_find(m_metadata_keys.begin(), m_metadata_keys.end());
      if (twice != m_metadata_keys.end()) {
        return stop(fmt::format("__metadata__: key {} twice", shown_text(*twice)));
      }
      m_place = Place::top;
      return true;
    }
    case Place::top:
      m_place = Place::after;
      return true;
    case Place::before:
    case Place::dtype:
    case Place::shape:
    case Place::shape_list:
    case Place::offsets:
    case Place::offsets_list:
    case Place::after:
      break;
  }
  return stop("unbalanced braces");
}

bool SafetensorsHeaderReader::finish_tensor() {
  if (m_seen != kSeenAll || m_offsets.size() != 2) {
    return stop(fmt::format("tensor {}: needs dtype, shape and two data_offsets",
                            shown_text(m_entry.name)));
  }
  m_entry.begin = m_offsets[0];
  m_entry.end = m_offsets[1];
  m_entry.shape.shrink_to_fit();
  m_entries.push_back(std::move(m_entry));
  m_place = Place::top;
  return true;
}

bool SafetensorsHeaderReader::start_array(std::size_t) {
  if (m_place == Place::shape) {
    m_place = Place::shape_list;
    return true;
  }
  if (m_place == Place::offsets) {
    m_place = Place::offsets_list;
    return true;
  }
  return refuse_value("a list");
}

bool SafetensorsHeaderReader::end_array() {
  m_place = Place::tensor;
  return true;
}

bool SafetensorsHeaderReader::parse_error(std::size_t position, const std::string&,
                                          const nlohmann::detail::exception& exception) {
  m_position = position;
  m_detail = exception.what();
  m_reason = "not valid JSON: " + short_json_reason(m_detail);
  return false;
}

}  // namespace driftscope
