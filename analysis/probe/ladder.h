// SPDX-License-Identifier: Apache-2.0
// From exchanges with live servers to a cause: sampling, one replica, its version, the batch. Each
// rung asks what the one before left open.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.h"
#include "analysis/import/response.h"
#include "analysis/probe/exchange.h"

namespace driftscope {

enum class ProbeCause : std::uint8_t {
  none_seen,          // every answer is the same
  sampling,           // tokens that were not the most likely ones: temperature or seed not honoured
  hidden_backends,    // one URL answers as several versions
  version,            // the replicas name different models or builds
  replica,            // replicas repeat themselves and differ from each other
  batch_composition,  // alone always the same, with others in flight not
  unstable_alone,     // one replica, one request at a time, and still different
  not_enough,         // too few answers
};
[[nodiscard]] std::string_view name_of(ProbeCause cause);

// Answers of one rung on one replica.
struct ProbeGroup {
  ProbeStage stage = ProbeStage::alone;
  std::int64_t replica = 0;
  std::int64_t concurrency = 1;
  std::int64_t asked = 0;
  std::int64_t answered = 0;  // with a text
  std::int64_t failed = 0;
  std::int64_t unique = 0;
  std::vector<Response> responses;  // graded
};

struct ProbeReport {
  std::vector<ProbeGroup> groups;
  ProbeCause cause = ProbeCause::not_enough;
  std::string sentence;
  std::vector<std::string> not_ruled_out;
  std::vector<std::string> rungs;  // one line for each rung: what was asked, what was seen
  std::vector<Finding> findings;
};

[[nodiscard]] ProbeReport climb_ladder(const std::vector<Exchange>& exchanges);
[[nodiscard]] std::string probe_text(const ProbeReport& report);
[[nodiscard]] std::string probe_json(const ProbeReport& report);  // one document, ended by '\n'

}  // namespace driftscope
