// SPDX-License-Identifier: Apache-2.0
#include "app/cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

Result<void> stdout_failure() {
  // The reader has gone (`| head`): nobody is left to tell, and the exit code says it.
  if (errno == EPIPE) return fail(ErrorKind::output, "");
  return fail(ErrorKind::output,
              fmt::format("stdout: cannot write the result ({}); free space or write elsewhere",
                          std::strerror(errno)));
}

constexpr int kBarWidth = 30;

}  // namespace

bool Console::colour_stdout() const {
  const char* no_colour = std::getenv("NO_COLOR");
  return (no_colour == nullptr || *no_colour == '\0') && isatty(STDOUT_FILENO) != 0;
}

Result<void> Console::print(std::string_view text) const {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) return stdout_failure();
  return {};
}

Result<void> Console::flush() const {
  if (std::fflush(stdout) != 0) return stdout_failure();
  return {};
}

void Console::note(std::string_view line) const {
  if (!quiet) fmt::print(stderr, "{}\n", line);
}

void Console::report(const Error& error) const {
  if (error.message.empty()) return;
  fmt::print(stderr, "driftscope: {}\n", escape_for_display(error.message));
  if (verbose && !error.detail.empty()) fmt::print(stderr, "{}\n", error.detail);
}

ProgressLine::ProgressLine(const Console& console)
    : m_enabled(!console.quiet),
      m_terminal(isatty(STDERR_FILENO) != 0),
      m_start(Clock::now()),
      m_last(m_start) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::update(std::string_view phase, std::int64_t done, std::int64_t total) {
  if (!m_enabled) return;
  const auto now = Clock::now();
  const bool new_phase = phase != m_phase;
  const auto wait = m_terminal ? std::chrono::milliseconds(100) : std::chrono::milliseconds(3000);
  if (now - m_last < wait && (!new_phase || !m_terminal)) return;
  m_phase = phase;
  m_last = now;
  if (!m_terminal) {
    fmt::print(stderr, "{} {}/{}\n", phase, done, total);
    return;
  }
  const auto filled = total > 0 ? static_cast<int>(kBarWidth * done / total) : 0;
  const auto seconds = std::chrono::duration<double>(now - m_start).count();
  fmt::print(stderr, "\r\x1b[K{:<8} [{:#<{}}{:.<{}}] {}/{}  {:.0f} s", phase, "", filled, "",
             kBarWidth - filled, done, total, seconds);
  std::fflush(stderr);
  m_shown = true;
}

void ProgressLine::clear() {
  if (m_shown) {
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
    m_shown = false;
  }
}

}  // namespace driftscope::cli
