// SPDX-License-Identifier: Apache-2.0
// One row of the target sequence, as the batch engine gives it and as it is kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/trace/trace.h"

namespace driftscope {

// Spans are valid until the engine's next call.
struct StepOutput {
  std::span<const float> logits;  // [vocabulary]
  std::span<const TensorTap> taps;
  // Of the forward calls, logits included; 0 for a row that an earlier step's call has computed.
  std::int64_t timing_ns = 0;
  std::int64_t rows_in_flight = 0;  // M of the call that computed it
  // Its number in the stream of random numbers that the requests in flight share: every output row
  // of a call takes the next one, in the order of the rows, padding excepted.
  std::uint64_t draw = 0;
  RouteRow routes = {};  // empty in dense models
};

// Owns what a StepOutput points to.
class KeptRow {
 public:
  explicit KeptRow(const StepOutput& output);
  KeptRow(const KeptRow& other) : KeptRow(other.output()) {}
  KeptRow(KeptRow&&) = default;  // the values of the taps keep their place
  KeptRow& operator=(const KeptRow& other) { return *this = KeptRow(other); }
  KeptRow& operator=(KeptRow&&) = default;
  ~KeptRow() = default;
  [[nodiscard]] StepOutput output() const;

 private:
  std::vector<float> m_logits;
  std::vector<float> m_tap_values;
  std::vector<TensorTap> m_taps;  // their spans point into m_tap_values
  StoredRoutes m_routes;
  StepOutput m_rest;  // without spans
};

}  // namespace driftscope
