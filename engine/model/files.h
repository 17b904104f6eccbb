// SPDX-License-Identifier: Apache-2.0
// Reading files that came from somebody else: regular files only, with a size limit.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace driftscope {

// Owns an open file descriptor of a regular file. A FIFO, device or directory is refused
// without waiting for it.
class RegularFile {
 public:
  [[nodiscard]] static Result<RegularFile> open(const std::filesystem::path& path);
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&& other) noexcept;
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;
  ~RegularFile();

  [[nodiscard]] int descriptor() const { return m_descriptor; }
  [[nodiscard]] std::size_t bytes() const { return m_bytes; }
  [[nodiscard]] std::size_t hard_links() const { return m_hard_links; }
  // Fills up to `capacity` bytes from the current position; 0 at the end.
  [[nodiscard]] Result<std::size_t> read_some(char* target, std::size_t capacity) const;

 private:
  RegularFile() = default;
  std::string m_name;  // for messages
  int m_descriptor = -1;
  std::size_t m_bytes = 0;
  std::size_t m_hard_links = 1;
};

// A whole file mapped read-only. The descriptor is closed at once, so that a checkpoint of
// hundreds of shards does not use up the process's limit.
class MappedFile {
 public:
  [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::string_view bytes() const { return {m_data, m_size}; }
  [[nodiscard]] std::size_t hard_links() const { return m_hard_links; }
  // `part` of bytes() was read: the pages wholly inside of it are given back to the system, so that
  // a file larger than memory can be read from front to back. They come again when touched.
  void forget(std::string_view part) const;

 private:
  MappedFile() = default;
  void release() noexcept;
  const char* m_data = nullptr;  // page-aligned; null for an empty file
  std::size_t m_size = 0;
  std::size_t m_hard_links = 1;
};

// Errors: malformed, when absent, not a regular file, unreadable or larger than the limit.
[[nodiscard]] Result<std::string> read_whole_file(const std::filesystem::path& path,
                                                  std::size_t max_bytes);

// The path as it is printed in messages.
[[nodiscard]] std::string display_path(const std::filesystem::path& path);

}  // namespace driftscope
