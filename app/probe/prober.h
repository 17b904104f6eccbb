// SPDX-License-Identifier: Apache-2.0
// What a probe asks, in which order, and how it is asked again when a server refuses a field.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "analysis/probe/exchange.h"
#include "app/probe/http_client.h"

namespace driftscope {

struct ProbeRequest {
  std::string model;
  std::string messages;  // JSON list
  std::int64_t max_tokens = 128;
  double temperature = 0.0;
  std::int64_t seed = 1;
  std::int64_t top_logprobs = 5;
  bool stream = false;  // answers as SSE events
};

struct ProbePlan {
  std::vector<std::string> endpoints;  // ".../v1", each a replica
  ProbeRequest request;
  std::int64_t samples = 10;  // of each rung
  // Of the rungs with company: on the first endpoint, and over all of several in turns.
  std::vector<std::int64_t> concurrency = {8, 32};
  std::int64_t most_attempts = 4;
  double first_pause_seconds = 1.0;  // doubled after each failed attempt
  double most_pause_seconds = 30.0;
  double requests_per_second = 0.0;  // 0: no limit
  HttpLimits limits;
  std::string key;  // sent as "Authorization: Bearer"; empty: none
};

// Every exchange as it ends, in any order; written down before the next is begun on that
// connection. An error ends the probe.
using ExchangeTaker = std::function<Result<void>(Exchange&&)>;

class Prober {
 public:
  // `earlier`: exchanges that a resumed probe has already; those that failed are asked again.
  Prober(ProbePlan plan, const std::vector<Exchange>& earlier, ExchangeTaker take);
  // Errors: what `take` returned; interrupted; malformed, when a server cannot be reached at all or
  // refuses the first request for good (401, 403, 404).
  [[nodiscard]] Result<void> run(const std::stop_token& stop,
                                 const std::function<void(std::int64_t, std::int64_t)>& progress);
  [[nodiscard]] std::int64_t total() const;
  // Whether an exchange of an earlier probe asked what this one asks. Errors: usage, naming what
  // differs.
  [[nodiscard]] Result<void> check_same_question(const Exchange& exchange) const;

 private:
  struct Task {
    Exchange exchange;
  };
  [[nodiscard]] std::vector<Task> discovery_tasks() const;
  // Of a rung across replicas: over all of them in turns, whatever `replica`.
  [[nodiscard]] std::vector<Task> sample_tasks(ProbeStage stage, std::int64_t replica,
                                               std::int64_t concurrency) const;
  // The first model that a server lists is asked where none was named.
  void learn_model(const Exchange& exchange);
  void note_refusal(const Exchange& exchange);
  [[nodiscard]] std::string body_of(std::int64_t replica) const;
  [[nodiscard]] Result<void> run_tasks(std::vector<Task> tasks, std::int64_t concurrency,
                                       const std::stop_token& stop);
  void perform(HttpClient& client, Exchange& exchange, const std::stop_token& stop);
  // True where the server named a field that it does not take, which is left out from now on.
  [[nodiscard]] bool give_up_field(std::int64_t replica, const HttpAnswer& answer);
  [[nodiscard]] Result<void> check_reached() const;
  void wait_for_turn(const std::stop_token& stop);

  ProbePlan m_plan;
  std::set<std::string> m_done;
  ExchangeTaker m_take;
  std::function<void(std::int64_t, std::int64_t)> m_progress;
  mutable std::mutex m_mutex;
  std::map<std::int64_t, std::set<std::string>> m_given_up;  // by replica
  std::set<std::int64_t> m_reached;                          // replicas that answered anything
  std::map<std::int64_t, std::string> m_unreached;           // and what went wrong with others
  std::map<std::int64_t, std::string> m_models;              // by replica, where none was named
  std::string m_refusal;  // why no further request makes sense; empty: none seen
  std::int64_t m_finished = 0;
  double m_next_start = 0.0;  // seconds of the steady clock
};

}  // namespace driftscope
