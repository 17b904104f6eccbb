// SPDX-License-Identifier: Apache-2.0
#include "engine/model/hash_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>

#include "engine/model/checkpoint.h"

namespace driftscope {
namespace {

constexpr std::int64_t kSmallFileBytes = std::int64_t{1} << 20U;
constexpr std::int64_t kSettledSeconds = 3;
constexpr std::size_t kDigestCharacters = 64;

std::filesystem::path cache_folder() {
  // The XDG base directory specification asks to ignore relative paths.
  const char* given = std::getenv("XDG_CACHE_HOME");
  if (given != nullptr && given[0] == '/') {
    return std::filesystem::path(given) / "driftscope" / "sha256";
  }
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') {
    return std::filesystem::path(home) / ".cache" / "driftscope" / "sha256";
  }
  return {};
}

bool is_digest(std::string_view text) {
  return text.size() == kDigestCharacters &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool changed_lately(const struct stat& status, std::int64_t now) {
  const std::int64_t changed = std::max(status.st_mtim.tv_sec, status.st_ctim.tv_sec);
  return now - changed < kSettledSeconds;
}

}  // namespace

HashCache::HashCache(const std::filesystem::path& file, std::int64_t now) {
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::canonical(file, error);
  struct stat status {};
  if (error || ::stat(canonical.c_str(), &status) != 0) return;
  if (status.st_size < kSmallFileBytes || changed_lately(status, now)) return;
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return;
  m_key = fmt::format("{} {}.{:09} {}.{:09} {} {}", status.st_size, status.st_mtim.tv_sec,
                      status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
                      status.st_dev, status.st_ino);
  m_entry = folder / sha256_of_bytes(canonical.string());
}

std::optional<std::string> HashCache::find() const {
  if (m_entry.empty()) return std::nullopt;
  std::ifstream stream(m_entry);
  std::string key;
  std::string digest;
  if (!std::getline(stream, key) || !std::getline(stream, digest)) return std::nullopt;
  if (key != m_key || !is_digest(digest)) return std::nullopt;
  return digest;
}

void HashCache::store(const std::string& sha256) const {
  if (m_entry.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(m_entry.parent_path(), error);
  if (error) return;
  std::filesystem::path temporary = m_entry;
  temporary += fmt::format(".{}.{}", ::getpid(), static_cast<const void*>(this));
  {
    std::ofstream stream(temporary, std::ios::trunc);
    stream << m_key << '\n' << sha256 << '\n';
    stream.close();
    if (!stream) {
      std::filesystem::remove(temporary, error);
      return;
    }
  }
  // Other runs see the old entry or the new one, never half of one.
  std::filesystem::rename(temporary, m_entry, error);
  if (error) std::filesystem::remove(temporary, error);
}

}  // namespace driftscope
