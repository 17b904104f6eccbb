// SPDX-License-Identifier: Apache-2.0
#include "app/probe/prober.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <nlohmann/json.hpp>
#include <thread>

#include "analysis/import/json_document.h"
#include "analysis/probe/redaction.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

// What servers say of themselves; those that a server does not know answer 404.
constexpr std::array<std::string_view, 6> kRoutes{
    "/models", "/../version", "/../props", "/../info", "/../get_model_info", "/../api/version"};

// Fields that can be left out, in the order in which they are given up, with the words by which
// servers name them when they refuse.
struct OptionalField {
  std::string_view name;
  std::array<std::string_view, 2> words;
};
constexpr std::array<OptionalField, 4> kOptional{
    {{"logprobs", {"logprob", "top_logprobs"}},
     {"stream_options", {"stream_options", "include_usage"}},
     {"seed", {"seed", "seed"}},
     {"temperature", {"temperature", "temperature"}}}};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Sleeps, but wakes at once on a stop.
void pause(double seconds, const std::stop_token& stop) {
  if (seconds <= 0.0) return;
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any wake;
  wake.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
}

bool worth_repeating(const HttpAnswer& answer) {
  if (answer.stopped) return false;
  return answer.status == 0 || answer.status == 408 || answer.status == 429 ||
         answer.status >= 500 || (answer.status == 200 && !answer.error.empty());
}

std::optional<double> retry_after(const HttpAnswer& answer) {
  for (const auto& [name, value] : answer.headers) {
    if (name != "retry-after") continue;
    double seconds = 0.0;
    const auto result = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (result.ec == std::errc{} && seconds >= 0.0) return seconds;
  }
  return std::nullopt;
}

std::string join_url(const std::string& base, std::string_view route) {
  std::string root = base;
  while (root.ends_with('/')) root.pop_back();
  if (!route.starts_with("/..")) return root + std::string(route);
  if (root.ends_with("/v1")) root.resize(root.size() - 3);
  return root + std::string(route.substr(3));
}

}  // namespace

Prober::Prober(ProbePlan plan, const std::vector<Exchange>& earlier, ExchangeTaker take)
    : m_plan(std::move(plan)), m_take(std::move(take)) {
  for (const Exchange& exchange : earlier) {
    if (!holds_answer(exchange)) continue;
    m_done.insert(exchange.key());
    learn_model(exchange);
  }
}

Result<void> Prober::check_same_question(const Exchange& exchange) const {
  const auto replica = static_cast<std::size_t>(exchange.replica);
  const bool known = replica < m_plan.endpoints.size() &&
                     exchange.url.starts_with(join_url(m_plan.endpoints[replica], "/..") + "/");
  if (!known) {
    return fail(
        ErrorKind::usage,
        fmt::format("its answers are those of another endpoint ({}); give another file with "
                    "-o, or --from-file to report on this one",
                    exchange.url));
  }
  if (exchange.stage == ProbeStage::discovery) return {};
  const Json asked = Json::parse(exchange.request, nullptr, false);
  const Json now = Json::parse(body_of(exchange.replica), nullptr, false);
  if (!asked.is_object() || !now.is_object()) return {};
  // Fields that the server refused are in one of the two only.
  for (const auto& [name, value] : now.items()) {
    const bool chosen_by_server = name == "model" && m_plan.request.model.empty();
    if (chosen_by_server || !asked.contains(name) || asked[name] == value) continue;
    return fail(ErrorKind::usage,
                fmt::format("its answers were asked for with another \"{}\"; give another file "
                            "with -o, or --from-file to report on this one",
                            name));
  }
  return {};
}

std::int64_t Prober::total() const {
  const auto endpoints = static_cast<std::int64_t>(m_plan.endpoints.size());
  const auto crowds = static_cast<std::int64_t>(m_plan.concurrency.size());
  const auto rungs = endpoints + (endpoints > 1 ? 2 : 1) * crowds;
  return endpoints * static_cast<std::int64_t>(kRoutes.size()) + rungs * m_plan.samples;
}

