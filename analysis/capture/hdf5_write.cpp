// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/hdf5_write.h"

#include <algorithm>
#include <array>

#include "analysis/capture/capture_layout.h"
#include "analysis/capture/crc32c.h"

namespace driftscope::hdf5 {
namespace {

Datatype text_type(const Place& place, std::int64_t length, std::string_view object) {
  Datatype type(checked(H5Tcopy(H5T_C_S1), place, "H5Tcopy", object));
  checked(H5Tset_size(type.id(), static_cast<std::size_t>(std::max<std::int64_t>(length, 1))),
          place, "H5Tset_size", object);
  checked(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), place, "H5Tset_strpad", object);
  checked(H5Tset_cset(type.id(), H5T_CSET_UTF8), place, "H5Tset_cset", object);
  return type;
}

// `text` cut or filled with zeros to `length` bytes, at least one.
std::string padded(std::string_view text, std::int64_t length) {
  std::string bytes(text.substr(0, static_cast<std::size_t>(length)));
  bytes.resize(static_cast<std::size_t>(std::max<std::int64_t>(length, 1)), '\0');
  return bytes;
}

void write_attribute(const Place& place, hid_t object, const std::string& name, hid_t type,
                     const void* value) {
  const Dataspace scalar(checked(H5Screate(H5S_SCALAR), place, "H5Screate", name));
  Attribute attribute(
      checked(H5Acreate2(object, name.c_str(), type, scalar.id(), H5P_DEFAULT, H5P_DEFAULT), place,
              "H5Acreate2", name));
  checked(H5Awrite(attribute.id(), type, value), place, "H5Awrite", name);
  attribute.close(place, "H5Aclose", name);
}

void write_check_value(const Place& place, hid_t object, std::uint32_t value) {
  write_int_attribute(place, object, std::string(layout::kCheckAttribute), value);
}

Attribute open_attribute(const Place& place, hid_t object, const std::string& name) {
  return Attribute(checked(H5Aopen(object, name.c_str(), H5P_DEFAULT), place, "H5Aopen", name));
}

}  // namespace

