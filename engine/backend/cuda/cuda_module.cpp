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

template <class Function>
bool CudaModule::bind(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(m_handle.get(), name));
  return function != nullptr;
}

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
  DriftscopeCudaInterfaceVersion interface_version = nullptr;
  const bool complete = module.bind(interface_version, "driftscope_cuda_interface_version") &&
                        module.bind(module.m_get_versions, "driftscope_cuda_get_versions") &&
                        module.bind(module.m_device_count, "driftscope_cuda_device_count") &&
                        module.bind(module.m_get_device, "driftscope_cuda_get_device") &&
                        module.bind(module.m_run_matmul, "driftscope_cuda_run_matmul");
  if (!complete || interface_version() != kDriftscopeCudaInterface) {
    return fail(ErrorKind::engine,
                fmt::format("{}: not the CUDA module of this version; rebuild it", path));
  }
  return module;
}

Result<DriftscopeCudaVersions> CudaModule::versions() const {
  DriftscopeCudaVersions versions{};
  DriftscopeCudaMessage message{};
  if (m_get_versions(&versions, &message) != 0) return fail(ErrorKind::engine, message.text);
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
  DriftscopeCudaMessage message{};
  int count = 0;
  if (m_device_count(&count, &message) != 0) {
    return fail(ErrorKind::engine, fmt::format("no CUDA device: {}", message.text));
  }
  std::vector<CudaDevice> devices;
  for (int i = 0; i < count; ++i) {
    DriftscopeCudaDevice device{};
    if (m_get_device(i, &device, &message) != 0) {
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

Result<void> CudaModule::matmul(const DriftscopeCudaMatmul& request) const {
  DriftscopeCudaMessage message{};
  if (m_run_matmul(&request, &message) != 0) {
    return fail(ErrorKind::engine, fmt::format("CUDA matmul: {}", message.text));
  }
  return {};
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
