// SPDX-License-Identifier: Apache-2.0
// Writing in terms of our objects: texts, vectors, and tables that grow by rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/capture/hdf5_handle.h"

namespace driftscope::hdf5 {

[[nodiscard]] Group make_group(const Place& place, hid_t parent, const std::string& path);
// A fixed-length, null-padded UTF-8 string; `length` reserves room for a later value (0: as long as
// the text). An attribute that exists is overwritten; the text is cut at its length.
void write_text_attribute(const Place& place, hid_t object, const std::string& name,
                          std::string_view text, std::int64_t length = 0);
void rewrite_text_attribute(const Place& place, hid_t object, const std::string& name,
                            std::string_view text);
void write_int_attribute(const Place& place, hid_t object, const std::string& name,
                         std::int64_t value);
void rewrite_int_attribute(const Place& place, hid_t object, const std::string& name,
                           std::int64_t value);
// Texts and vectors get their check value as the attribute layout::kCheckAttribute.
void write_text(const Place& place, hid_t parent, const std::string& path, std::string_view text);
// One dimension, contiguous. `type` is both the type in the file and in memory.
void write_vector(const Place& place, hid_t parent, const std::string& path, hid_t type,
                  const void* values, std::int64_t count);

struct TableShape {
  hid_t type = H5I_INVALID_HID;  // in the file and in memory
  std::int64_t width = 0;        // elements of a row; 0: the dataset has one dimension
  std::int64_t rows_per_chunk = 1;
  int deflate = 0;  // 0 … 9
};

// A dataset that grows by rows along its first dimension.
class Table {
 public:
  // Creates it with no rows; open() gives the object to append with.
  static void create(const Place& place, hid_t parent, const std::string& path,
                     const TableShape& shape);
  [[nodiscard]] static Table open(const Place& place, hid_t parent, const std::string& path,
                                  const TableShape& shape);
  // Appends `count` rows, row-major [count, width].
  void append(const void* rows, std::int64_t count);
  void close();
  [[nodiscard]] std::int64_t rows() const { return m_rows; }

 private:
  Place m_place;
  std::string m_path;
  TableShape m_shape;
  Dataset m_dataset;
  std::int64_t m_rows = 0;
};

}  // namespace driftscope::hdf5
