// SPDX-License-Identifier: Apache-2.0
// A saved file of answers: read into memory, or mapped where it is long. A file that is cut while
// it is mapped ends the program, so what a recorder may still be writing is read.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/model/files.h"
#include "kernels/base/result.h"

namespace driftscope::cli {

class VendorInput {
 public:
  // "-" is standard input. Errors: malformed, when absent, not a regular file or unreadable.
  [[nodiscard]] static Result<VendorInput> open(const std::string& path);
  [[nodiscard]] std::string_view bytes() const { return m_mapped ? m_mapped->bytes() : m_text; }
  [[nodiscard]] const std::string& name() const { return m_name; }
  // The bytes of `part` of bytes() by way of the file, into `buffer`: nothing stays mapped, and
  // threads do not get in each other's way. Any thread may call it.
  [[nodiscard]] std::string_view fetch(std::string_view part, std::string& buffer) const;
  // The bytes from front to back; 0 at the end. Empty where the file is in memory.
  [[nodiscard]] std::function<std::size_t(char*, std::size_t)> reader() const;
  // Lets go of the memory behind a part that was read. It can be read again, more slowly.
  void forget(std::string_view part) const {
    if (m_mapped) m_mapped->forget(part);
  }

 private:
  std::string m_name;
  std::string m_text;
  std::optional<MappedFile> m_mapped;
  std::optional<RegularFile> m_file;
};

}  // namespace driftscope::cli
