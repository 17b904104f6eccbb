// SPDX-License-Identifier: Apache-2.0
// The group `routes` of a lane: what the routers of a mixture of experts chose, step by step.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "analysis/capture/hdf5_read.h"
#include "analysis/capture/hdf5_write.h"
#include "engine/trace/trace.h"

namespace driftscope {

// {"layers":[0,1,…],"experts":8,"chosen":2}
[[nodiscard]] nlohmann::ordered_json route_spec_to_json(const RouteSpec& spec);
// Empty: not such an object, or one that says something impossible.
[[nodiscard]] std::optional<RouteSpec> route_spec_from_json(const nlohmann::ordered_json& json);

// Both throw hdf5::Hdf5Failure.
class RouteWriter {
 public:
  // Makes the group and its datasets inside the lane's group, before SWMR starts.
  static void create(const hdf5::Place& place, hid_t lane, const RouteSpec& spec);
  // Opens them for appending.
  RouteWriter(const hdf5::Place& place, hid_t lane, const RouteSpec& spec);
  void append(const RouteRow& row);
  void close();

 private:
  hdf5::Place m_place;
  RouteSpec m_spec;
  hdf5::Table m_experts, m_weights, m_margins, m_crc;
};

class RouteReader {
 public:
  // `path`: of the group, absolute.
  RouteReader(const hdf5::SafeFile& file, std::string path);
  [[nodiscard]] const RouteSpec& spec() const { return m_spec; }
  [[nodiscard]] std::int64_t count() const;  // whole rows
  // Checks the check value and that every id is an expert.
  [[nodiscard]] StoredRoutes read(std::int64_t step) const;

 private:
  hdf5::Place m_place;
  std::string m_path;
  RouteSpec m_spec;
  std::optional<hdf5::Rows> m_experts, m_weights, m_margins, m_crc;
};

}  // namespace driftscope
