// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts of the f64 witness.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/backend/taps.h"
#include "engine/model/checkpoint.h"
#include "engine/trace/trace.h"
#include "kernels/base/parallel.h"

namespace driftscope::reference {

class Experts {
 public:
  explicit Experts(const ModelDescription& model) : m_model(model), m_spec(route_spec(model)) {}

  // A new call: forgets the routes of the last one.
  void begin();
  // The rows that follow belong to one sequence; routes are kept of its last `rows`.
  void keep_last(std::int64_t rows) { m_keep = rows; }
  // x: [rows, hidden], after the norm. Returns what is added to the residual stream.
  [[nodiscard]] std::vector<double> run(const LayerTensors& layer, const std::vector<double>& x,
                                        std::int64_t rows, Parallel& parallel);
  // Of the index-th kept row of this call. Empty in dense models.
  [[nodiscard]] RouteRow routes(std::int64_t index) const;

 private:
  void keep(std::int64_t row, std::int64_t rows, const std::int32_t* ids, const double* weights,
            double margin);

  const ModelDescription& m_model;
  RouteSpec m_spec;
  std::int64_t m_keep = 0;
  std::size_t m_first = 0;  // index of the first kept row of this sequence
  std::size_t m_layers_seen = 0;
  std::vector<StoredRoutes> m_routes;  // [kept rows]
};

}  // namespace driftscope::reference
