// SPDX-License-Identifier: Apache-2.0
#include "tests/probe/loopback_server.h"

#include <httplib.h>

#include <condition_variable>
#include <nlohmann/json.hpp>
#include <thread>

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

Json entry(const std::string& text, double logprob) {
  return {{"token", text}, {"logprob", logprob}};
}

}  // namespace

// What one request is answered with.
struct LoopbackServer::Answer {
  std::string text;
  std::string fingerprint;
  bool sampled = false;  // the token is not its most likely one
  double shift = 0.0;    // of the token's logprob
  std::int64_t cached = 0;
};

namespace {

// One token for the text; its rival is close behind, or ahead where the server samples. With as
// many digits as servers print, so that printing explains no difference.
constexpr double kToken = -0.69314718;
constexpr double kBehind = -0.79314718;
constexpr double kAhead = -0.59314718;
Json logprobs_of(const std::string& text, bool sampled, double shift) {
  Json token = entry(text, kToken + shift);
  token["top_logprobs"] =
      Json::array({entry(text, kToken + shift), entry("Lyon", sampled ? kAhead : kBehind)});
  return {{"content", Json::array({token})}};
}

void replace(std::string& text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), with);
}

}  // namespace

struct LoopbackServer::State {
  httplib::Server server;
  std::jthread thread;
  int port = 0;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  bool company = false;  // two requests were here at once
};

namespace {

struct Shape {
  Json head;  // id, model, fingerprint
  Json usage;
  Json logprobs;  // null: none
  std::string text;
  std::string reasoning = {};
};

std::string whole_body(const Shape& shape) {
  Json choice{{"index", 0},
              {"message", {{"role", "assistant"}, {"content", shape.text}}},
              {"finish_reason", "stop"}};
  if (!shape.logprobs.is_null()) choice["logprobs"] = shape.logprobs;
  if (!shape.reasoning.empty()) choice["message"]["reasoning_content"] = shape.reasoning;
  Json body = shape.head;
  body["object"] = "chat.completion";
  body["choices"] = Json::array({choice});
  body["usage"] = shape.usage;
  return body.dump();
}

std::string event_of(const Shape& shape, const Json& choice) {
  Json chunk = shape.head;
  chunk["object"] = "chat.completion.chunk";
  chunk["choices"] = Json::array({choice});
  return "data: " + chunk.dump() + "\n\n";
}

// The text's event, then the end's and the mark; cut short, only the first.
std::string stream_body(const Shape& shape, bool cut_short) {
  Json first{{"index", 0},
             {"delta", {{"role", "assistant"}, {"content", shape.text}}},
             {"finish_reason", nullptr}};
  if (!shape.logprobs.is_null()) first["logprobs"] = shape.logprobs;
  const Json last{{"index", 0}, {"delta", Json::object()}, {"finish_reason", "stop"}};
  std::string body = event_of(shape, first);
  if (cut_short) return body;
  Json usage = shape.head;
  usage["object"] = "chat.completion.chunk";
  usage["choices"] = Json::array();
  usage["usage"] = shape.usage;
  return body + event_of(shape, last) + "data: " + usage.dump() + "\n\ndata: [DONE]\n\n";
}

}  // namespace

bool LoopbackServer::refuse(const std::string& text, std::int64_t number, void* output) const {
  auto& out = *static_cast<httplib::Response*>(output);
  const LoopbackBehaviour& b = m_behaviour;
  if (!b.redirect_to.empty()) {
    out.status = 302;
    out.set_header("Location", b.redirect_to);
    return true;
  }
  if (number < b.too_many_requests) {
    out.status = 429;
    out.set_header("Retry-After", "0");
    return true;
  }
  if (number < b.server_errors) {
    out.status = 500;
    return true;
  }
  if (b.refuses_all != 0 || b.error_bodies) {
    out.status = b.error_bodies ? 200 : b.refuses_all;
    const std::string message =
        "no such luck" + (b.echoes.empty() ? "" : ", not with key " + b.echoes);
    out.set_content(Json{{"error", {{"message", message}}}}.dump(), "application/json");
    return true;
  }
  const Json body = Json::parse(text, nullptr, false);
  for (const std::string field : {"logprobs", "seed"}) {
    const bool refused = field == "seed" ? b.refuses_seed : b.refuses_logprobs;
    if (!refused || !body.contains(field)) continue;
    out.status = 400;
    out.set_content(Json{{"error", {{"message", field + " is not supported"}}}}.dump(),
                    "application/json");
    return true;
  }
  return false;
}

// The first that come with others wait for each other, however slow the machine is.
bool LoopbackServer::wait_for_company(std::int64_t number) {
  const bool crowded = ++m_in_flight > 1;
  const bool matters =
      !m_behaviour.answer_in_company.empty() || m_behaviour.shift_in_company != 0.0;
  if (!matters || number < m_behaviour.requests_alone) return crowded;
  std::unique_lock lock(m_state->mutex);
  m_state->company = m_state->company || crowded;
  m_state->changed.notify_all();
  m_state->changed.wait(lock, [&] { return m_state->company || m_state->stopping; });
  return true;
}

