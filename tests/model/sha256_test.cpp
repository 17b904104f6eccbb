// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>

#include <ctime>
#include <filesystem>

#include "engine/model/checkpoint.h"
#include "engine/model/hash_cache.h"
#include "tests/model/checkpoint_builder.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

// Points XDG_CACHE_HOME elsewhere while the test runs.
class CacheHome {
 public:
  explicit CacheHome(const fs::path& path) {
    const char* before = ::getenv("XDG_CACHE_HOME");
    if (before != nullptr) m_before = before;
    ::setenv("XDG_CACHE_HOME", path.c_str(), 1);
  }
  ~CacheHome() {
    if (m_before.empty()) {
      ::unsetenv("XDG_CACHE_HOME");
    } else {
      ::setenv("XDG_CACHE_HOME", m_before.c_str(), 1);
    }
  }

 private:
  std::string m_before;
};

// FIPS 180-4 examples.
constexpr const char* kEmptyDigest =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kAbcDigest =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kMillionDigest =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, StandardVectors) {
  EXPECT_EQ(sha256_of_bytes(""), kEmptyDigest);
  EXPECT_EQ(sha256_of_bytes("abc"), kAbcDigest);
  EXPECT_EQ(sha256_of_bytes(std::string(1'000'000, 'a')), kMillionDigest);
}

TEST(Sha256, Files) {
  const TemporaryDirectory directory;
  EXPECT_EQ(sha256_of_file(directory.write("a", "abc")).value(), kAbcDigest);
  EXPECT_EQ(sha256_of_file(directory.write("e", "")).value(), kEmptyDigest);
  EXPECT_EQ(sha256_of_file(directory.write("m", std::string(1'000'000, 'a'))).value(),
            kMillionDigest);
  const auto missing = sha256_of_file(directory.path() / "none");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind, ErrorKind::malformed);
}

std::size_t entries(const fs::path& cache) {
  std::error_code error;
  std::size_t count = 0;
  for (const auto& item : fs::recursive_directory_iterator(cache, error)) {
    if (item.is_regular_file()) ++count;
  }
  return count;
}

TEST(Sha256, FreshFilesAreNotCached) {
  // A file changed within the last seconds could change again in the same clock tick.
  const TemporaryDirectory directory;
  const TemporaryDirectory cache;
  const CacheHome home(cache.path());
  const std::string bytes(2'000'000, 'x');
  const fs::path file = directory.write("big", bytes);
  EXPECT_EQ(sha256_of_file(file).value(), sha256_of_bytes(bytes));
  EXPECT_EQ(entries(cache.path()), 0U);
}

TEST(Sha256, CacheKnowsTheFileUntilItChanges) {
  const TemporaryDirectory directory;
  const TemporaryDirectory cache;
  const CacheHome home(cache.path());
  const std::int64_t in_an_hour = std::time(nullptr) + 3600;
  const fs::path file = directory.write("big", std::string(2'000'000, 'x'));
  EXPECT_FALSE(HashCache(file, in_an_hour).find().has_value());
  HashCache(file, in_an_hour).store(kAbcDigest);
  EXPECT_EQ(entries(cache.path()), 1U);
  EXPECT_EQ(HashCache(file, in_an_hour).find(), kAbcDigest);
  // What the cache says is what is given out, so a wrong entry would show.
  directory.write("big", std::string(2'000'001, 'x'));
  EXPECT_FALSE(HashCache(file, in_an_hour).find().has_value());
}

TEST(Sha256, DamagedCacheEntriesAreIgnored) {
  const TemporaryDirectory directory;
  const TemporaryDirectory cache;
  const CacheHome home(cache.path());
  const std::int64_t in_an_hour = std::time(nullptr) + 3600;
  const fs::path file = directory.write("big", std::string(2'000'000, 'x'));
  HashCache(file, in_an_hour).store("not a digest");
  EXPECT_FALSE(HashCache(file, in_an_hour).find().has_value());
}

TEST(Sha256, SmallFilesAreNotCached) {
  const TemporaryDirectory directory;
  const TemporaryDirectory cache;
  const CacheHome home(cache.path());
  HashCache(directory.write("small", "abc"), std::time(nullptr) + 3600).store(kAbcDigest);
  EXPECT_EQ(entries(cache.path()), 0U);
}

TEST(Sha256, AnUnwritableCacheIsNoError) {
  const TemporaryDirectory directory;
  const CacheHome home("/proc/no-such-place");
  const std::string bytes(2'000'000, 'y');
  EXPECT_EQ(sha256_of_file(directory.write("big", bytes)).value(), sha256_of_bytes(bytes));
}

TEST(Sha256, CombinedIsOverSortedLines) {
  const TemporaryDirectory directory;
  const auto config = small_config("llama");
  write_checkpoint(directory, config, small_tensors(config));
  directory.write("tokenizer_config.json", "{}");
  const auto checkpoint = ModelCheckpoint::open(directory.path());
  ASSERT_TRUE(checkpoint.has_value());
  const fs::path config_file = directory.path() / "config.json";
  const fs::path weights = directory.path() / "model.safetensors";
  const auto line = [](const fs::path& file) {
    return file.filename().string() + " " + std::to_string(fs::file_size(file)) + " " +
           sha256_of_file(file).value() + "\n";
  };
  EXPECT_EQ((*checkpoint)->combined_sha256().value(),
            sha256_of_bytes(line(config_file) + line(weights)));
  EXPECT_EQ((*checkpoint)->files()->size(), 3U);
}

}  // namespace
}  // namespace driftscope
