// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/hdf5_read.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "analysis/capture/capture_layout.h"
#include "analysis/capture/crc32c.h"

namespace driftscope::hdf5 {
namespace {

constexpr unsigned kMetadataReadAttempts = 20;
constexpr std::array<unsigned char, 8> kSignature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
constexpr unsigned char kOldestSuperblock = 2;  // the first whose metadata has checksums
constexpr unsigned char kNewestSuperblock = 3;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// What can be said without the library.
void check_signature(const Place& place) {
  struct stat status {};
  if (::stat(place.file.c_str(), &status) != 0) {
    throw Hdf5Failure{
        Error{place.kind,
              fmt::format("{}: cannot open: {}; check the path", place.file, std::strerror(errno)),
              {}}};
  }
  if (!S_ISREG(status.st_mode)) {
    throw Hdf5Failure{Error{
        place.kind, fmt::format("{}: not a regular file; name a capture (.h5)", place.file), {}}};
  }
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(place.file.c_str(), "rb"));
  if (file == nullptr) {
    throw Hdf5Failure{
        Error{place.kind,
              fmt::format("{}: cannot open: {}; check its mode", place.file, std::strerror(errno)),
              {}}};
  }
  std::array<unsigned char, 9> head{};
  const std::size_t got = std::fread(head.data(), 1, head.size(), file.get());
  if (got < head.size() || !std::equal(kSignature.begin(), kSignature.end(), head.begin())) {
    throw Hdf5Failure{Error{place.kind,
                            fmt::format("{}: not an HDF5 file (offset 0 has no HDF5 signature); "
                                        "name a capture written by driftscope (answers of servers: "
                                        "driftscope vendor; logits: driftscope import)",
                                        place.file),
                            {}}};
  }
  if (head[8] < kOldestSuperblock || head[8] > kNewestSuperblock) {
    throw Hdf5Failure{
        Error{place.kind,
              fmt::format("{}: superblock version {} at offset 8 is not one that driftscope "
                          "writes; run `h5repack --low=2 --high=2` on it first",
                          place.file, head[8]),
              {}}};
  }
}

File open_read_only(const Place& place) {
  const PropertyList access(checked(H5Pcreate(H5P_FILE_ACCESS), place, "H5Pcreate", "file"));
  checked(H5Pset_metadata_read_attempts(access.id(), kMetadataReadAttempts), place,
          "H5Pset_metadata_read_attempts", "file");
  // SWMR reading opens growing files and those of killed writers too; it needs superblock 3.
  const hid_t swmr = H5Fopen(place.file.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access.id());
  if (swmr >= 0) return File(swmr);
  H5Eclear2(H5E_DEFAULT);
  return File(
      checked(H5Fopen(place.file.c_str(), H5F_ACC_RDONLY, access.id()), place, "H5Fopen", "file"));
}

bool same_type(const Place& place, hid_t a, hid_t b, std::string_view object) {
  return checked(H5Tequal(a, b), place, "H5Tequal", object) > 0;
}

// Size of a fixed-length string type; refuses everything else.
std::int64_t text_length(const Place& place, hid_t type, std::string_view object,
                         std::int64_t limit) {
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0) {
    throw_rule(place, object, "not a fixed-length string");
  }
  const std::size_t length = H5Tget_size(type);
  if (length == 0 || length > static_cast<std::size_t>(limit)) {
    throw_rule(place, object,
               fmt::format("a text of {} bytes; at most {} are read", length, limit));
  }
  return static_cast<std::int64_t>(length);
}

PropertyList creation_properties(const Place& place, const Dataset& dataset,
                                 const std::string& path) {
  return PropertyList(
      checked(H5Dget_create_plist(dataset.id()), place, "H5Dget_create_plist", path));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, 64));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E) c = '?';
  }
  return shown;
}

SafeFile::SafeFile(const std::filesystem::path& path)
    : m_place{.kind = ErrorKind::malformed, .file = path.string()} {
  initialise();
  check_signature(m_place);
  m_file = open_read_only(m_place);
}

std::int64_t SafeFile::size() const {
  void* handle = nullptr;
  checked(H5Fget_vfd_handle(m_file.id(), H5P_DEFAULT, &handle), m_place, "H5Fget_vfd_handle",
          "file");
  struct stat status {};
  if (::fstat(*static_cast<int*>(handle), &status) != 0) {
    throw_rule(m_place, "file", "its size cannot be read");
  }
  return static_cast<std::int64_t>(status.st_size);
}

