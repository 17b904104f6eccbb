// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "analysis/capture/capture_layout.h"
#include "analysis/capture/hdf5_read.h"

namespace driftscope::hdf5 {
namespace {

void check_filters(const Place& place, hid_t creation, const std::string& path, bool allowed) {
  const int filters = checked(H5Pget_nfilters(creation), place, "H5Pget_nfilters", path);
  if (filters > 3) throw_rule(place, path, "more than three filters");
  for (int i = 0; i < filters; ++i) {
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
                 fmt::format("filter {} is not allowed here; run `h5repack -f NONE` on it first",
                             static_cast<int>(filter)));
    }
  }
}

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
  const int rank = rule.width == 0 ? 1 : 2;
  std::array<hsize_t, 2> chunk{1, 1};
  std::array<hsize_t, 2> extent{0, 0};
  const Dataspace space(checked(H5Dget_space(m_dataset.id()), m_place, "H5Dget_space", m_path));
  if (H5Pget_layout(creation.id()) != H5D_CHUNKED ||
      H5Sget_simple_extent_ndims(space.id()) != rank) {
    throw_rule(m_place, m_path, fmt::format("not chunked with {} dimensions", rank));
  }
  checked(H5Pget_chunk(creation.id(), rank, chunk.data()), m_place, "H5Pget_chunk", m_path);
  checked(H5Sget_simple_extent_dims(space.id(), extent.data(), nullptr), m_place,
          "H5Sget_simple_extent_dims", m_path);
  const auto limit = static_cast<hsize_t>(layout::kMaximumChunk);
  if (chunk[0] > limit || chunk[1] > limit / chunk[0] / H5Tget_size(rule.type)) {
    throw_rule(m_place, m_path, fmt::format("chunks of more than {} bytes", limit));
  }
  if (rank == 2 && extent[1] != static_cast<hsize_t>(rule.width)) {
    throw_rule(m_place, m_path,
               fmt::format("rows of {} where {} are expected", extent[1], rule.width));
  }
  if (extent[0] > (hsize_t{1} << 48U)) throw_rule(m_place, m_path, "an impossible number of rows");
  m_count = static_cast<std::int64_t>(extent[0]);
  check_filters(m_place, creation.id(), m_path, rule.filters);
  m_filtered = H5Pget_nfilters(creation.id()) > 0;
}

std::int64_t Rows::storage_bytes() const {
  return static_cast<std::int64_t>(H5Dget_storage_size(m_dataset.id()));
}

void Rows::read(std::int64_t first, std::int64_t count, void* target) const {
  read_block(first, count, 0, m_rule.width, target);
}

void Rows::read_column(std::int64_t first, std::int64_t count, std::int64_t column,
                       void* target) const {
  read_block(first, count, column, 1, target);
}

void Rows::read_block(std::int64_t first, std::int64_t count, std::int64_t column,
                      std::int64_t width, void* target) const {
  if (count == 0) return;
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

}  // namespace driftscope::hdf5
