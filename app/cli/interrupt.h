// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, SIGTERM and a closed terminal (SIGHUP) as a stop token: the first asks for a clean end,
// the second ends at once.
#pragma once

#include <memory>
#include <stop_token>

namespace driftscope::cli {

// Construct before any other thread starts: signals are blocked in all later threads and
// collected by one that waits for them.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  [[nodiscard]] std::stop_token token() const;
  // For other reasons to stop, such as a closed pipe.
  void request_stop();
  // True once a signal came (and not merely request_stop()).
  [[nodiscard]] bool interrupted() const;

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

}  // namespace driftscope::cli
