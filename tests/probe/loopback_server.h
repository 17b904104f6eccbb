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
  std::int64_t odd_in_company = 1;      // only every so-many'th answer in company is another
  double shift_in_company = 0.0;        // added to the logprobs of answers in company
  double shift_in_turns = 0.0;          // added to the logprobs of every other answer
  std::string answer_uncached = {};     // of the first request, whose prompt is in no cache yet
  std::string server_version = {};      // what /version says; empty: 404
  bool samples = false;                 // the second token is not its most likely one, in turns
  bool drifts_alone = false;            // answers in turns, one request at a time
  bool refuses_logprobs = false;        // 400 that names the field
  bool refuses_seed = false;
  int refuses_all = 0;                  // this status for every chat request
  std::string reasoning_in_turns = {};  // thought before every other answer
  bool error_bodies = false;            // 200 with an error for an answer
  std::int64_t too_many_requests = 0;   // 429 with Retry-After, so many times
  std::int64_t server_errors = 0;       // 500, so many times
  bool cuts_answers = false;            // closes the connection within the body
  bool ends_stream_early = false;       // a stream ends, in good order, without its last events
  bool stalls = false;                  // sends the head of an answer and then nothing
  bool sends_nan = false;
  bool sends_bad_utf8 = false;
  bool sends_huge_line = false;  // 1 MiB of text in one line
  std::string redirect_to = {};  // 302 to another host
  std::string echoes = {};       // stands in the body; the key comes back in headers
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
  struct Answer;
  // Fills in the answer to a chat request, or a refusal; `number` counts requests from 0.
  void answer(const void* in, void* out);
  [[nodiscard]] bool refuse(const std::string& body, std::int64_t number, void* out) const;
  [[nodiscard]] bool wait_for_company(std::int64_t number);
  [[nodiscard]] Answer choose(std::int64_t number, bool crowded) const;
  std::unique_ptr<State> m_state;
  LoopbackBehaviour m_behaviour;
  std::atomic<std::int64_t> m_requests{0};
  std::atomic<std::int64_t> m_in_flight{0};
  std::atomic<bool> m_saw_authorization{false};
};

}  // namespace driftscope
