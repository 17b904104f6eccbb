// SPDX-License-Identifier: Apache-2.0
#include "engine/model/gguf_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "engine/model/gguf_fields.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

// Part `number` (from 1) of the model that `path` is part `known` of: "name-00002-of-00003.gguf".
Result<fs::path> path_of_part(const fs::path& path, std::int64_t known, std::int64_t number,
                              std::int64_t parts) {
  const auto ending = [parts](std::int64_t part) {
    return fmt::format("-{:05}-of-{:05}.gguf", part, parts);
  };
  const std::string name = path.filename().string();
  const std::string expected = ending(known);
  if (!name.ends_with(expected)) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: is part {} of {} by its metadata, but its name does not end in "
                            "{}; give the files their names back",
                            display_path(path), known, parts, expected));
  }
  return path.parent_path() / (name.substr(0, name.size() - expected.size()) + ending(number));
}

}  // namespace

Result<GgufSource::Part> GgufSource::open_part(const fs::path& path) {
  auto file = MappedFile::open(path);
  if (!file) return tl::unexpected(std::move(file.error()));
  auto header = parse_gguf(file->bytes(), display_path(path));
  if (!header) return tl::unexpected(std::move(header.error()));
  return Part{.path = path, .file = std::move(*file), .header = std::move(*header)};
}

Result<std::unique_ptr<GgufSource>> GgufSource::open(const fs::path& path) {
  auto source = std::make_unique<GgufSource>();
  auto part = open_part(path);
  if (!part) return tl::unexpected(std::move(part.error()));
  source->m_parts.push_back(std::move(*part));
  if (auto done = source->open_other_parts(); !done) return tl::unexpected(done.error());
  if (auto done = source->collect(); !done) return tl::unexpected(done.error());
  return source;
}

Result<void> GgufSource::open_other_parts() {
  constexpr std::int64_t kMostParts = 99999;  // five digits
  GgufFields fields(header(), name());
  const std::int64_t parts = fields.whole("split.count", 1);
  const std::int64_t known = fields.whole("split.no", 0) + 1;
  if (!fields.good()) return fields.failure();
  if (parts <= 1) return {};
  if (parts > kMostParts || known > parts) {
    fields.refuse(
        fmt::format("metadata split.no {} and split.count {} do not go together; split "
                    "the model again",
                    known - 1, parts));
    return fields.failure();
  }
  Part given = std::move(m_parts.front());
  m_parts.clear();
  for (std::int64_t number = 1; number <= parts; ++number) {
    if (number == known) {
      m_parts.push_back(std::move(given));
      continue;
    }
    const fs::path& base = number < known ? given.path : m_parts.back().path;
    auto path = path_of_part(base, number < known ? known : number - 1, number, parts);
    if (!path) return tl::unexpected(std::move(path.error()));
    auto part = open_part(*path);
    if (!part) return tl::unexpected(std::move(part.error()));
    GgufFields others(part->header, display_path(*path));
    if (others.whole("split.count") != parts || others.whole("split.no") != number - 1) {
      others.refuse(fmt::format("is not part {} of {} by its metadata; split the model again",
                                number, parts));
    }
    if (!others.good()) return others.failure();
    m_parts.push_back(std::move(*part));
  }
  return {};
}

Result<void> GgufSource::collect() {
  for (std::size_t part = 0; part < m_parts.size(); ++part) {
    for (const auto& [tensor_name, tensor] : m_parts[part].header.tensors) {
      if (m_tensors.emplace(tensor_name, Place{part, &tensor}).second) continue;
      return fail(ErrorKind::malformed,
                  fmt::format("{}: tensor {} is in two parts of the model; split it again",
                              display_path(m_parts[part].path), escape_for_display(tensor_name)));
    }
  }
  return {};
}

bool GgufSource::contains(std::string_view tensor_name) const {
  return m_tensors.contains(tensor_name);
}

std::string GgufSource::name() const { return display_path(m_parts.front().path); }

std::string GgufSource::file_of(std::string_view tensor_name) const {
  const auto found = m_tensors.find(tensor_name);
  return display_path(m_parts[found == m_tensors.end() ? 0 : found->second.part].path);
}

std::vector<fs::path> GgufSource::files() const {
  std::vector<fs::path> paths;
  for (const Part& part : m_parts) paths.push_back(part.path);
  return paths;
}

Result<const GgufSource::Place*> GgufSource::find_place(const std::string& tensor_name) const {
  const auto found = m_tensors.find(tensor_name);
  if (found == m_tensors.end()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: tensor {} is missing; convert the model again", name(),
                            escape_for_display(tensor_name)));
  }
  const ElementFormat& format = *found->second.tensor->format;
  if (format.supported()) return &found->second;
  return fail(
      ErrorKind::malformed,
      fmt::format("{}: tensor {}: type {} is not supported; supported are {}", file_of(tensor_name),
                  escape_for_display(tensor_name), format.name, supported_element_formats()));
}

Result<TensorView> GgufSource::find(const std::string& tensor_name) const {
  const auto place = find_place(tensor_name);
  if (!place) return tl::unexpected(place.error());
  const GgufTensor& tensor = *(*place)->tensor;
  const std::string_view bytes = m_parts[(*place)->part].file.bytes();
  std::vector<std::int64_t> shape = tensor.shape;
  // The format drops an outermost dimension of 1, which this matrix of one row has.
  if (shape.size() == 1 && tensor_name.ends_with(".ffn_gate_inp_shexp.weight")) {
    shape.insert(shape.begin(), 1);
  }
  return view_of_elements(*tensor.format, bytes.substr(tensor.begin, tensor.end - tensor.begin),
                          std::move(shape), tensor_name);
}

std::string GgufSource::formats() const {
  struct Row {
    bool plain;
    std::int64_t tensors;
    std::string_view name;
  };
  std::vector<Row> rows;
  for (const ElementFormat& format : element_formats()) {
    const auto tensors = std::count_if(m_tensors.begin(), m_tensors.end(), [&](const auto& entry) {
      return entry.second.tensor->format == &format;
    });
    if (tensors > 0) rows.push_back({format.block_elements == 1, tensors, format.name});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.plain != b.plain ? b.plain : a.tensors > b.tensors;
  });
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", row.name, row.tensors);
  }
  return text;
}

bool GgufSource::has_blocks() const {
  return std::any_of(m_tensors.begin(), m_tensors.end(), [](const auto& entry) {
    return entry.second.tensor->format->block_elements > 1;
  });
}

std::vector<std::string_view> GgufSource::tensor_names() const {
  std::vector<std::string_view> names;
  names.reserve(m_tensors.size());
  for (const auto& [tensor_name, place] : m_tensors) names.push_back(tensor_name);
  return names;
}

}  // namespace driftscope