LoopbackServer::Answer LoopbackServer::choose(std::int64_t number, bool crowded) const {
  const LoopbackBehaviour& b = m_behaviour;
  const bool odd = number % 2 == 1;
  Answer answer{.text = b.answer, .fingerprint = b.fingerprint};
  if (crowded && !b.answer_in_company.empty() && number % b.odd_in_company == 0)
    answer.text = b.answer_in_company;
  if (crowded) answer.shift += b.shift_in_company;
  if (odd) answer.shift += b.shift_in_turns;
  if (!b.second_fingerprint.empty() && odd) {
    answer.fingerprint = b.second_fingerprint;
    answer.text = "Lyon.";
  }
  if (b.drifts_alone && odd) answer.text = "Rome.";
  if (b.samples && odd) answer.text = "Nice.";
  answer.sampled = b.samples && odd;
  answer.cached = number == 0 ? 0 : 4;
  if (number == 0 && !b.answer_uncached.empty()) answer.text = b.answer_uncached;
  if (b.sends_huge_line) answer.text = std::string(std::size_t{1} << 20U, 'x');
  return answer;
}

void LoopbackServer::answer(const void* input, void* output) {
  const auto& in = *static_cast<const httplib::Request*>(input);
  auto& out = *static_cast<httplib::Response*>(output);
  const LoopbackBehaviour& b = m_behaviour;
  const std::int64_t number = m_requests++;
  if (in.has_header("Authorization")) m_saw_authorization = true;
  if (refuse(in.body, number, &out)) return;
  const Json asked = Json::parse(in.body, nullptr, false);
  const Answer chosen = choose(number, wait_for_company(number));
  --m_in_flight;
  Shape shape{.head = {{"id", "chatcmpl-1"},
                       {"model", b.model},
                       {"system_fingerprint", chosen.fingerprint}},
              .usage = {{"prompt_tokens", 5}, {"completion_tokens", 2}},
              .logprobs = {},
              .text = chosen.text};
  if (number % 2 == 1) shape.reasoning = b.reasoning_in_turns;
  if (!b.answer_uncached.empty())
    shape.usage["prompt_tokens_details"] = {{"cached_tokens", chosen.cached}};
  if (asked.value("logprobs", false))
    shape.logprobs = logprobs_of(chosen.text, chosen.sampled, chosen.shift);
  if (!b.echoes.empty()) {
    out.set_header("X-Debug", in.get_header_value("Authorization"));
    out.set_header("Set-Cookie", "session=" + in.get_header_value("Authorization"));
  }
  const bool stream = asked.value("stream", false);
  const char* type = stream ? "text/event-stream" : "application/json";
  std::string text = stream ? stream_body(shape, b.ends_stream_early) : whole_body(shape);
  if (!b.echoes.empty()) replace(text, "chatcmpl-1", b.echoes);
  if (b.sends_nan) replace(text, "-0.79314718", "NaN");
  if (b.sends_bad_utf8) replace(text, "Paris", "Par\xff\xfe");
  if (!b.cuts_answers && !b.stalls) return out.set_content(text, type);
  const std::string half = text.substr(0, text.size() / 2);
  State* state = b.stalls ? m_state.get() : nullptr;
  out.set_content_provider(
      text.size(), type, [half, state](std::size_t offset, std::size_t, httplib::DataSink& sink) {
        if (offset == 0) return sink.write(half.data(), half.size());
        if (state != nullptr) {  // says nothing more as long as the server runs
          std::unique_lock lock(state->mutex);
          state->changed.wait(lock, [state] { return state->stopping; });
        }
        return false;
      });
}

LoopbackServer::LoopbackServer(LoopbackBehaviour behaviour)
    : m_state(std::make_unique<State>()), m_behaviour(std::move(behaviour)) {
  httplib::Server& server = m_state->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(40); };
  server.Get("/v1/models", [this](const httplib::Request&, httplib::Response& out) {
    out.set_content(Json{{"data", {{{"id", m_behaviour.model}}}}}.dump(), "application/json");
  });
  server.Get("/version", [this](const httplib::Request&, httplib::Response& out) {
    if (m_behaviour.server_version.empty()) {
      out.status = 404;
      return;
    }
    out.set_content(Json{{"version", m_behaviour.server_version}}.dump(), "application/json");
  });
  server.Post("/v1/chat/completions",
              [this](const httplib::Request& in, httplib::Response& out) { answer(&in, &out); });
  m_state->port = server.bind_to_any_port("127.0.0.1");
  m_state->thread = std::jthread([this] { m_state->server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();
}

LoopbackServer::~LoopbackServer() {
  {
    const std::lock_guard lock(m_state->mutex);
    m_state->stopping = true;
  }
  m_state->changed.notify_all();
  m_state->server.stop();
}

std::string LoopbackServer::url() const {
  return "http://127.0.0.1:" + std::to_string(m_state->port) + "/v1";
}

}  // namespace driftscope
