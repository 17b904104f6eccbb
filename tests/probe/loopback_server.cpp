// SPDX-License-Identifier: Apache-2.0
#include "tests/probe/loopback_server.h"

#include <httplib.h>

#include <chrono>
#include <condition_variable>
#include <nlohmann/json.hpp>
#include <thread>

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

Json token(const std::string& text, double logprob, const std::string& other,
           double other_logprob) {
  return {
      {"token", text},
      {"logprob", logprob},
      {"top_logprobs",
       {{{"token", text}, {"logprob", logprob}}, {{"token", other}, {"logprob", other_logprob}}}}};
}

std::string chat(const LoopbackBehaviour& b, const std::string& text,
                 const std::string& fingerprint, bool logprobs, bool sampled) {
  Json choice{{"index", 0},
              {"message", {{"role", "assistant"}, {"content", text}}},
              {"finish_reason", "stop"}};
  if (logprobs) {
    // One token for the text; its rival is closer, or ahead where the server samples.
    choice["logprobs"] = {{"content", {token(text, -0.7, "Lyon", sampled ? -0.6 : -0.8)}}};
  }
  Json body{{"id", "chatcmpl-1"},
            {"object", "chat.completion"},
            {"model", b.model},
            {"system_fingerprint", fingerprint},
            {"choices", Json::array({choice})},
            {"usage", {{"prompt_tokens", 5}, {"completion_tokens", 2}}}};
  std::string dumped = body.dump();
  const auto replace = [&](const std::string& what, const std::string& with) {
    const auto at = dumped.find(what);
    if (at != std::string::npos) dumped.replace(at, what.size(), with);
  };
  if (b.sends_nan) replace("-0.8", "NaN");
  if (b.sends_bad_utf8) replace("Paris", "Par\xff\xfe");
  return dumped;
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

LoopbackServer::LoopbackServer(LoopbackBehaviour behaviour)
    : m_state(std::make_unique<State>()), m_behaviour(std::move(behaviour)) {
  httplib::Server& server = m_state->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(40); };
  server.Get("/v1/models", [this](const httplib::Request&, httplib::Response& out) {
    out.set_content(Json{{"data", {{{"id", m_behaviour.model}}}}}.dump(), "application/json");
  });
  server.Post("/v1/chat/completions", [this](const httplib::Request& in, httplib::Response& out) {
    const LoopbackBehaviour& b = m_behaviour;
    const std::int64_t number = m_requests++;
    if (in.has_header("Authorization")) m_saw_authorization = true;
    if (!b.redirect_to.empty()) {
      out.status = 302;
      out.set_header("Location", b.redirect_to);
      return;
    }
    if (number < b.too_many_requests) {
      out.status = 429;
      out.set_header("Retry-After", "0");
      return;
    }
    if (number < b.server_errors) {
      out.status = 500;
      return;
    }
    const Json body = Json::parse(in.body, nullptr, false);
    for (const char* field : {"logprobs", "seed"}) {
      const bool refused = std::string(field) == "seed" ? b.refuses_seed : b.refuses_logprobs;
      if (!refused || !body.contains(field)) continue;
      out.status = 400;
      out.set_content(
          Json{{"error", {{"message", std::string(field) + " is not supported"}}}}.dump(),
          "application/json");
      return;
    }
    bool crowded = ++m_in_flight > 1;
    if (!b.answer_in_company.empty() && number >= b.requests_alone) {
      // The first that come with others wait for each other, however slow the machine is.
      std::unique_lock lock(m_state->mutex);
      m_state->company = m_state->company || crowded;
      m_state->changed.notify_all();
      m_state->changed.wait(lock, [&] { return m_state->company || m_state->stopping; });
      crowded = true;
    }
    std::string text = crowded && !b.answer_in_company.empty() ? b.answer_in_company : b.answer;
    std::string fingerprint = b.fingerprint;
    const bool odd = number % 2 == 1;
    if (!b.second_fingerprint.empty() && odd) {
      fingerprint = b.second_fingerprint;
      text = "Lyon.";
    }
    if (b.drifts_alone && odd) text = "Rome.";
    if (b.samples && odd) text = "Nice.";
    if (b.sends_huge_line) text = std::string(std::size_t{1} << 20U, 'x');
    std::string answer =
        chat(b, text, fingerprint, body.value("logprobs", false), b.samples && odd);
    if (b.echoes_key) {
      const std::string key = in.get_header_value("Authorization");
      out.set_header("X-Debug", key);
      answer.replace(answer.find("chatcmpl-1"), 10, key);
    }
    --m_in_flight;
    if (b.cuts_answers || b.stalls) {
      const std::string half = answer.substr(0, answer.size() / 2);
      State* state = b.stalls ? m_state.get() : nullptr;
      out.set_content_provider(
          answer.size(), "application/json",
          [half, state](std::size_t offset, std::size_t, httplib::DataSink& sink) {
            if (offset == 0) return sink.write(half.data(), half.size());
            if (state != nullptr) {  // says nothing more as long as the server runs
              std::unique_lock lock(state->mutex);
              state->changed.wait(lock, [state] { return state->stopping; });
            }
            return false;
          });
      return;
    }
    out.set_content(answer, "application/json");
  });
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
