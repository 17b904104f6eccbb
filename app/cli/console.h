// SPDX-License-Identifier: Apache-2.0
// Where text goes: results to stdout, progress and log to stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace driftscope::cli {

class Console {
 public:
  bool quiet = false;
  bool verbose = false;

  [[nodiscard]] bool colour_stdout() const;  // a terminal, and NO_COLOR is not set
  // Writes all of `text` to stdout. Errors: output (full disk, closed pipe).
  [[nodiscard]] Result<void> print(std::string_view text) const;
  [[nodiscard]] Result<void> flush() const;
  void note(std::string_view line) const;  // stderr, unless quiet
  void report(const Error& error) const;   // one line on stderr; detail with verbose
};

// A bar on a terminal, else a plain line every few seconds; nothing when quiet.
class ProgressLine {
 public:
  explicit ProgressLine(const Console& console);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void update(std::string_view phase, std::int64_t done, std::int64_t total);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool m_enabled = false;
  bool m_terminal = false;
  bool m_shown = false;
  std::string m_phase;
  Clock::time_point m_start;
  Clock::time_point m_last;
};

}  // namespace driftscope::cli
