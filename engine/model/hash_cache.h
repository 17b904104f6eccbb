// SPDX-License-Identifier: Apache-2.0
// Remembers the SHA-256 of big files between runs, in $XDG_CACHE_HOME/driftscope/sha256.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace driftscope {

// The entry of one file. It is good while size, modification and change time (nanoseconds),
// device and inode are the same. A cache that cannot be read or written is no error: the file
// is hashed again.
class HashCache {
 public:
  // `now`: seconds since the epoch.
  HashCache(const std::filesystem::path& file, std::int64_t now);
  [[nodiscard]] std::optional<std::string> find() const;
  // Does nothing for files small enough to hash at once, and for files changed within the last
  // seconds: a second change in the same clock tick would keep size and times.
  void store(const std::string& sha256) const;

 private:
  std::filesystem::path m_entry;  // empty: do not cache
  std::string m_key;              // first line of the entry
};

}  // namespace driftscope
