// SPDX-License-Identifier: Apache-2.0
// Expected failures travel as Result<T>; programmer errors assert.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace driftscope {

// What kind of failure it is decides the exit code of the command line.
enum class ErrorKind {
  usage,         // exit 2: wrong flags, unknown knob or value
  inconclusive,  // exit 3: the two sides cannot be compared
  malformed,     // exit 4: unreadable or malformed input
  engine,        // exit 5: engine or device failure
  output,        // exit 6: cannot write output
  interrupted,   // exit 130: stopped on request; what was captured is kept
};

[[nodiscard]] constexpr int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return 2;
    case ErrorKind::inconclusive:
      return 3;
    case ErrorKind::malformed:
      return 4;
    case ErrorKind::engine:
      return 5;
    case ErrorKind::output:
      return 6;
    case ErrorKind::interrupted:
      return 130;
  }
  return 5;
}

struct Error {
  ErrorKind kind = ErrorKind::engine;
  std::string message;  // one line: what, where, what to do
  std::string detail;   // library messages and the like; shown with -v only
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorKind kind, std::string message,
                                                std::string detail = {}) {
  return tl::unexpected<Error>(
      Error{.kind = kind, .message = std::move(message), .detail = std::move(detail)});
}

}  // namespace driftscope
