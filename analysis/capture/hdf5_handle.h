// SPDX-License-Identifier: Apache-2.0
// Owners of HDF5 ids, and the one place where a failed HDF5 call becomes an Error. Inside this room
// a failure travels as the exception Hdf5Failure; guard() turns it into a Result at the public
// functions.
#pragma once

#include <hdf5.h>

#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/result.h"

namespace driftscope::hdf5 {

struct Hdf5Failure {
  Error error;
};

// Whom a failure concerns: reading blames the file (malformed), writing the disk (output).
struct Place {
  ErrorKind kind = ErrorKind::malformed;
  std::string file;
};

// Once per process, before any other call: the error stack is not printed, plugins are off, and the
// library does not try to flush at exit what a full disk refused before.
void initialise();

// The library's error stack, innermost last, folded into one line; clears it.
[[nodiscard]] std::string take_error_stack();
// Throws Hdf5Failure: "FILE: OBJECT: CALL failed (reason); remedy".
[[noreturn]] void throw_call_failure(const Place& place, std::string_view call,
                                     std::string_view object);
// Throws Hdf5Failure with a rule of the format: "FILE: OBJECT: RULE".
[[noreturn]] void throw_rule(const Place& place, std::string_view object, std::string_view rule);

template <class R>
R checked(R result, const Place& place, std::string_view call, std::string_view object) {
  if (result < 0) throw_call_failure(place, call, object);
  return result;
}

template <herr_t (*Close)(hid_t)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : m_id(id) {}
  Handle(Handle&& other) noexcept : m_id(std::exchange(other.m_id, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(m_id, other.m_id);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  // What fails while another failure unwinds has nothing to add to it.
  ~Handle() {
    if (m_id >= 0) Close(m_id);
  }
  [[nodiscard]] hid_t id() const { return m_id; }
  [[nodiscard]] bool valid() const { return m_id >= 0; }
  void close(const Place& place, std::string_view call, std::string_view object) {
    if (m_id < 0) return;
    checked(Close(std::exchange(m_id, H5I_INVALID_HID)), place, call, object);
  }

 private:
  hid_t m_id = H5I_INVALID_HID;
};

using File = Handle<H5Fclose>;
using Group = Handle<H5Gclose>;
using Dataset = Handle<H5Dclose>;
using Dataspace = Handle<H5Sclose>;
using Datatype = Handle<H5Tclose>;
using Attribute = Handle<H5Aclose>;
using PropertyList = Handle<H5Pclose>;
using Object = Handle<H5Oclose>;

// Runs `action`; a failure inside becomes the error of the Result.
template <class F>
auto guard(const Place& place, F&& action) -> Result<decltype(action())> {
  try {
    if constexpr (std::is_void_v<decltype(action())>) {
      std::forward<F>(action)();
      return {};
    } else {
      return std::forward<F>(action)();
    }
  } catch (Hdf5Failure& failure) {
    return tl::unexpected<Error>(std::move(failure.error));
  } catch (const std::bad_alloc&) {
    return fail(place.kind, place.file + ": not enough memory; close other programs or keep less");
  }
}

}  // namespace driftscope::hdf5