bool SafeFile::exists(const std::string& path) const {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    const htri_t found = checked(H5Lexists(m_file.id(), part.c_str(), H5P_DEFAULT), m_place,
                                 "H5Lexists", printable(part));
    if (found == 0) return false;
    H5L_info_t info{};
    checked(H5Lget_info(m_file.id(), part.c_str(), &info, H5P_DEFAULT), m_place, "H5Lget_info",
            printable(part));
    if (info.type != H5L_TYPE_HARD) {
      throw_rule(m_place, printable(part), "a soft or external link; captures hold none");
    }
    if (end == std::string::npos) return true;
  }
}

Object SafeFile::open_object(const std::string& path, H5O_type_t type) const {
  if (path != "/" && !exists(path)) throw_rule(m_place, printable(path), "missing");
  Object object(checked(H5Oopen(m_file.id(), path.c_str(), H5P_DEFAULT), m_place, "H5Oopen", path));
  H5O_info_t info{};
  checked(H5Oget_info(object.id(), &info), m_place, "H5Oget_info", path);
  if (info.type != type) {
    throw_rule(m_place, path, type == H5O_TYPE_GROUP ? "not a group" : "not a dataset");
  }
  return object;
}

Group SafeFile::open_group(const std::string& path) const {
  const Object checked_object = open_object(path, H5O_TYPE_GROUP);
  return Group(
      checked(H5Gopen2(m_file.id(), path.c_str(), H5P_DEFAULT), m_place, "H5Gopen2", path));
}

Dataset SafeFile::open_dataset(const std::string& path) const {
  const Object checked_object = open_object(path, H5O_TYPE_DATASET);
  const PropertyList access(checked(H5Pcreate(H5P_DATASET_ACCESS), m_place, "H5Pcreate", path));
  // Rows are read once and whole, so a cache of chunks would only hold memory.
  checked(H5Pset_chunk_cache(access.id(), H5D_CHUNK_CACHE_NSLOTS_DEFAULT, 0, 1.0), m_place,
          "H5Pset_chunk_cache", path);
  Dataset dataset(
      checked(H5Dopen2(m_file.id(), path.c_str(), access.id()), m_place, "H5Dopen2", path));
  const PropertyList creation = creation_properties(m_place, dataset, path);
  const H5D_layout_t storage = H5Pget_layout(creation.id());
  if (storage != H5D_CONTIGUOUS && storage != H5D_CHUNKED) {
    throw_rule(m_place, path, "neither contiguous nor chunked (virtual layouts are refused)");
  }
  if (checked(H5Pget_external_count(creation.id()), m_place, "H5Pget_external_count", path) != 0) {
    throw_rule(m_place, path, "stored in another file; captures are whole");
  }
  return dataset;
}

// The library reads zeros where a file ends too early.
void SafeFile::check_storage(const Dataset& dataset, const std::string& path,
                             std::uint64_t bytes) const {
  const PropertyList creation = creation_properties(m_place, dataset, path);
  if (H5Pget_layout(creation.id()) != H5D_CONTIGUOUS) throw_rule(m_place, path, "not contiguous");
  if (bytes == 0) return;
  const auto end = static_cast<std::uint64_t>(size());
  const haddr_t offset = H5Dget_offset(dataset.id());
  if (bytes > end || offset > end - bytes) {
    throw_rule(m_place, path, fmt::format("its {} bytes reach beyond the end of the file", bytes));
  }
}

void SafeFile::check_value(const Dataset& dataset, const std::string& path, const void* bytes,
                           std::size_t size) const {
  const std::int64_t stored =
      read_int_attribute(m_place, dataset.id(), std::string(layout::kCheckAttribute));
  if (stored != std::int64_t{crc32c(bytes, size)}) {
    throw_rule(m_place, path, "fails its check value; the file is damaged");
  }
}

std::string SafeFile::read_text(const std::string& path) const {
  const Dataset dataset = open_dataset(path);
  const Datatype type(checked(H5Dget_type(dataset.id()), m_place, "H5Dget_type", path));
  const std::int64_t length =
      text_length(m_place, type.id(), path, std::min(layout::kMaximumText, size()));
  const Dataspace space(checked(H5Dget_space(dataset.id()), m_place, "H5Dget_space", path));
  if (H5Sget_simple_extent_type(space.id()) != H5S_SCALAR) {
    throw_rule(m_place, path, "not a single text");
  }
  check_storage(dataset, path, static_cast<std::uint64_t>(length));
  std::string text(static_cast<std::size_t>(length), '\0');
  checked(H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), m_place,
          "H5Dread", path);
  check_value(dataset, path, text.data(), text.size());
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

