// SPDX-License-Identifier: Apache-2.0
// One request to a server and what came back, as a line of the probe's file. Written before
// anything is concluded from it; holds no credentials.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

enum class ProbeStage : std::uint8_t {
  discovery,  // what the server says of itself
  alone,      // the prompt again and again, one request at a time
  together,   // the same with several requests in flight
  across,     // the same, over all replicas in turns
};
[[nodiscard]] std::string_view name_of(ProbeStage stage);
[[nodiscard]] std::optional<ProbeStage> probe_stage_from_name(std::string_view name);

struct Exchange {
  ProbeStage stage = ProbeStage::discovery;
  std::int64_t replica = 0;      // index of the endpoint
  std::int64_t concurrency = 1;  // requests in flight
  std::int64_t index = 0;        // of the sample, or of the route asked
  std::string url;
  std::string request;                                       // the body; empty: GET
  std::int64_t status = 0;                                   // 0: no answer
  std::vector<std::pair<std::string, std::string>> headers;  // lower-case names
  std::string body;
  std::string error;  // of the transport: "timed out after 60 s"
  std::int64_t attempts = 1;
  double seconds = 0.0;
  std::vector<std::string> given_up;  // what was left out after the server refused it: "logprobs"
  // The same for the same request of the same plan; what a resumed probe skips.
  [[nodiscard]] std::string key() const;
};

// One line of JSON with '\n' at its end. Bytes that are no UTF-8 are kept as base64.
[[nodiscard]] std::string exchange_line(const Exchange& exchange);
// Errors: malformed.
[[nodiscard]] Result<Exchange> read_exchange(std::string_view line);

// Whether it need not be asked again: an answer that came whole, or one to a question about the
// server. An error in the body of a 200 is none.
[[nodiscard]] bool holds_answer(const Exchange& exchange);

// redact_text() of all that came and went; headers that hold credentials of their own (cookies) are
// left out.
void redact(Exchange& exchange, const std::vector<std::string>& secrets);

}  // namespace driftscope
