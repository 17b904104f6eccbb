// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace driftscope {

namespace {

constexpr const char* kFileName = "libdriftscope_cuda.so";

std::vector<std::string> places() {
  if (const char* named = std::getenv("DRIFTSCOPE_CUDA_MODULE")) return {named};
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const std::filesystem::path folder = program.parent_path();
  return {(folder / kFileName).string(),
          (folder.parent_path() / "lib" / "driftscope" / kFileName).string()};
}

std::string version_text(int version) {
  if (version == 0) return {};
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

void CudaModule::Close::operator()(void* handle) const { ::dlclose(handle); }

Result<CudaModule> CudaModule::load() {
  const std::vector<std::string> candidates = places();
  for (const std::string& path : candidates) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) return load(path);
  }
  return fail(ErrorKind::engine,
              "no CUDA module: this build has none or it is not beside the program; build with the "
              "CUDA toolkit, or set DRIFTSCOPE_CUDA_MODULE to its file",
              fmt::format("looked for: {}", fmt::join(candidates, ", ")));
}

Result<CudaModule> CudaModule::load(const std::string& path) {
  CudaModule module;
  module.m_path = path;
  module.m_handle.reset(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (module.m_handle == nullptr) {
    const char* reason = ::dlerror();
    return fail(ErrorKind::engine,
                fmt::format("{}: the CUDA module does not load; rebuild it on this machine", path),
                reason == nullptr ? "" : reason);
  }
  using TableFunction = const CudaTable* (*)();
  const auto table =
      reinterpret_cast<TableFunction>(::dlsym(module.m_handle.get(), kCudaTableSymbol));
  if (table != nullptr) module.m_table = table();
  if (module.m_table == nullptr || module.m_table->interface_version != kCudaInterface) {
    return fail(ErrorKind::engine,
                fmt::format("{}: not the CUDA module of this version; rebuild it", path));
  }
  return module;
}

CudaModule CudaModule::of(const CudaTable& table) {
  CudaModule module;
  module.m_path = "built in";
  module.m_table = &table;
  return module;
}

Result<CudaVersions> CudaModule::versions() const {
  CudaVersions versions{};
  CudaMessage message{};
  if (m_table->get_versions(&versions, &message) != 0) return fail(ErrorKind::engine, message.text);
  return versions;
}

Result<std::string> CudaModule::driver_version() const {
  return versions().map([](const auto& all) { return version_text(all.driver); });
}

Result<std::string> CudaModule::runtime_version() const {
  return versions().map([](const auto& all) { return version_text(all.runtime); });
}

Result<std::vector<CudaDevice>> CudaModule::devices() const {
  const Result<std::string> driver = driver_version();
  if (!driver) return tl::unexpected(driver.error());
  if (driver->empty()) {
    return fail(ErrorKind::engine, "no CUDA driver on this machine; install NVIDIA's driver");
  }
  CudaMessage message{};
  int count = 0;
  if (m_table->device_count(&count, &message) != 0) {
    return fail(ErrorKind::engine, fmt::format("no CUDA device: {}", message.text));
  }
  std::vector<CudaDevice> devices;
  for (int i = 0; i < count; ++i) {
    CudaDeviceInfo device{};
    if (m_table->get_device(i, &device, &message) != 0) {
      return fail(ErrorKind::engine, fmt::format("CUDA device {}: {}", i, message.text));
    }
    devices.push_back({.name = device.name,
                       .compute_major = device.compute_major,
                       .compute_minor = device.compute_minor,
                       .multiprocessors = device.multiprocessors,
                       .memory_bytes = device.memory_bytes});
  }
  return devices;
}

std::string cuda_summary() {
  const Result<CudaModule> module = CudaModule::load();
  if (!module) return module.error().message;
  const Result<std::vector<CudaDevice>> devices = module->devices();
  if (!devices) return devices.error().message;
  if (devices->empty()) return "no CUDA device";
  std::string text;
  for (const CudaDevice& device : *devices) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{} (compute {}.{}, {} multiprocessors, {} MiB)", device.name,
                        device.compute_major, device.compute_minor, device.multiprocessors,
                        device.memory_bytes >> 20U);
  }
  return text;
}

}  // namespace driftscope
