// SPDX-License-Identifier: Apache-2.0
// Reading a file that nobody vouches for: every link, type, shape, layout, filter and size is
// checked before memory is taken or data is read. All functions throw Hdf5Failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/capture/hdf5_handle.h"

namespace driftscope::hdf5 {

// An open capture file, read-only.
class SafeFile {
 public:
  // Opens complete, growing and killed files.
  explicit SafeFile(const std::filesystem::path& path);
  [[nodiscard]] const Place& place() const { return m_place; }
  [[nodiscard]] hid_t id() const { return m_file.id(); }
  [[nodiscard]] std::int64_t size() const;  // bytes, now

  // Whether `path` (absolute) exists. A soft or external link on the way is refused.
  [[nodiscard]] bool exists(const std::string& path) const;
  [[nodiscard]] Group open_group(const std::string& path) const;
  // Refuses virtual and external storage.
  [[nodiscard]] Dataset open_dataset(const std::string& path) const;

  // These check the value in the attribute layout::kCheckAttribute.
  // A scalar fixed-length string dataset, at most layout::kMaximumText bytes.
  [[nodiscard]] std::string read_text(const std::string& path) const;
  // A one-dimensional contiguous dataset of exactly this type; at most the bytes of the file.
  [[nodiscard]] std::vector<std::int32_t> read_int32(const std::string& path) const;
  [[nodiscard]] std::vector<std::int64_t> read_int64(const std::string& path) const;
  [[nodiscard]] std::string read_bytes(const std::string& path) const;
  [[nodiscard]] std::int64_t count(const std::string& path, hid_t type) const;  // elements of one

 private:
  [[nodiscard]] Object open_object(const std::string& path, H5O_type_t type) const;
  void check_storage(const Dataset& dataset, const std::string& path, std::uint64_t bytes) const;
  void check_value(const Dataset& dataset, const std::string& path, const void* bytes,
                   std::size_t size) const;
  template <class T>
  [[nodiscard]] T read_vector(const std::string& path, hid_t type) const;
  Place m_place;
  File m_file;
};

// A fixed-length string attribute, at most layout::kMaximumAttribute bytes; missing is an error.
[[nodiscard]] std::string read_text_attribute(const Place& place, hid_t object,
                                              const std::string& name);
[[nodiscard]] std::int64_t read_int_attribute(const Place& place, hid_t object,
                                              const std::string& name);
[[nodiscard]] bool has_attribute(const Place& place, hid_t object, const std::string& name);

// Text from a file may hold anything: for messages, control characters become '?', long texts are
// cut.
[[nodiscard]] std::string printable(std::string_view text);

struct RowsRule {
  hid_t type = H5I_INVALID_HID;  // exact type in the file
  std::int64_t width = 0;        // elements of a row; 0: the dataset has one dimension
  bool filters = false;          // shuffle, deflate and fletcher32 are allowed
};

// A chunked dataset that grew by rows.
class Rows {
 public:
  Rows(const SafeFile& file, std::string path, const RowsRule& rule);
  [[nodiscard]] std::int64_t count() const { return m_count; }
  [[nodiscard]] std::int64_t storage_bytes() const;
  // Rows [first, first + count) into `target` [count, width].
  void read(std::int64_t first, std::int64_t count, void* target) const;
  // One element of each of those rows, into `target` [count].
  void read_column(std::int64_t first, std::int64_t count, std::int64_t column, void* target) const;

 private:
  void check_shape(const PropertyList& creation);
  void read_block(std::int64_t first, std::int64_t count, std::int64_t column, std::int64_t width,
                  void* target) const;
  void read_filtered(std::int64_t first, std::int64_t count, std::int64_t column,
                     std::int64_t width, void* target) const;
  [[nodiscard]] const std::vector<std::byte>& chunk_at(std::int64_t first_row) const;

  Place m_place;
  std::string m_path;
  RowsRule m_rule;
  Dataset m_dataset;
  std::int64_t m_count = 0;
  std::int64_t m_chunk_rows = 1;
  std::vector<H5Z_filter_t> m_filters;     // in the order of writing
  mutable std::int64_t m_cached_row = -1;  // first row of the chunk in m_cached
  mutable std::vector<std::byte> m_cached;
};

}  // namespace driftscope::hdf5
