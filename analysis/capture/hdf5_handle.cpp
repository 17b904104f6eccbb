// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/hdf5_handle.h"

#include <fmt/format.h>

#include <array>

namespace driftscope::hdf5 {
namespace {

struct Remedy {
  std::string_view sign;    // what the library says somewhere in its stack
  std::string_view reason;  // what it means and what to do
};
constexpr std::array kRemedies{
    Remedy{"No space left on device", "the disk is full; free space or write elsewhere"},
    Remedy{"File too large",
           "the file size limit is reached; raise `ulimit -f` or write elsewhere"},
    Remedy{"Disk quota exceeded", "the disk quota is used up; free space or write elsewhere"},
    Remedy{"Permission denied", "permission denied; check the owner and mode of file and folder"},
    Remedy{"No such file or directory", "no such file or folder; check the path"},
    Remedy{"Is a directory", "it is a folder; name a file"},
    Remedy{"Read-only file system", "the file system is read-only; write elsewhere"},
    Remedy{"unable to lock file",
           "another program holds a lock on it; close that program, or set "
           "HDF5_USE_FILE_LOCKING=FALSE where the file system cannot lock"},
    Remedy{"already open for write",
           "another program is writing it in a mode that cannot be read meanwhile, or was killed "
           "doing so; wait for it to end"},
    Remedy{"truncated file",
           "the file is cut short; copy it again, or save what is there with `driftscope recover`"},
};

herr_t append_message(unsigned /*depth*/, const H5E_error2_t* entry, void* target) {
  auto& text = *static_cast<std::string*>(target);
  if (!text.empty()) text += "; ";
  fmt::format_to(std::back_inserter(text), "{}: {}",
                 entry->func_name == nullptr ? "?" : entry->func_name,
                 entry->desc == nullptr ? "" : entry->desc);
  return 0;
}

}  // namespace

void initialise() {
  [[maybe_unused]] static const bool done = [] {
    H5dont_atexit();
    H5open();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5PLset_loading_state(0);
    return true;
  }();
}

std::string take_error_stack() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append_message, &text);
  H5Eclear2(H5E_DEFAULT);
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

void throw_call_failure(const Place& place, std::string_view call, std::string_view object) {
  std::string detail = take_error_stack();
  std::string_view reason = place.kind == ErrorKind::output
                                ? "the HDF5 library refused; run with -v for its messages"
                                : "the file is damaged; run with -v for the library's messages";
  for (const Remedy& remedy : kRemedies) {
    if (detail.find(remedy.sign) != std::string::npos) {
      reason = remedy.reason;
      break;
    }
  }
  throw Hdf5Failure{
      Error{.kind = place.kind,
            .message = fmt::format("{}: {}: {} failed: {}", place.file, object, call, reason),
            .detail = std::move(detail)}};
}

void throw_rule(const Place& place, std::string_view object, std::string_view rule) {
  throw Hdf5Failure{Error{.kind = place.kind,
                          .message = fmt::format("{}: {}: {}", place.file, object, rule),
                          .detail = take_error_stack()}};
}

}  // namespace driftscope::hdf5
