// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "analysis/capture/capture_layout.h"
#include "analysis/capture/chunk_filters.h"
#include "analysis/capture/hdf5_read.h"

namespace driftscope::hdf5 {
namespace {

constexpr int kMaximumFilters = 3;

std::vector<H5Z_filter_t> read_filters(const Place& place, hid_t creation, const std::string& path,
                                       bool allowed) {
  const int count = checked(H5Pget_nfilters(creation), place, "H5Pget_nfilters", path);
  if (count > kMaximumFilters) throw_rule(place, path, "more than three filters");
  std::vector<H5Z_filter_t> filters;
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    unsigned configuration = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter =
        checked(H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, 0,
                               nullptr, &configuration),
                place, "H5Pget_filter2", path);
    const bool known = filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_DEFLATE ||
                       filter == H5Z_FILTER_FLETCHER32;
    if (!allowed || !known) {
      throw_rule(place, path,
                 fmt::format("filter {} is not allowed here; run `h5repack -f NONE` on the file",
                             static_cast<int>(filter)));
    }
    filters.push_back(filter);
  }
  return filters;
}

// A chunk may grow a little by compression that does not pay.
std::size_t largest_stored(std::size_t size) { return size + size / 64 + 4096; }

}  // namespace

Rows::Rows(const SafeFile& file, std::string path, const RowsRule& rule)
    : m_place(file.place()),
      m_path(std::move(path)),
      m_rule(rule),
      m_dataset(file.open_dataset(m_path)) {
  const Datatype stored(checked(H5Dget_type(m_dataset.id()), m_place, "H5Dget_type", m_path));
  if (checked(H5Tequal(stored.id(), rule.type), m_place, "H5Tequal", m_path) == 0) {
    throw_rule(m_place, m_path, "not of the element type that FORMAT.md prescribes");
  }
  const PropertyList creation(
      checked(H5Dget_create_plist(m_dataset.id()), m_place, "H5Dget_create_plist", m_path));
  m_filters = read_filters(m_place, creation.id(), m_path, rule.filters);
  check_shape(creation);
}

void Rows::check_shape(const PropertyList& creation) {
  const int rank = m_rule.width == 0 ? 1 : 2;
  std::array<hsize_t, 2> chunk{1, 1};
  std::array<hsize_t, 2> extent{0, 0};
  const Dataspace space(checked(H5Dget_space(m_dataset.id()), m_place, "H5Dget_space", m_path));
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED ||
      H5Sget_simple_extent_ndims(space.id()) != rank) {
    throw_rule(m_place, m_path, fmt::format("not chunked with {} dimension(s)", rank));
  }
  checked(H5Pget_chunk(creation.id(), rank, chunk.data()), m_place, "H5Pget_chunk", m_path);
  checked(H5Sget_simple_extent_dims(space.id(), extent.data(), nullptr), m_place,
          "H5Sget_simple_extent_dims", m_path);
  const auto limit = static_cast<hsize_t>(layout::kMaximumChunk);
  if (chunk[0] > limit || chunk[1] > limit / chunk[0] / H5Tget_size(m_rule.type)) {
    throw_rule(m_place, m_path, fmt::format("chunks of more than {} bytes", limit));
  }
  const auto width = static_cast<hsize_t>(m_rule.width);
  if (rank == 2 && extent[1] != width) {
    throw_rule(m_place, m_path, fmt::format("rows of {} where {} are expected", extent[1], width));
  }
  if (rank == 2 && !m_filters.empty() && chunk[1] != width) {
    throw_rule(m_place, m_path, "compressed chunks that hold parts of rows");
  }
  if (extent[0] > (hsize_t{1} << 48U)) throw_rule(m_place, m_path, "an impossible number of rows");
  m_count = static_cast<std::int64_t>(extent[0]);
  m_chunk_rows = static_cast<std::int64_t>(chunk[0]);
}

