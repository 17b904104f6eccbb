// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/route_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "analysis/capture/capture_layout.h"
#include "analysis/capture/crc32c.h"
#include "analysis/capture/json_fields.h"

namespace driftscope {
namespace {

using hdf5::Place;
using hdf5::Table;
using hdf5::TableShape;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kChunkBytes = 1 << 16;
constexpr std::int64_t kMostChunkRows = 1024;

TableShape shape_of(hid_t type, std::size_t width) {
  const auto row_bytes = std::max<std::int64_t>(1, static_cast<std::int64_t>(width)) * 4;
  return {.type = type,
          .width = static_cast<std::int64_t>(width),
          .rows_per_chunk = std::clamp<std::int64_t>(kChunkBytes / row_bytes, 1, kMostChunkRows),
          .deflate = 0};
}
TableShape ids_shape(const RouteSpec& spec) { return shape_of(H5T_STD_I32LE, spec.ids()); }
TableShape weights_shape(const RouteSpec& spec) { return shape_of(H5T_IEEE_F32LE, spec.ids()); }
TableShape margins_shape(const RouteSpec& spec) {
  return shape_of(H5T_IEEE_F32LE, spec.decisions());
}
TableShape crc_shape() { return shape_of(H5T_STD_U32LE, 0); }

std::uint32_t check_value(const RouteRow& row) {
  return crc32c_of(row.margins, crc32c_of(row.weights, crc32c_of(row.experts)));
}

bool possible(const RouteSpec& spec) {
  const auto& layers = spec.layers;
  return !layers.empty() && layers.front() >= 0 && layers.back() <= layout::kMaximumLayer &&
         std::adjacent_find(layers.begin(), layers.end(), std::greater_equal<>()) == layers.end() &&
         spec.chosen >= 1 && spec.chosen <= spec.experts && spec.experts <= layout::kMaximumWidth &&
         spec.chosen <= layout::kMaximumWidth / static_cast<std::int64_t>(layers.size());
}

}  // namespace

Json route_spec_to_json(const RouteSpec& spec) {
  return Json{{"layers", spec.layers}, {"experts", spec.experts}, {"chosen", spec.chosen}};
}

std::optional<RouteSpec> route_spec_from_json(const Json& json) {
  RouteSpec spec;
  JsonFields fields(json, "routes");
  fields.integer("experts", spec.experts);
  fields.integer("chosen", spec.chosen);
  const Json* layers = fields.find("layers");
  if (layers == nullptr || !layers->is_array()) return std::nullopt;
  for (const Json& layer : *layers) {
    if (!layer.is_number_integer()) return std::nullopt;
    const auto value = layer.get<std::int64_t>();
    if (value < 0 || value > layout::kMaximumLayer) return std::nullopt;
    spec.layers.push_back(static_cast<std::int32_t>(value));
  }
  if (!fields.problem().empty() || !possible(spec)) return std::nullopt;
  return spec;
}

void RouteWriter::create(const Place& place, hid_t lane, const RouteSpec& spec) {
  if (!possible(spec)) hdf5::throw_rule(place, "routes", "these routers cannot be stored");
  hdf5::Group group = hdf5::make_group(place, lane, "routes");
  Table::create(place, group.id(), "experts", ids_shape(spec));
  Table::create(place, group.id(), "weights", weights_shape(spec));
  Table::create(place, group.id(), "margins", margins_shape(spec));
  Table::create(place, group.id(), "crc32c", crc_shape());
  hdf5::write_text(place, group.id(), "routers", route_spec_to_json(spec).dump());
  group.close(place, "H5Gclose", "routes");
}

RouteWriter::RouteWriter(const Place& place, hid_t lane, const RouteSpec& spec)
    : m_place(place),
      m_spec(spec),
      m_experts(Table::open(place, lane, "routes/experts", ids_shape(spec))),
      m_weights(Table::open(place, lane, "routes/weights", weights_shape(spec))),
      m_margins(Table::open(place, lane, "routes/margins", margins_shape(spec))),
      m_crc(Table::open(place, lane, "routes/crc32c", crc_shape())) {}

void RouteWriter::append(const RouteRow& row) {
  if (row.experts.size() != m_spec.ids() || row.weights.size() != m_spec.ids() ||
      row.margins.size() != m_spec.decisions()) {
    hdf5::throw_rule(m_place, "routes",
                     fmt::format("a row of {} experts came where {} are planned",
                                 row.experts.size(), m_spec.ids()));
  }
  const std::uint32_t crc = check_value(row);
  m_experts.append(row.experts.data(), 1);
  m_weights.append(row.weights.data(), 1);
  m_margins.append(row.margins.data(), 1);
  m_crc.append(&crc, 1);
}

void RouteWriter::close() {
  for (Table* table : {&m_experts, &m_weights, &m_margins, &m_crc}) table->close();
}

RouteReader::RouteReader(const hdf5::SafeFile& file, std::string path)
    : m_place(file.place()), m_path(std::move(path)) {
  const std::string routers = m_path + "/routers";
  const Result<Json> json = json_text::parse(file.read_text(routers), routers);
  const auto spec = json ? route_spec_from_json(*json) : std::nullopt;
  if (!spec) hdf5::throw_rule(m_place, routers, "not the object that FORMAT.md prescribes");
  m_spec = *spec;
  const auto open = [&](const char* name, const TableShape& shape) {
    return hdf5::Rows(file, m_path + "/" + name,
                      {.type = shape.type, .width = shape.width, .filters = false});
  };
  m_experts.emplace(open("experts", ids_shape(m_spec)));
  m_weights.emplace(open("weights", weights_shape(m_spec)));
  m_margins.emplace(open("margins", margins_shape(m_spec)));
  m_crc.emplace(open("crc32c", crc_shape()));
}

std::int64_t RouteReader::count() const {
  return std::min({m_experts->count(), m_weights->count(), m_margins->count(), m_crc->count()});
}

StoredRoutes RouteReader::read(std::int64_t step) const {
  StoredRoutes routes;
  routes.experts.resize(m_spec.ids());
  routes.weights.resize(m_spec.ids());
  routes.margins.resize(m_spec.decisions());
  std::uint32_t stored = 0;
  m_experts->read(step, 1, routes.experts.data());
  m_weights->read(step, 1, routes.weights.data());
  m_margins->read(step, 1, routes.margins.data());
  m_crc->read(step, 1, &stored);
  if (stored != check_value(routes.row())) {
    hdf5::throw_rule(m_place, m_path,
                     fmt::format("step {} fails its check value; the file is damaged", step));
  }
  for (const std::int32_t id : routes.experts) {
    if (id >= 0 && id < m_spec.experts) continue;
    hdf5::throw_rule(m_place, m_path + "/experts",
                     fmt::format("step {} names expert {} of {}", step, id, m_spec.experts));
  }
  return routes;
}

}  // namespace driftscope
