// SPDX-License-Identifier: Apache-2.0
#include "engine/model/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "tests/model/temporary_directory.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kFirst = "0123456789abcdef0123456789abcdef01234567";
constexpr const char* kSecond = "0123aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

// As the hub's client lays it out: files are links into blobs/.
class HubCache : public ::testing::Test {
 protected:
  HubCache() {
    const std::string model = "models--org--tiny/";
    m_cache.write(model + "blobs/aa", "{}");
    m_cache.write(model + "refs/main", kFirst);
    m_cache.write(model + "refs/pr/3", std::string(kSecond) + "\n");
    m_cache.write(model + "refs/gone", "ffff");
    for (const char* commit : {kFirst, kSecond}) {
      const fs::path snapshot = m_cache.path() / (model + "snapshots") / commit;
      fs::create_directories(snapshot);
      fs::create_symlink("../../blobs/aa", snapshot / "config.json");
    }
    m_cache.write("models--gpt2/refs/main", kFirst);
    fs::create_directories(m_cache.path() / "models--gpt2/snapshots" / kFirst);
    m_cache.write("version.txt", "1");
  }
  [[nodiscard]] std::string commit(const std::string& text) const {
    const auto found = find_model(text, m_cache.path());
    return found ? found->commit : found.error().message;
  }
  TemporaryDirectory m_cache;
};

TEST_F(HubCache, FollowsARefToItsSnapshot) {
  const auto found = find_model("org/tiny", m_cache.path());
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->path, m_cache.path() / "models--org--tiny/snapshots" / kFirst);
  EXPECT_EQ(found->hub_id, "org/tiny");
  EXPECT_EQ(found->revision, "main");
  EXPECT_EQ(found->commit, kFirst);
  EXPECT_TRUE(fs::is_regular_file(found->path / "config.json"));
  EXPECT_EQ(commit("org/tiny@pr/3"), kSecond);
  EXPECT_EQ(commit("gpt2"), kFirst);
}

TEST_F(HubCache, TakesACommitWholeOrShortened) {
  EXPECT_EQ(commit(std::string("org/tiny@") + kSecond), kSecond);
  EXPECT_EQ(commit("org/tiny@01234"), kFirst);
  EXPECT_EQ(commit("org/tiny@0123a"), kSecond);
}

TEST_F(HubCache, SaysWhereItLookedAndWhatIsThere) {
  EXPECT_THAT(commit("org/other"), HasSubstr("not in the hub cache " + m_cache.path().string() +
                                             ", which holds gpt2, org/tiny"));
  // Both snapshots begin so.
  EXPECT_THAT(commit("org/tiny@0123"), HasSubstr("no such revision in"));
  EXPECT_THAT(
      commit("org/tiny@v2"),
      HasSubstr("there are the refs gone, main, pr/3 and the snapshots " + std::string(kFirst)));
  EXPECT_THAT(commit("org/tiny@gone"), HasSubstr("no snapshot of its commit ffff"));
  EXPECT_THAT(find_model("org/tiny", m_cache.path() / "none").error().message,
              HasSubstr("does not exist; download the model first, or set HF_HUB_CACHE"));
  EXPECT_THAT(commit("some/where/else"), HasSubstr("does not exist; give a checkpoint directory"));
  EXPECT_THAT(commit("tiny.gguf"), HasSubstr("does not exist; give a checkpoint directory"));
}

TEST_F(HubCache, APathIsTakenAsItIs) {
  const fs::path snapshot = m_cache.path() / "models--org--tiny/snapshots" / kSecond;
  const auto found = find_model(snapshot.string(), m_cache.path());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->path, snapshot);
  EXPECT_EQ(found->hub_id, "org/tiny");
  EXPECT_EQ(found->commit, kSecond);
  EXPECT_EQ(find_model((snapshot / "config.json").string(), m_cache.path())->commit, kSecond);
  EXPECT_EQ(find_model(m_cache.path().string(), m_cache.path())->hub_id, "");
}

TEST(HubId, RefusesWhatLeadsOutOfTheCache) {
  EXPECT_EQ(parse_hub_id("org/name@v1.0")->revision, "v1.0");
  EXPECT_EQ(parse_hub_id("Qwen/Qwen2.5-0.5B-Instruct")->id, "Qwen/Qwen2.5-0.5B-Instruct");
  for (const char* text : {"", "/", "/etc", "../x", "a/..", "a/b/c", "a//b", "a/b@", "a/b@../x",
                           "a/b@/etc", "a b", "a--b/c", "~/x"}) {
    EXPECT_FALSE(parse_hub_id(text).has_value()) << text;
  }
}

class Variable {
 public:
  Variable(const char* name, const char* value) : m_name(name) {
    if (const char* old = std::getenv(name)) m_old = old;
    set(value);
  }
  ~Variable() { set(m_old ? m_old->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      ::unsetenv(m_name);
    } else {
      ::setenv(m_name, value, 1);
    }
  }
  const char* m_name;
  std::optional<std::string> m_old;
};

TEST(HubCacheFolder, TheFirstVariableThatIsSetDecides) {
  const Variable home("HOME", "/h");
  const Variable xdg("XDG_CACHE_HOME", nullptr);
  const Variable hf("HF_HOME", nullptr);
  const Variable hub("HF_HUB_CACHE", nullptr);
  EXPECT_EQ(hub_cache_folder(), "/h/.cache/huggingface/hub");
  const Variable xdg_set("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(hub_cache_folder(), "/x/huggingface/hub");
  const Variable hf_set("HF_HOME", "/f");
  EXPECT_EQ(hub_cache_folder(), "/f/hub");
  const Variable hub_set("HF_HUB_CACHE", "/c");
  EXPECT_EQ(hub_cache_folder(), "/c");
}

}  // namespace
}  // namespace driftscope
