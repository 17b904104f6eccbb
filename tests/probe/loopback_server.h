// SPDX-License-Identifier: Apache-2.0
// An OpenAI-compatible server on the loopback that can misbehave in the ways that live ones do.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace driftscope {

struct LoopbackBehaviour {
  std::string model = "test-model-2026-01-01";
  std::string fingerprint = "fp_one";
  std::string answer = "Paris.";
  // Of requests after the first `requests_alone`, which come together; empty: the same.
  std::string answer_in_company = {};
  std::int64_t requests_alone = 4;
  std::string second_fingerprint = {};  // every other request says this, with another answer
  bool samples = false;                 // the second token is not its most likely one, in turns
  bool drifts_alone = false;            // answers in turns, one request at a time
  bool refuses_logprobs = false;        // 400 that names the field
  bool refuses_seed = false;
  std::int64_t too_many_requests = 0;  // 429 with Retry-After, so many times
  std::int64_t server_errors = 0;      // 500, so many times
  bool cuts_answers = false;           // closes the connection within the body
  bool stalls = false;                 // sends the head of an answer and then nothing
  bool sends_nan = false;
  bool sends_bad_utf8 = false;
  bool sends_huge_line = false;  // 1 MiB of text in one line
  std::string redirect_to = {};  // 302 to another host
  bool echoes_key = false;       // the Authorization header comes back in body and headers
};

class LoopbackServer {
 public:
  explicit LoopbackServer(LoopbackBehaviour behaviour);
  ~LoopbackServer();
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;
  [[nodiscard]] std::string url() const;  // "http://127.0.0.1:PORT/v1"
  [[nodiscard]] std::int64_t requests() const { return m_requests; }
  [[nodiscard]] bool saw_authorization() const { return m_saw_authorization; }

 private:
  struct State;
  std::unique_ptr<State> m_state;
  LoopbackBehaviour m_behaviour;
  std::atomic<std::int64_t> m_requests{0};
  std::atomic<std::int64_t> m_in_flight{0};
  std::atomic<bool> m_saw_authorization{false};
};

}  // namespace driftscope
