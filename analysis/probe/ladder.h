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
  none_seen,          // every answer is the same, and so are the numbers where they were given
  sampling,           // tokens that were not the most likely ones: temperature or seed not honoured
  hidden_backends,    // one URL answers as several versions
  version,            // the replicas name different models or builds
  replica,            // replicas repeat themselves and differ from each other
  batch_composition,  // alone always the same, with others in flight not
  unstable_alone,     // one replica, one request at a time, and still different
  not_enough,         // too few answers
  prompt_cache,       // answers with and without cached prompt tokens differ
  unresolved,         // answers differ, and too few of them to support a cause
};
[[nodiscard]] std::string_view name_of(ProbeCause cause);

// Answers of one rung on one replica.
struct ProbeGroup {
  ProbeStage stage = ProbeStage::alone;
  std::int64_t replica = 0;
  std::int64_t concurrency = 1;
  std::int64_t asked = 0;
  std::int64_t answered = 0;  // with a text, and to its end
  std::int64_t failed = 0;
  std::int64_t unique = 0;          // texts, tool calls included
  std::int64_t unique_numbers = 0;  // texts with logprobs, as far as printing tells them apart
  std::vector<Response> responses;  // graded
  // Per response: equal numbers are equal answers, over all groups.
  std::vector<std::int64_t> text_class, number_class;
};

// What a replica says of itself: "/version version 0.9.1".
struct ProbeVersion {
  std::int64_t replica = 0;
  std::string field;  // route and name
  std::string value;
};

struct ProbeReport {
  std::vector<ProbeGroup> groups;
  std::vector<ProbeVersion> versions;
  ProbeCause cause = ProbeCause::not_enough;
  bool numbers_only = false;  // the texts are all equal; the cause is that of the numbers
  std::string sentence;
  std::vector<std::string> not_ruled_out;
  std::vector<std::string> rungs;  // one line for each rung: what was asked, what was seen
  std::vector<Finding> findings;
};

[[nodiscard]] ProbeReport climb_ladder(const std::vector<Exchange>& exchanges);
[[nodiscard]] std::string probe_text(const ProbeReport& report);
[[nodiscard]] std::string probe_json(const ProbeReport& report);  // one document, ended by '\n'

}  // namespace driftscope