Group make_group(const Place& place, hid_t parent, const std::string& path) {
  const PropertyList creation(checked(H5Pcreate(H5P_GROUP_CREATE), place, "H5Pcreate", path));
  // Attributes stay in the object header, where they can be rewritten under SWMR.
  checked(H5Pset_attr_phase_change(creation.id(), 64, 48), place, "H5Pset_attr_phase_change", path);
  return Group(checked(H5Gcreate2(parent, path.c_str(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
                       place, "H5Gcreate2", path));
}

void write_text_attribute(const Place& place, hid_t object, const std::string& name,
                          std::string_view text, std::int64_t length) {
  if (length == 0) length = static_cast<std::int64_t>(text.size());
  const Datatype type = text_type(place, length, name);
  write_attribute(place, object, name, type.id(), padded(text, length).data());
}

void rewrite_text_attribute(const Place& place, hid_t object, const std::string& name,
                            std::string_view text) {
  Attribute attribute = open_attribute(place, object, name);
  const Datatype type(checked(H5Aget_type(attribute.id()), place, "H5Aget_type", name));
  const auto length = static_cast<std::int64_t>(H5Tget_size(type.id()));
  checked(H5Awrite(attribute.id(), type.id(), padded(text, length).data()), place, "H5Awrite",
          name);
  attribute.close(place, "H5Aclose", name);
}

void write_int_attribute(const Place& place, hid_t object, const std::string& name,
                         std::int64_t value) {
  write_attribute(place, object, name, H5T_STD_I64LE, &value);
}

void rewrite_int_attribute(const Place& place, hid_t object, const std::string& name,
                           std::int64_t value) {
  Attribute attribute = open_attribute(place, object, name);
  checked(H5Awrite(attribute.id(), H5T_STD_I64LE, &value), place, "H5Awrite", name);
  attribute.close(place, "H5Aclose", name);
}

void write_text(const Place& place, hid_t parent, const std::string& path, std::string_view text) {
  const Datatype type = text_type(place, static_cast<std::int64_t>(text.size()), path);
  const Dataspace scalar(checked(H5Screate(H5S_SCALAR), place, "H5Screate", path));
  Dataset dataset(checked(H5Dcreate2(parent, path.c_str(), type.id(), scalar.id(), H5P_DEFAULT,
                                     H5P_DEFAULT, H5P_DEFAULT),
                          place, "H5Dcreate2", path));
  const std::string bytes = padded(text, static_cast<std::int64_t>(text.size()));
  checked(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), place,
          "H5Dwrite", path);
  write_check_value(place, dataset.id(), crc32c(bytes.data(), bytes.size()));
  dataset.close(place, "H5Dclose", path);
}

void write_vector(const Place& place, hid_t parent, const std::string& path, hid_t type,
                  const void* values, std::int64_t count) {
  const auto extent = static_cast<hsize_t>(count);
  const Dataspace space(
      checked(H5Screate_simple(1, &extent, nullptr), place, "H5Screate_simple", path));
  Dataset dataset(checked(
      H5Dcreate2(parent, path.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      place, "H5Dcreate2", path));
  if (count > 0) {
    checked(H5Dwrite(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), place, "H5Dwrite",
            path);
  }
  const std::size_t bytes = static_cast<std::size_t>(count) * H5Tget_size(type);
  write_check_value(place, dataset.id(), crc32c(values, bytes));
  dataset.close(place, "H5Dclose", path);
}

void Table::create(const Place& place, hid_t parent, const std::string& path,
                   const TableShape& shape) {
  const int rank = shape.width == 0 ? 1 : 2;
  const auto width = static_cast<hsize_t>(shape.width);
  const std::array<hsize_t, 2> extent{0, width};
  const std::array<hsize_t, 2> maximum{H5S_UNLIMITED, width};
  const std::array<hsize_t, 2> chunk{static_cast<hsize_t>(shape.rows_per_chunk), width};
  const Dataspace space(checked(H5Screate_simple(rank, extent.data(), maximum.data()), place,
                                "H5Screate_simple", path));
  const PropertyList creation(checked(H5Pcreate(H5P_DATASET_CREATE), place, "H5Pcreate", path));
  checked(H5Pset_chunk(creation.id(), rank, chunk.data()), place, "H5Pset_chunk", path);
  // Rows are always written whole before the extent that shows them is flushed.
  checked(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), place, "H5Pset_fill_time", path);
  if (shape.deflate > 0) {
    checked(H5Pset_shuffle(creation.id()), place, "H5Pset_shuffle", path);
    checked(H5Pset_deflate(creation.id(), static_cast<unsigned>(shape.deflate)), place,
            "H5Pset_deflate", path);
  }
  const PropertyList links(checked(H5Pcreate(H5P_LINK_CREATE), place, "H5Pcreate", path));
  checked(H5Pset_create_intermediate_group(links.id(), 1), place,
          "H5Pset_create_intermediate_group", path);
  Dataset dataset(checked(H5Dcreate2(parent, path.c_str(), shape.type, space.id(), links.id(),
                                     creation.id(), H5P_DEFAULT),
                          place, "H5Dcreate2", path));
  dataset.close(place, "H5Dclose", path);
}

Table Table::open(const Place& place, hid_t parent, const std::string& path,
                  const TableShape& shape) {
  const PropertyList access(checked(H5Pcreate(H5P_DATASET_ACCESS), place, "H5Pcreate", path));
  // Without a chunk cache a row goes to the file at once and alone, whatever the size of its chunk.
  checked(H5Pset_chunk_cache(access.id(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, 0, 1.0), place,
          "H5Pset_chunk_cache", path);
  Table table;
  table.m_place = place;
  table.m_path = path;
  table.m_shape = shape;
  table.m_dataset =
      Dataset(checked(H5Dopen2(parent, path.c_str(), access.id()), place, "H5Dopen2", path));
  return table;
}

void Table::append(const void* rows, std::int64_t count) {
  if (count == 0) return;
  const int rank = m_shape.width == 0 ? 1 : 2;
  const auto width = static_cast<hsize_t>(m_shape.width);
  const std::array<hsize_t, 2> extent{static_cast<hsize_t>(m_rows + count), width};
  const std::array<hsize_t, 2> start{static_cast<hsize_t>(m_rows), 0};
  const std::array<hsize_t, 2> block{static_cast<hsize_t>(count), width};
  checked(H5Dset_extent(m_dataset.id(), extent.data()), m_place, "H5Dset_extent", m_path);
  const Dataspace file_space(
      checked(H5Dget_space(m_dataset.id()), m_place, "H5Dget_space", m_path));
  checked(H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start.data(), nullptr, block.data(),
                              nullptr),
          m_place, "H5Sselect_hyperslab", m_path);
  const Dataspace memory_space(
      checked(H5Screate_simple(rank, block.data(), nullptr), m_place, "H5Screate_simple", m_path));
  checked(
      H5Dwrite(m_dataset.id(), m_shape.type, memory_space.id(), file_space.id(), H5P_DEFAULT, rows),
      m_place, "H5Dwrite", m_path);
  m_rows += count;
}

void Table::close() { m_dataset.close(m_place, "H5Dclose", m_path); }

}  // namespace driftscope::hdf5