std::vector<Prober::Task> Prober::discovery_tasks() const {
  std::vector<Task> tasks;
  for (std::size_t replica = 0; replica < m_plan.endpoints.size(); ++replica) {
    for (std::size_t i = 0; i < kRoutes.size(); ++i) {
      Task task;
      task.exchange.stage = ProbeStage::discovery;
      task.exchange.replica = static_cast<std::int64_t>(replica);
      task.exchange.index = static_cast<std::int64_t>(i);
      task.exchange.url = join_url(m_plan.endpoints[replica], kRoutes[i]);
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

std::vector<Prober::Task> Prober::sample_tasks(ProbeStage stage, std::int64_t replica,
                                               std::int64_t concurrency) const {
  std::vector<Task> tasks;
  for (std::int64_t index = 0; index < m_plan.samples; ++index) {
    Task task;
    const auto endpoints = static_cast<std::int64_t>(m_plan.endpoints.size());
    task.exchange.stage = stage;
    task.exchange.replica = stage == ProbeStage::across ? index % endpoints : replica;
    task.exchange.concurrency = concurrency;
    task.exchange.index = index;
    task.exchange.url = join_url(m_plan.endpoints[static_cast<std::size_t>(task.exchange.replica)],
                                 "/chat/completions");
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::string Prober::body_of(std::int64_t replica) const {
  const std::lock_guard lock(m_mutex);
  const auto found = m_given_up.find(replica);
  const auto wanted = [&](const std::string& field) {
    return found == m_given_up.end() || !found->second.contains(field);
  };
  const ProbeRequest& request = m_plan.request;
  const auto model = m_models.find(replica);
  Json json{{"model", model == m_models.end() ? request.model : model->second},
            {"messages", Json::parse(request.messages, nullptr, false)},
            {"max_tokens", request.max_tokens},
            {"stream", request.stream}};
  if (request.stream && wanted("stream_options"))
    json["stream_options"] = {{"include_usage", true}};
  if (wanted("temperature")) json["temperature"] = request.temperature;
  if (wanted("seed")) json["seed"] = request.seed;
  if (wanted("logprobs") && request.top_logprobs > 0) {
    json["logprobs"] = true;
    json["top_logprobs"] = request.top_logprobs;
  }
  return json.dump();
}

bool Prober::give_up_field(std::int64_t replica, const HttpAnswer& answer) {
  if (answer.status != 400 && answer.status != 422 && answer.status != 403) return false;
  std::string text = answer.body;
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::lock_guard lock(m_mutex);
  auto& given_up = m_given_up[replica];
  for (const OptionalField& field : kOptional) {
    const bool named =
        std::any_of(field.words.begin(), field.words.end(),
                    [&](std::string_view word) { return text.find(word) != std::string::npos; });
    if (named && given_up.insert(std::string(field.name)).second) return true;
  }
  return false;
}

void Prober::wait_for_turn(const std::stop_token& stop) {
  if (m_plan.requests_per_second <= 0.0) return;
  double start = 0.0;
  {
    const std::lock_guard lock(m_mutex);
    start = std::max(now_seconds(), m_next_start);
    m_next_start = start + 1.0 / m_plan.requests_per_second;
  }
  pause(start - now_seconds(), stop);
}

void Prober::perform(HttpClient& client, Exchange& exchange, const std::stop_token& stop) {
  HttpRequest request{.url = exchange.url, .body = {}, .headers = {}};
  if (!m_plan.key.empty()) request.headers.emplace_back("Authorization", "Bearer " + m_plan.key);
  const bool sample = exchange.stage != ProbeStage::discovery;
  if (sample) request.headers.emplace_back("Content-Type", "application/json");
  double pause_seconds = m_plan.first_pause_seconds;
  const std::int64_t most = sample ? m_plan.most_attempts : 1;
  std::int64_t attempt = 1;
  while (true) {
    if (sample) request.body = body_of(exchange.replica);
    wait_for_turn(stop);
    HttpAnswer answer = client.send(request, stop);
    exchange.request = request.body;
    exchange.status = answer.status;
    exchange.headers = answer.headers;
    exchange.error = answer.error;
    exchange.attempts = attempt;
    exchange.seconds = answer.seconds;
    // Without limits on attempts: each refusal takes one field away, and there are three.
    const bool again_without = sample && give_up_field(exchange.replica, answer);
    const bool repeat = worth_repeating(answer) && attempt < most && !stop.stop_requested();
    const double wanted = retry_after(answer).value_or(pause_seconds);
    exchange.body = std::move(answer.body);
    if (again_without && !stop.stop_requested()) continue;
    if (!repeat) break;
    pause(std::min(wanted, m_plan.most_pause_seconds), stop);
    pause_seconds = std::min(2.0 * pause_seconds, m_plan.most_pause_seconds);
    ++attempt;
  }
  // Before anything is said or written of it.
  redact(exchange, {m_plan.key});
  const std::lock_guard lock(m_mutex);
  if (!sample) {
    if (exchange.status != 0) m_reached.insert(exchange.replica);
    if (exchange.status == 0) m_unreached[exchange.replica] = exchange.error;
  }
  if (sample) note_refusal(exchange);
  const auto given_up = m_given_up.find(exchange.replica);
  if (sample && given_up != m_given_up.end()) {
    exchange.given_up.assign(given_up->second.begin(), given_up->second.end());
  }
  if (!sample) learn_model(exchange);
}

// What no second request will change: a wrong address, no right to ask.
void Prober::note_refusal(const Exchange& exchange) {
  const bool key = exchange.status == 401 || exchange.status == 403;
  if (!key && exchange.status != 404) return;
  JsonDocument document;
  std::string said;
  if (document.parse(exchange.body)) {
    const JsonValue error = document.root()["error"];
    said = error.is_text() ? error.text() : error["message"].text();
    if (said.empty()) said = document.root()["message"].text();
  }
  redact_text(said, {m_plan.key});
  const char* advice =
      "check that the endpoint ends as the server wants it (/v1 mostly), and --model";
  if (key) {
    advice = m_plan.key.empty() ? "give the key with --key-env or --key-file"
                                : "the key was sent: check that it is this server's and may use "
                                  "the model";
  }
  m_refusal = fmt::format(
      "{}: HTTP {}{}; {}", exchange.url, exchange.status,
      said.empty() ? "" : " (\"" + escape_for_display(said.substr(0, 200)) + "\")", advice);
}

void Prober::learn_model(const Exchange& exchange) {
  const bool lists_models = exchange.stage == ProbeStage::discovery && exchange.index == 0;
  if (!lists_models || !m_plan.request.model.empty() || exchange.status != 200) return;
  JsonDocument document;
  if (!document.parse(exchange.body)) return;
  const std::string id = document.root()["data"].at(0)["id"].text();
  if (!id.empty()) m_models[exchange.replica] = id;
}

Result<void> Prober::run_tasks(std::vector<Task> tasks, std::int64_t concurrency,
                               const std::stop_token& stop) {
  std::atomic<std::size_t> next{0};
  Result<void> outcome;
  const auto work = [&] {
    HttpClient client(m_plan.limits);
    while (!stop.stop_requested()) {
      const std::size_t index = next.fetch_add(1);
      if (index >= tasks.size()) return;
      Exchange& exchange = tasks[index].exchange;
      const bool done = m_done.contains(exchange.key());
      if (!done) perform(client, exchange, stop);
      const std::lock_guard lock(m_mutex);
      // An exchange that a stop cut short is asked again when the probe goes on.
      if (!done && outcome && !stop.stop_requested()) {
        outcome = m_take(std::move(exchange));
        if (!outcome) return;
      }
      ++m_finished;
      if (m_progress) m_progress(m_finished, total());
    }
  };
  {
    std::vector<std::jthread> threads;
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(concurrency), tasks.size());
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work);
  }
  if (!outcome) return outcome;
  if (stop.stop_requested()) return fail(ErrorKind::interrupted, "stopped on request");
  return {};
}

// A server that answered none of the questions about itself is not asked a hundred more.
Result<void> Prober::check_reached() const {
  for (const auto& [replica, error] : m_unreached) {
    if (m_reached.contains(replica)) continue;
    return fail(ErrorKind::malformed,
                fmt::format("{}: {}; check the URL, and that the server runs",
                            m_plan.endpoints[static_cast<std::size_t>(replica)], error));
  }
  return {};
}

Result<void> Prober::run(const std::stop_token& stop,
                         const std::function<void(std::int64_t, std::int64_t)>& progress) {
  m_progress = progress;
  if (auto done = run_tasks(discovery_tasks(), 1, stop); !done) return done;
  if (auto reached = check_reached(); !reached) return reached;
  for (std::size_t replica = 0; replica < m_plan.endpoints.size(); ++replica) {
    auto tasks = sample_tasks(ProbeStage::alone, static_cast<std::int64_t>(replica), 1);
    std::vector<Task> first{tasks.front()};
    tasks.erase(tasks.begin());
    if (auto done = run_tasks(std::move(first), 1, stop); !done) return done;
    if (!m_refusal.empty()) return fail(ErrorKind::malformed, m_refusal);
    if (auto done = run_tasks(std::move(tasks), 1, stop); !done) return done;
  }
  for (const std::int64_t concurrency : m_plan.concurrency) {
    for (const ProbeStage stage : {ProbeStage::together, ProbeStage::across}) {
      if (stage == ProbeStage::across && m_plan.endpoints.size() < 2) continue;
      auto tasks = sample_tasks(stage, 0, concurrency);
      if (auto done = run_tasks(std::move(tasks), concurrency, stop); !done) return done;
    }
  }
  return {};
}

}  // namespace driftscope
