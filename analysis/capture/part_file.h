// SPDX-License-Identifier: Apache-2.0
// PATH.part: claimed by one writer at a time, renamed to PATH when whole.
#pragma once

#include <filesystem>

#include "kernels/base/result.h"

namespace driftscope {

class PartFile {
 public:
  // Creates PATH.part, or takes over one that no living writer holds. Errors: output.
  [[nodiscard]] static Result<PartFile> claim(const std::filesystem::path& target);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&& other) noexcept;
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();
  [[nodiscard]] const std::filesystem::path& part() const { return m_part; }
  // Renames to the target. Errors: output.
  [[nodiscard]] Result<void> publish();
  void remove();

 private:
  PartFile(std::filesystem::path target, std::filesystem::path part, int descriptor);
  std::filesystem::path m_target;
  std::filesystem::path m_part;
  int m_descriptor = -1;  // holds the lock
};

}  // namespace driftscope