std::int64_t SafeFile::count(const std::string& path, hid_t type) const {
  const Dataset dataset = open_dataset(path);
  const Datatype stored(checked(H5Dget_type(dataset.id()), m_place, "H5Dget_type", path));
  if (!same_type(m_place, stored.id(), type, path)) {
    throw_rule(m_place, path, "not of the element type that FORMAT.md prescribes");
  }
  const Dataspace space(checked(H5Dget_space(dataset.id()), m_place, "H5Dget_space", path));
  if (H5Sget_simple_extent_ndims(space.id()) != 1) throw_rule(m_place, path, "not a vector");
  const auto elements = static_cast<std::uint64_t>(checked(
      H5Sget_simple_extent_npoints(space.id()), m_place, "H5Sget_simple_extent_npoints", path));
  if (elements > static_cast<std::uint64_t>(size())) {
    throw_rule(m_place, path, fmt::format("{} elements do not fit into the file", elements));
  }
  check_storage(dataset, path, elements * H5Tget_size(type));
  return static_cast<std::int64_t>(elements);
}

template <class T>
T SafeFile::read_vector(const std::string& path, hid_t type) const {
  T values;
  values.resize(static_cast<std::size_t>(count(path, type)));
  if (values.empty()) return values;
  const Dataset dataset = open_dataset(path);
  checked(H5Dread(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), m_place,
          "H5Dread", path);
  // The number of steps changes while a writer works; it is checked against the rows instead.
  if (!path.ends_with("/steps_complete")) {
    check_value(dataset, path, values.data(), values.size() * sizeof(typename T::value_type));
  }
  return values;
}

std::vector<std::int32_t> SafeFile::read_int32(const std::string& path) const {
  return read_vector<std::vector<std::int32_t>>(path, H5T_STD_I32LE);
}
std::vector<std::int64_t> SafeFile::read_int64(const std::string& path) const {
  return read_vector<std::vector<std::int64_t>>(path, H5T_STD_I64LE);
}
std::string SafeFile::read_bytes(const std::string& path) const {
  return read_vector<std::string>(path, H5T_STD_U8LE);
}

bool has_attribute(const Place& place, hid_t object, const std::string& name) {
  return checked(H5Aexists(object, name.c_str()), place, "H5Aexists", name) > 0;
}

std::string read_text_attribute(const Place& place, hid_t object, const std::string& name) {
  if (!has_attribute(place, object, name)) throw_rule(place, "attribute " + name, "missing");
  const Attribute attribute(
      checked(H5Aopen(object, name.c_str(), H5P_DEFAULT), place, "H5Aopen", name));
  const Datatype type(checked(H5Aget_type(attribute.id()), place, "H5Aget_type", name));
  const std::int64_t length =
      text_length(place, type.id(), "attribute " + name, layout::kMaximumAttribute);
  const Dataspace space(checked(H5Aget_space(attribute.id()), place, "H5Aget_space", name));
  if (H5Sget_simple_extent_npoints(space.id()) != 1) {
    throw_rule(place, "attribute " + name, "not a single text");
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  checked(H5Aread(attribute.id(), type.id(), text.data()), place, "H5Aread", name);
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

std::int64_t read_int_attribute(const Place& place, hid_t object, const std::string& name) {
  if (!has_attribute(place, object, name)) throw_rule(place, "attribute " + name, "missing");
  const Attribute attribute(
      checked(H5Aopen(object, name.c_str(), H5P_DEFAULT), place, "H5Aopen", name));
  const Datatype type(checked(H5Aget_type(attribute.id()), place, "H5Aget_type", name));
  const Dataspace space(checked(H5Aget_space(attribute.id()), place, "H5Aget_space", name));
  if (!same_type(place, type.id(), H5T_STD_I64LE, name) ||
      H5Sget_simple_extent_npoints(space.id()) != 1) {
    throw_rule(place, "attribute " + name, "not a single 64-bit integer");
  }
  std::int64_t value = 0;
  checked(H5Aread(attribute.id(), H5T_STD_I64LE, &value), place, "H5Aread", name);
  return value;
}

}  // namespace driftscope::hdf5
