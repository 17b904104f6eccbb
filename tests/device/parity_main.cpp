// SPDX-License-Identifier: Apache-2.0
// Prints the table "same bits". Linked with the SIMT harness it is a program of the build
// (same_bits_table); for a GPU it loads the CUDA module:
//   device_parity MODULE.so [--json FILE]
#include "tests/device/parity.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

namespace driftscope::parity {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

void write_json(const std::string& path, const Device& device, const std::vector<Line>& lines) {
  std::ofstream out(path);
  out << "{\"device\": " << quoted(device.name) << ", \"same_bits\": [";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    out << (i == 0 ? "\n" : ",\n")
        << fmt::format(R"(  {{"operation": {}, "variants": {}, "cases": {}, "equal": {}}})",
                       quoted(line.operation), quoted(line.variants), line.cases, line.equal);
  }
  out << "\n]}\n";
}

const CudaTable* find_table([[maybe_unused]] const char* path) {
#if defined(DRIFTSCOPE_SIMT)
  return driftscope_cuda_table();
#else
  void* const module = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw std::runtime_error(::dlerror());
  const auto function = reinterpret_cast<const CudaTable* (*)()>(::dlsym(module, kCudaTableSymbol));
  if (function == nullptr) throw std::runtime_error("not the CUDA module of this version");
  return function();
#endif
}

Device open_device(const CudaTable* table) {
  CudaMessage message{};
  int count = 0;
  if (table->device_count(&count, &message) != 0) throw std::runtime_error(message.text);
  if (count == 0) throw std::runtime_error("no CUDA device on this machine");
  CudaDeviceInfo info{};
  Device device{.table = table};
  const CudaContextOptions options{};
  if (table->get_device(0, &info, &message) != 0 ||
      table->open(&options, &device.context, &message) != 0) {
    throw std::runtime_error(message.text);
  }
  device.name = info.name;
  return device;
}

int run(const char* path, const std::string& json) {
  const Device device = open_device(find_table(path));
  bool equal = true;
  fmt::print("{:<26} {:>6} {:>6}  {}\n", "operation", "cases", "equal", "variants");
  const std::vector<Line> lines = run_all(device, [&](const Line& line) {
    fmt::print("{:<26} {:>6} {:>6}  {}\n", line.operation, line.cases, line.equal, line.variants);
    if (line.equal != line.cases) {
      equal = false;
      fmt::print("  first difference: {}\n", line.first_difference);
    }
    std::fflush(stdout);
  });
  if (!json.empty()) write_json(json, device, lines);
  device.table->close(device.context);
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace driftscope::parity

int main(int argc, char** argv) {
  std::string json;
  const char* path = "libdriftscope_cuda.so";
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--json" && i + 1 < argc) {
      json = argv[++i];
    } else {
      path = argv[i];
    }
  }
  try {
    return driftscope::parity::run(path, json);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 5;
  }
}