std::int64_t Rows::storage_bytes() const {
  return static_cast<std::int64_t>(H5Dget_storage_size(m_dataset.id()));
}

void Rows::read(std::int64_t first, std::int64_t count, void* target) const {
  read_block(first, count, 0, std::max<std::int64_t>(m_rule.width, 1), target);
}

void Rows::read_column(std::int64_t first, std::int64_t count, std::int64_t column,
                       void* target) const {
  read_block(first, count, column, 1, target);
}

void Rows::read_block(std::int64_t first, std::int64_t count, std::int64_t column,
                      std::int64_t width, void* target) const {
  if (count == 0) return;
  if (!m_filters.empty()) return read_filtered(first, count, column, width, target);
  const int rank = m_rule.width == 0 ? 1 : 2;
  const std::array<hsize_t, 2> start{static_cast<hsize_t>(first), static_cast<hsize_t>(column)};
  const std::array<hsize_t, 2> block{static_cast<hsize_t>(count), static_cast<hsize_t>(width)};
  const Dataspace file_space(
      checked(H5Dget_space(m_dataset.id()), m_place, "H5Dget_space", m_path));
  checked(H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start.data(), nullptr, block.data(),
                              nullptr),
          m_place, "H5Sselect_hyperslab", m_path);
  const Dataspace memory_space(
      checked(H5Screate_simple(rank, block.data(), nullptr), m_place, "H5Screate_simple", m_path));
  checked(
      H5Dread(m_dataset.id(), m_rule.type, memory_space.id(), file_space.id(), H5P_DEFAULT, target),
      m_place, "H5Dread", m_path);
}

void Rows::read_filtered(std::int64_t first, std::int64_t count, std::int64_t column,
                         std::int64_t width, void* target) const {
  const std::size_t element = H5Tget_size(m_rule.type);
  const auto row_elements = static_cast<std::size_t>(std::max<std::int64_t>(m_rule.width, 1));
  const std::size_t wanted = static_cast<std::size_t>(width) * element;
  auto* out = static_cast<std::byte*>(target);
  for (std::int64_t row = first; row < first + count; ++row, out += wanted) {
    const std::int64_t chunk_row = row / m_chunk_rows * m_chunk_rows;
    const std::vector<std::byte>& chunk = chunk_at(chunk_row);
    const std::size_t offset =
        static_cast<std::size_t>(row - chunk_row) * row_elements + static_cast<std::size_t>(column);
    std::memcpy(out, chunk.data() + offset * element, wanted);
  }
}

const std::vector<std::byte>& Rows::chunk_at(std::int64_t first_row) const {
  if (m_cached_row == first_row) return m_cached;
  const std::size_t element = H5Tget_size(m_rule.type);
  const std::size_t size = static_cast<std::size_t>(m_chunk_rows) *
                           static_cast<std::size_t>(std::max<std::int64_t>(m_rule.width, 1)) *
                           element;
  const std::array<hsize_t, 2> offset{static_cast<hsize_t>(first_row), 0};
  hsize_t stored_bytes = 0;
  checked(H5Dget_chunk_storage_size(m_dataset.id(), offset.data(), &stored_bytes), m_place,
          "H5Dget_chunk_storage_size", m_path);
  if (stored_bytes == 0 || stored_bytes > largest_stored(size)) {
    throw_rule(m_place, m_path,
               fmt::format("the chunk of step {} is not as large as it can be", first_row));
  }
  std::vector<std::byte> stored(static_cast<std::size_t>(stored_bytes));
  std::uint32_t skipped = 0;
  checked(H5Dread_chunk(m_dataset.id(), H5P_DEFAULT, offset.data(), &skipped, stored.data()),
          m_place, "H5Dread_chunk", m_path);
  m_cached_row = -1;
  m_cached = decode_chunk(m_place, m_path, std::move(stored), m_filters, skipped, size, element);
  m_cached_row = first_row;
  return m_cached;
}

}  // namespace driftscope::hdf5
