// SPDX-License-Identifier: Apache-2.0
// "Bring your own" HDF5: a dataset `logits`, and `tokens` where they are known. The layout is
// described in analysis/capture/FORMAT.md. Nothing in the file is trusted: only hard links of the
// root, plain storage, known filters and sizes that the file can hold are read.
#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <optional>

#include "analysis/capture/capture_layout.h"
#include "analysis/capture/hdf5_handle.h"
#include "analysis/import/logits/logit_formats.h"

namespace driftscope::logits {
namespace {

using hdf5::checked;
using hdf5::Place;
using hdf5::throw_rule;

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
constexpr std::uint64_t kMostRatio = 1032;  // of deflate
constexpr std::size_t kMostText = 4096;

struct OpenFile {
  hdf5::File file;
  hdf5::Dataset rows;
  hdf5::Datatype type;
};

std::optional<std::string> text_attribute(const Place& place, hid_t object, const char* name) {
  if (checked(H5Aexists(object, name), place, "H5Aexists", name) == 0) return std::nullopt;
  const hdf5::Attribute attribute(
      checked(H5Aopen(object, name, H5P_DEFAULT), place, "H5Aopen", name));
  const hdf5::Datatype type(checked(H5Aget_type(attribute.id()), place, "H5Aget_type", name));
  if (H5Tget_class(type.id()) != H5T_STRING) throw_rule(place, name, "is no text");
  const hdf5::Dataspace space(checked(H5Aget_space(attribute.id()), place, "H5Aget_space", name));
  if (H5Sget_simple_extent_npoints(space.id()) != 1) throw_rule(place, name, "is no single text");
  if (H5Tis_variable_str(type.id()) > 0) {
    char* value = nullptr;
    checked(H5Aread(attribute.id(), type.id(), static_cast<void*>(&value)), place, "H5Aread", name);
    std::string text = value == nullptr ? std::string() : std::string(value).substr(0, kMostText);
    H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, static_cast<void*>(&value));
    return text;
  }
  const std::size_t size = H5Tget_size(type.id());
  if (size == 0 || size > kMostText) throw_rule(place, name, "is too long");
  std::string text(size, '\0');
  checked(H5Aread(attribute.id(), type.id(), text.data()), place, "H5Aread", name);
  return text.substr(0, text.find('\0'));
}

// A dataset right under the root, by a hard link.
std::optional<hdf5::Dataset> open_plain(const Place& place, hid_t file, const char* name) {
  if (checked(H5Lexists(file, name, H5P_DEFAULT), place, "H5Lexists", name) == 0) {
    return std::nullopt;
  }
  H5L_info_t link{};
  checked(H5Lget_info(file, name, &link, H5P_DEFAULT), place, "H5Lget_info", name);
  if (link.type != H5L_TYPE_HARD) throw_rule(place, name, "is a link to elsewhere");
  hdf5::Dataset dataset(checked(H5Dopen2(file, name, H5P_DEFAULT), place, "H5Dopen2", name));
  const hdf5::PropertyList creation(
      checked(H5Dget_create_plist(dataset.id()), place, "H5Dget_create_plist", name));
  if (H5Pget_layout(creation.id()) == H5D_VIRTUAL || H5Pget_external_count(creation.id()) != 0) {
    throw_rule(place, name, "keeps its data in other files");
  }
  const int filters = checked(H5Pget_nfilters(creation.id()), place, "H5Pget_nfilters", name);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    const auto filter = H5Pget_filter2(creation.id(), static_cast<unsigned>(i), &flags, &values,
                                       nullptr, 0, nullptr, nullptr);
    if (filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_DEFLATE &&
        filter != H5Z_FILTER_FLETCHER32) {
      throw_rule(place, name,
                 fmt::format("uses filter {}; shuffle, deflate and fletcher32 are read",
                             static_cast<int>(filter)));
    }
  }
  return dataset;
}

std::vector<std::uint64_t> extents_of(const Place& place, const hdf5::Dataset& dataset,
                                      const char* name) {
  const hdf5::Dataspace space(checked(H5Dget_space(dataset.id()), place, "H5Dget_space", name));
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (rank < 1 || rank > 2) throw_rule(place, name, "has neither one nor two extents");
  std::array<hsize_t, 2> extents{};
  checked(H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr), place,
          "H5Sget_simple_extent_dims", name);
  return {extents.begin(), extents.begin() + rank};
}

