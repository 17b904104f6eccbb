// SPDX-License-Identifier: Apache-2.0
// Reads numpy's .npy and uncompressed .npz files, for oracle data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace driftscope::test {

struct NumpyArray {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // row-major; integers convert exactly
  // Elements of one index of the first axis, and where they begin.
  [[nodiscard]] std::int64_t row_size() const {
    return static_cast<std::int64_t>(values.size()) / shape.at(0);
  }
  [[nodiscard]] const double* row(std::int64_t index) const {
    return values.data() + index * row_size();
  }
};

// Both throw std::runtime_error with the file's name on anything unexpected.
[[nodiscard]] NumpyArray read_npy(const std::filesystem::path& path);
[[nodiscard]] std::map<std::string, NumpyArray> read_npz(const std::filesystem::path& path);

}  // namespace driftscope::test
