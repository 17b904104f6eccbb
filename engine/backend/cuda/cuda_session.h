// SPDX-License-Identifier: Apache-2.0
// A device in use: memory that frees itself, and calls whose first error is kept.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/cuda/cuda_module.h"
#include "kernels/base/result.h"

namespace driftscope {

class CudaSession;

// Device memory; empty, or freed at the end of its life. Keeps the session alive.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(std::shared_ptr<CudaSession> session, void* data, std::size_t bytes)
      : m_session(std::move(session)), m_data(data), m_bytes(bytes) {}
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();
  [[nodiscard]] void* data() const { return m_data; }
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(m_data);
  }
  [[nodiscard]] std::size_t bytes() const { return m_bytes; }

 private:
  std::shared_ptr<CudaSession> m_session;
  void* m_data = nullptr;
  std::size_t m_bytes = 0;
};

// Calls after an error do nothing until status() has given it out; so a pass over many kernels
// asks once, at its end.
class CudaSession : public std::enable_shared_from_this<CudaSession> {
 public:
  // Errors: engine (no driver, no device, no such number of streams).
  [[nodiscard]] static Result<std::shared_ptr<CudaSession>> open(
      std::shared_ptr<const CudaModule> module, int streams, int device = 0);
  CudaSession(std::shared_ptr<const CudaModule> module, CudaContext* context)
      : m_module(std::move(module)), m_context(context) {}
  CudaSession(const CudaSession&) = delete;
  CudaSession& operator=(const CudaSession&) = delete;
  ~CudaSession() { table().close(m_context); }

  [[nodiscard]] const CudaTable& table() const { return m_module->table(); }
  // Errors: engine (`what` does not fit, and how much is free).
  [[nodiscard]] Result<DeviceMemory> allocate(const std::string& what, std::size_t bytes);
  // Memory with these bytes.
  [[nodiscard]] Result<DeviceMemory> copy_of(const std::string& what, const void* source,
                                             std::size_t bytes);
  void release(void* data) { table().release(m_context, data); }

  // A function of the table, without its context and message: call(table().upload, to, from, n).
  template <class... Parameters, class... Arguments>
  void call(int (*function)(CudaContext*, Parameters...), Arguments... arguments) {
    if (!m_error.empty()) return;
    CudaMessage message{};
    if (function(m_context, arguments..., &message) != 0) m_error = message.text;
  }
  // A kernel of the table on a stream.
  template <class Request>
  void run(int (*operation)(CudaContext*, int, const Request*, CudaMessage*),
           const Request& request, int stream = 0) {
    call(operation, stream, &request);
  }
  [[nodiscard]] CudaContext* context() const { return m_context; }
  // The first error since it was last asked for.
  [[nodiscard]] Result<void> status();

 private:
  std::shared_ptr<const CudaModule> m_module;
  CudaContext* m_context;
  std::string m_error;
};

// An array on the device that follows one on the host. `generation` counts the moves of any of
// these arrays, since a captured graph holds addresses.
class DeviceList {
 public:
  explicit DeviceList(std::string what) : m_what(std::move(what)) {}
  // Room for `bytes`; what was there is lost if it moves.
  [[nodiscard]] Result<void> reserve(CudaSession& session, std::size_t bytes, int& generation);
  template <class T>
  [[nodiscard]] Result<void> assign(CudaSession& session, const std::vector<T>& values,
                                    int& generation) {
    if (auto done = reserve(session, values.size() * sizeof(T), generation); !done) return done;
    if (!values.empty()) {
      session.call(session.table().upload, m_memory.data(), values.data(),
                   values.size() * sizeof(T));
    }
    return {};
  }
  template <class T>
  [[nodiscard]] T* as() const {
    return m_memory.as<T>();
  }

 private:
  std::string m_what;
  DeviceMemory m_memory;
};

}  // namespace driftscope