ElementType float_type(const Place& place, const hdf5::Dataset& dataset, hid_t type,
                       const char* name) {
  const std::size_t size = H5Tget_size(type);
  const auto stated = text_attribute(place, dataset.id(), "dtype");
  if (H5Tget_class(type) == H5T_INTEGER && size == 2 && H5Tget_order(type) == H5T_ORDER_LE) {
    if (stated == "bf16" || stated == "bfloat16") return ElementType::bf16;
    if (stated == "f16" || stated == "float16") return ElementType::f16;
    throw_rule(place, name, "has 16-bit integers without an attribute dtype = \"bf16\" or \"f16\"");
  }
  if (H5Tequal(type, H5T_IEEE_F32LE) > 0) return ElementType::f32;
  if (H5Tequal(type, H5T_IEEE_F64LE) > 0) return ElementType::f64;
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  if (H5Tget_class(type) == H5T_FLOAT && size == 2 && H5Tget_order(type) == H5T_ORDER_LE &&
      H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
      sign == 15 && mantissa == 0 && exponent == mantissa_bits) {
    if (exponent_bits == 5 && H5Tget_ebias(type) == 15) return ElementType::f16;
    if (exponent_bits == 8 && H5Tget_ebias(type) == 127) return ElementType::bf16;
  }
  throw_rule(place, name,
             "has elements that are not little-endian f32, f64, f16 or bf16 (uint16 with an "
             "attribute dtype)");
}

// What the extents claim against what the file can hold.
void check_extents(const Place& place, const hdf5::Dataset& dataset, const char* name,
                   std::uint64_t bytes, std::uint64_t file_bytes) {
  const hdf5::PropertyList creation(
      checked(H5Dget_create_plist(dataset.id()), place, "H5Dget_create_plist", name));
  const bool chunked = H5Pget_layout(creation.id()) == H5D_CHUNKED;
  if (chunked) {
    std::array<hsize_t, 2> chunk{1, 1};
    checked(H5Pget_chunk(creation.id(), 2, chunk.data()), place, "H5Pget_chunk", name);
    if (chunk[0] > (hsize_t{1} << 27) / 8 || chunk[1] > (hsize_t{1} << 27) / 8 / chunk[0]) {
      throw_rule(place, name, "has chunks above 128 MiB");
    }
  }
  if (bytes / (chunked ? kMostRatio : 1) > file_bytes) {
    throw_rule(place, name,
               fmt::format("claims {} bytes, which a file of {} cannot hold", bytes, file_bytes));
  }
}

