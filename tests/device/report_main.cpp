// SPDX-License-Identifier: Apache-2.0
// The table "same bits", whole models, self-tests and benches of a device. Linked with the SIMT
// harness it is a program of the build (same_bits_table); for a GPU it loads the CUDA module:
//   device_report MODULE.so [--json FILE] [--bench SECONDS]
// Exit codes: 0 all equal, 1 something differs, 5 no device or it failed.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/device/device_checks.h"
#include "tests/device/model_parity.h"
#include "tests/device/parity.h"

namespace driftscope::parity {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string module = "libdriftscope_cuda.so";
  std::string json;
  double bench_seconds = 0.0;
};

class Report {
 public:
  explicit Report(std::shared_ptr<const CudaModule> module) : m_module(std::move(module)) {}

  void describe_device() {
    const auto devices = m_module->devices();
    if (!devices) throw std::runtime_error(devices.error().message);
    if (devices->empty()) throw std::runtime_error("no CUDA device on this machine");
    const CudaDevice& device = devices->front();
    m_name = device.name;
    m_json["device"] = {
        {"name", device.name},
        {"compute", fmt::format("{}.{}", device.compute_major, device.compute_minor)},
        {"multiprocessors", device.multiprocessors},
        {"memory_bytes", device.memory_bytes},
        {"driver", m_module->driver_version().value_or("")},
        {"runtime", m_module->runtime_version().value_or("")}};
    fmt::print("device: {} (compute {}.{})\n\n", device.name, device.compute_major,
               device.compute_minor);
  }

  void same_bits() {
    Device device{.table = &m_module->table(), .name = m_name};
    const CudaContextOptions options{};
    CudaMessage message{};
    if (device.table->open(&options, &device.context, &message) != 0) {
      throw std::runtime_error(message.text);
    }
    fmt::print("{:<26} {:>6} {:>6}  {}\n", "operation", "cases", "equal", "variants");
    run_all(device, [&](const Line& line) {
      note(line.equal == line.cases);
      fmt::print("{:<26} {:>6} {:>6}  {}\n", line.operation, line.cases, line.equal, line.variants);
      if (!line.first_difference.empty())
        fmt::print("  first difference: {}\n", line.first_difference);
      std::fflush(stdout);
      m_json["same_bits"].push_back({{"operation", line.operation},
                                     {"variants", line.variants},
                                     {"cases", line.cases},
                                     {"equal", line.equal},
                                     {"first_difference", line.first_difference}});
    });
    device.table->close(device.context);
  }

  void whole_models() {
    fmt::print("\n{:>8} {:>8}  whole model: host | device only\n", "values", "equal");
    for (const ModelCase& model_case : model_cases()) {
      const ModelResult result = run_case(model_case, m_module);
      note(result.equal == result.values);
      fmt::print("{:>8} {:>8}  {}\n", result.values, result.equal, result.name);
      std::fflush(stdout);
      m_json["whole_models"].push_back(
          {{"case", result.name}, {"values", result.values}, {"equal", result.equal}});
    }
  }

  void self_tests() {
    fmt::print("\nself-tests\n");
    for (const SelfTest& test : run_self_tests(m_module)) {
      note(test.passed);
      fmt::print("{:>8}  {}: {}\n", test.passed ? "passed" : "FAILED", test.name, test.detail);
      m_json["self_tests"].push_back(
          {{"name", test.name}, {"passed", test.passed}, {"detail", test.detail}});
    }
  }

  void benches(double seconds) {
    fmt::print("\nbenches (share: of the copy bandwidth, by bytes of weights)\n");
    for (const BenchLine& line : run_benches(m_module, seconds)) {
      fmt::print("{:>12.1f} {:<9} {:>6}  {} {}\n", line.value, line.unit,
                 line.share > 0.0 ? fmt::format("{:.0f}%", 100.0 * line.share) : "", line.name,
                 line.note);
      m_json["benches"].push_back({{"name", line.name},
                                   {"value", line.value},
                                   {"unit", line.unit},
                                   {"share", line.share},
                                   {"note", line.note}});
    }
  }

  [[nodiscard]] bool good() const { return m_good; }
  void write(const std::string& path) {
    m_json["all_equal"] = m_good;
    std::ofstream(path) << m_json.dump(2) << '\n';
  }

 private:
  void note(bool passed) { m_good = m_good && passed; }

  std::shared_ptr<const CudaModule> m_module;
  std::string m_name;
  Json m_json;
  bool m_good = true;
};

std::shared_ptr<const CudaModule> find_module([[maybe_unused]] const std::string& path) {
#if defined(DRIFTSCOPE_SIMT)
  return std::make_shared<const CudaModule>(CudaModule::of(*driftscope_cuda_table()));
#else
  auto module = CudaModule::load(path);
  if (!module) throw std::runtime_error(module.error().message + " " + module.error().detail);
  return std::make_shared<const CudaModule>(*std::move(module));
#endif
}

int run(const Options& options) {
  Report report(find_module(options.module));
  report.describe_device();
  report.same_bits();
  report.whole_models();
  report.self_tests();
  if (options.bench_seconds > 0.0) report.benches(options.bench_seconds);
  if (!options.json.empty()) report.write(options.json);
  fmt::print("\n{}\n", report.good() ? "everything equal" : "SOMETHING DIFFERS");
  return report.good() ? 0 : 1;
}

}  // namespace
}  // namespace driftscope::parity

int main(int argc, char** argv) {
  driftscope::parity::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--json" && i + 1 < argc) {
      options.json = argv[++i];
    } else if (argument == "--bench" && i + 1 < argc) {
      options.bench_seconds = std::atof(argv[++i]);
    } else {
      options.module = argument;
    }
  }
  try {
    return driftscope::parity::run(options);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", error.what());
    return 5;
  }
}
