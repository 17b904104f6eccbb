// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace driftscope {

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : m_session(std::move(other.m_session)),
      m_data(std::exchange(other.m_data, nullptr)),
      m_bytes(std::exchange(other.m_bytes, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(m_session, other.m_session);
  std::swap(m_data, other.m_data);
  std::swap(m_bytes, other.m_bytes);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (m_data != nullptr) m_session->release(m_data);
}

Result<std::shared_ptr<CudaSession>> CudaSession::open(std::shared_ptr<const CudaModule> module,
                                                       int streams, int device) {
  const auto devices = module->devices();
  if (!devices) return tl::unexpected(devices.error());
  if (devices->empty()) {
    return fail(ErrorKind::engine,
                "backend cuda: no CUDA device on this machine; use --set "
                "backend=host");
  }
  CudaContextOptions options;
  options.device = device;
  options.streams = streams;
  CudaContext* context = nullptr;
  CudaMessage message{};
  if (module->table().open(&options, &context, &message) != 0) {
    return fail(ErrorKind::engine, fmt::format("backend cuda: {}", message.text));
  }
  return std::make_shared<CudaSession>(std::move(module), context);
}

Result<DeviceMemory> CudaSession::allocate(const std::string& what, std::size_t bytes) {
  CudaMessage message{};
  void* data = nullptr;
  if (table().allocate(m_context, what.c_str(), bytes, &data, &message) != 0) {
    return fail(ErrorKind::engine, fmt::format("backend cuda: {}", message.text));
  }
  return DeviceMemory(shared_from_this(), data, bytes);
}

Result<DeviceMemory> CudaSession::copy_of(const std::string& what, const void* source,
                                          std::size_t bytes) {
  auto memory = allocate(what, bytes);
  if (memory && bytes > 0) call(table().upload, memory->data(), source, bytes);
  return memory;
}

Result<void> CudaSession::status() {
  if (m_error.empty()) return {};
  return fail(ErrorKind::engine,
              fmt::format("backend cuda: {}", std::exchange(m_error, std::string{})));
}

Result<void> DeviceList::reserve(CudaSession& session, std::size_t bytes, int& generation) {
  if (bytes <= m_memory.bytes()) return {};
  auto memory = session.allocate(m_what, std::max(bytes, 2 * m_memory.bytes()));
  if (!memory) return tl::unexpected(memory.error());
  // Kernels in flight may still use the old memory.
  session.call(session.table().synchronize);
  m_memory = *std::move(memory);
  ++generation;
  return {};
}

}  // namespace driftscope