std::vector<std::int32_t> read_tokens(const Place& place, const hdf5::Dataset& dataset,
                                      std::uint64_t file_bytes) {
  const char* name = "tokens";
  const auto extents = extents_of(place, dataset, name);
  const hdf5::Datatype type(checked(H5Dget_type(dataset.id()), place, "H5Dget_type", name));
  if (extents.size() != 1 || H5Tget_class(type.id()) != H5T_INTEGER ||
      extents[0] > static_cast<std::uint64_t>(kMostLogitRows)) {
    throw_rule(place, name, "is no list of integers");
  }
  check_extents(place, dataset, name, extents[0] * H5Tget_size(type.id()), file_bytes);
  std::vector<std::int64_t> wide(extents[0]);
  checked(H5Dread(dataset.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, wide.data()),
          place, "H5Dread", name);
  std::vector<std::int32_t> ids;
  for (const std::int64_t id : wide) {
    if (!std::in_range<std::int32_t>(id)) throw_rule(place, name, "holds an id beyond 32 bits");
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return ids;
}

struct Opened {
  std::shared_ptr<OpenFile> file;
  ElementType element = ElementType::f32;
  std::vector<std::uint64_t> extents;
  std::optional<std::vector<std::int32_t>> tokens;
  std::optional<std::string> values, model, scored;
};

Opened open_all(const Place& place, const LogitSource& source) {
  hdf5::initialise();
  Opened opened;
  opened.file = std::make_shared<OpenFile>();
  opened.file->file = hdf5::File(
      checked(H5Fopen(source.path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), place, "H5Fopen", "file"));
  const hid_t file = opened.file->file.id();
  const hdf5::Group root(checked(H5Gopen2(file, "/", H5P_DEFAULT), place, "H5Gopen2", "/"));
  if (text_attribute(place, root.id(), "format") == layout::kFormatName) {
    throw_rule(place, "file", "is a capture already: driftscope compare takes it as it is");
  }
  auto rows = open_plain(place, file, "logits");
  if (!rows) throw_rule(place, "/logits", "is not there; FORMAT.md says what is read");
  opened.file->rows = std::move(*rows);
  opened.file->type =
      hdf5::Datatype(checked(H5Dget_type(opened.file->rows.id()), place, "H5Dget_type", "logits"));
  opened.element = float_type(place, opened.file->rows, opened.file->type.id(), "logits");
  opened.extents = extents_of(place, opened.file->rows, "logits");
  if (opened.extents.size() != 2 ||
      opened.extents[0] > static_cast<std::uint64_t>(kMostLogitRows) ||
      opened.extents[1] > static_cast<std::uint64_t>(kMostLogitColumns) || opened.extents[0] < 1 ||
      opened.extents[1] < 2) {
    throw_rule(place, "/logits", "is no matrix [steps, vocabulary]");
  }
  check_extents(place, opened.file->rows, "logits",
                opened.extents[0] * opened.extents[1] * element_bytes(opened.element),
                source.bytes.size());
  if (auto tokens = open_plain(place, file, "tokens")) {
    opened.tokens = read_tokens(place, *tokens, source.bytes.size());
  }
  opened.values = text_attribute(place, root.id(), "values");
  opened.model = text_attribute(place, root.id(), "model");
  opened.scored = text_attribute(place, root.id(), "tokens_are");
  return opened;
}

void read_row(const Place& place, const OpenFile& open, std::int64_t row, std::string& bytes) {
  const hdf5::Dataspace space(
      checked(H5Dget_space(open.rows.id()), place, "H5Dget_space", "logits"));
  std::array<hsize_t, 2> start{static_cast<hsize_t>(row), 0};
  std::array<hsize_t, 2> extent{};
  checked(H5Sget_simple_extent_dims(space.id(), extent.data(), nullptr), place,
          "H5Sget_simple_extent_dims", "logits");
  const std::array<hsize_t, 2> count{1, extent[1]};
  checked(
      H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
      place, "H5Sselect_hyperslab", "logits");
  const hdf5::Dataspace memory(
      checked(H5Screate_simple(2, count.data(), nullptr), place, "H5Screate_simple", "logits"));
  // The type of the file: HDF5's own conversions do not round as stated.
  checked(
      H5Dread(open.rows.id(), open.type.id(), memory.id(), space.id(), H5P_DEFAULT, bytes.data()),
      place, "H5Dread", "logits");
}

}  // namespace

bool is_hdf5(std::string_view bytes) { return bytes.starts_with(kSignature); }

Result<LogitFile> read_own_hdf5(const LogitSource& source) {
  const Place place{.kind = ErrorKind::malformed, .file = source.name};
  if (source.path.empty()) return broken_file(source, "HDF5 is read from a file, not from a pipe");
  auto opened = hdf5::guard(place, [&] { return open_all(place, source); });
  if (!opened) return tl::unexpected<Error>(opened.error());
  LogitFile file;
  file.rows = static_cast<std::int64_t>(opened->extents[0]);
  file.vocabulary = static_cast<std::int64_t>(opened->extents[1]);
  file.element = element_name(opened->element);
  if (opened->values) {
    if (*opened->values != "logit" && *opened->values != "log_probability") {
      return broken_file(source, "attribute values: neither \"logit\" nor \"log_probability\"");
    }
    file.values = *opened->values;
  }
  if (opened->model) file.model = *opened->model;
  if (opened->tokens) {
    if (auto set = set_tokens(file, source, std::move(*opened->tokens), false); !set) {
      return tl::unexpected<Error>(set.error());
    }
    file.scored = opened->scored != "generated";
  }
  const auto width = static_cast<std::size_t>(file.vocabulary) * element_bytes(opened->element);
  file.read = [open = opened->file, place, element = opened->element, width,
               bytes = std::make_shared<std::string>()](std::int64_t row,
                                                        std::span<float> target) -> Result<void> {
    bytes->resize(width);
    auto read = hdf5::guard(place, [&] { read_row(place, *open, row, *bytes); });
    if (!read) return read;
    read_numbers(element, *bytes, target);
    return {};
  };
  return file;
}

}  // namespace driftscope::logits
