// SPDX-License-Identifier: Apache-2.0
// Lets the library open a file whose end is missing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "kernels/base/result.h"

namespace driftscope {

// The end-of-file address that a version 2 or 3 superblock with 8-byte offsets states (HDF5 File
// Format Specification, II.A); empty for anything else.
[[nodiscard]] std::optional<std::uint64_t> stated_length(const std::filesystem::path& file);

// A copy of `file`, filled with zeros to its stated length; removed again at the end. Rows and
// metadata that lay in the missing part do not pass their check values.
class PaddedCopy {
 public:
  // `place`: where the copy is made; must not exist. Errors: malformed (the file is not cut short),
  // output (the copy cannot be written).
  [[nodiscard]] static Result<PaddedCopy> make(const std::filesystem::path& file,
                                               const std::filesystem::path& place);
  ~PaddedCopy();
  PaddedCopy(PaddedCopy&& other) noexcept;
  PaddedCopy& operator=(PaddedCopy&&) = delete;
  PaddedCopy(const PaddedCopy&) = delete;
  PaddedCopy& operator=(const PaddedCopy&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return m_path; }

 private:
  explicit PaddedCopy(std::filesystem::path path) : m_path(std::move(path)) {}
  std::filesystem::path m_path;
};

}  // namespace driftscope
