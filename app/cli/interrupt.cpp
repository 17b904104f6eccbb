// SPDX-License-Identifier: Apache-2.0
#include "app/cli/interrupt.h"

#include <unistd.h>
#include <csignal>

#include <atomic>
#include <chrono>
#include <thread>

namespace driftscope::cli {

struct InterruptGuard::State {
  std::stop_source source;
  std::atomic<bool> interrupted{false};
  std::atomic<bool> ending{false};
  sigset_t signals{};
  sigset_t previous{};
  std::chrono::steady_clock::time_point first;  // written and read by the waiter only
  std::thread waiter;

  void wait() {
    while (true) {
      int signal = 0;
      if (sigwait(&signals, &signal) != 0) continue;
      if (signal == SIGUSR2 && ending) return;
      if (signal == SIGUSR2) continue;
      // Some senders reach the process and its group: the same wish twice within moments.
      const auto now = std::chrono::steady_clock::now();
      if (interrupted && now - first < std::chrono::milliseconds(500)) continue;
      if (interrupted.exchange(true)) _exit(130);
      first = now;
      source.request_stop();
    }
  }
};

InterruptGuard::InterruptGuard() : m_state(std::make_unique<State>()) {
  sigemptyset(&m_state->signals);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR2}) sigaddset(&m_state->signals, signal);
  // A closed terminal ends the run cleanly as well, unless nohup asked to go on.
  struct sigaction hang_up = {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&m_state->signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &m_state->signals, &m_state->previous);
  m_state->waiter = std::thread([state = m_state.get()] { state->wait(); });
}

InterruptGuard::~InterruptGuard() {
  m_state->ending = true;
  pthread_kill(m_state->waiter.native_handle(), SIGUSR2);
  m_state->waiter.join();
  pthread_sigmask(SIG_SETMASK, &m_state->previous, nullptr);
}

std::stop_token InterruptGuard::token() const { return m_state->source.get_token(); }
void InterruptGuard::request_stop() { m_state->source.request_stop(); }
bool InterruptGuard::interrupted() const { return m_state->interrupted; }

}  // namespace driftscope::cli
