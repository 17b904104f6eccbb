// SPDX-License-Identifier: Apache-2.0
// model.safetensors.index.json with its shards: where they may lie and what they must hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "engine/model/checkpoint.h"
#include "tests/model/checkpoint_builder.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ShardIndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    m_config = small_config("llama");
    m_directory.write("config.json", m_config.dump());
    const std::vector<BuiltTensor> all = small_tensors(m_config);
    const auto middle = all.begin() + 5;
    m_first.assign(all.begin(), middle);
    m_second.assign(middle, all.end());
    for (const BuiltTensor& tensor : m_first) m_map[tensor.name] = kFirst;
    for (const BuiltTensor& tensor : m_second) m_map[tensor.name] = kSecond;
    write_shards();
  }
  void write_shards() {
    m_directory.write(kFirst, tensor_file(m_first));
    m_directory.write(kSecond, tensor_file(m_second));
    write_index();
  }
  void write_index() {
    const nlohmann::json index{{"metadata", {{"total_size", 1}}}, {"weight_map", m_map}};
    m_directory.write("model.safetensors.index.json", index.dump());
  }
  void point_second_at(const std::string& name) {
    for (const BuiltTensor& tensor : m_second) m_map[tensor.name] = name;
    write_index();
  }
  void expect_refused(const std::string& reason) {
    const auto result = ModelCheckpoint::open(m_directory.path());
    ASSERT_FALSE(result.has_value()) << "accepted, expected: " << reason;
    EXPECT_EQ(result.error().kind, ErrorKind::malformed);
    EXPECT_THAT(result.error().message, HasSubstr(reason));
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  }

  static constexpr const char* kFirst = "model-00001-of-00002.safetensors";
  static constexpr const char* kSecond = "model-00002-of-00002.safetensors";
  TemporaryDirectory m_directory;
  nlohmann::json m_config;
  std::vector<BuiltTensor> m_first;
  std::vector<BuiltTensor> m_second;
  std::map<std::string, std::string> m_map;
};

TEST_F(ShardIndexTest, OpensBothShards) {
  const auto result = ModelCheckpoint::open(m_directory.path());
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ((*result)->description().layers, 2);
  const auto files = (*result)->files();
  ASSERT_TRUE(files.has_value());
  std::vector<std::string> names;
  for (const CheckpointFile& file : *files) names.push_back(file.path.filename().string());
  EXPECT_THAT(names, ::testing::ElementsAre("config.json", kFirst, kSecond,
                                            "model.safetensors.index.json"));
}

TEST_F(ShardIndexTest, RefusesNamesThatLeadOut) {
  point_second_at("../x.safetensors");
  expect_refused("leads out of the directory");
  point_second_at("a/../../x.safetensors");
  expect_refused("leads out of the directory");
  point_second_at(m_directory.path() / kSecond);
  expect_refused("absolute path");
  point_second_at("");
  expect_refused("is empty");
}

TEST_F(ShardIndexTest, RefusesLinksThatLeadOut) {
  const TemporaryDirectory elsewhere;
  elsewhere.write("secret.safetensors", tensor_file(m_second));
  fs::remove(m_directory.path() / kSecond);
  fs::create_symlink(elsewhere.path() / "secret.safetensors", m_directory.path() / kSecond);
  expect_refused("link out of the directory");
  fs::remove(m_directory.path() / kSecond);
  fs::create_hard_link(elsewhere.path() / "secret.safetensors", m_directory.path() / kSecond);
  expect_refused("hard link");
}

TEST_F(ShardIndexTest, FollowsLinksIntoTheHubCacheOnly) {
  const TemporaryDirectory hub;
  const fs::path entry = hub.path() / "models--a--b";
  const fs::path snapshot = entry / "snapshots" / "0123";
  fs::create_directories(snapshot);
  fs::create_directories(entry / "blobs");
  int number = 0;
  for (const auto& item : fs::directory_iterator(m_directory.path())) {
    const fs::path blob = entry / "blobs" / std::to_string(number++);
    fs::copy_file(item.path(), blob);
    fs::create_symlink(fs::path("../../blobs") / blob.filename(),
                       snapshot / item.path().filename());
  }
  EXPECT_TRUE(ModelCheckpoint::open(snapshot).has_value());
  // Links inside the directory are fine as well.
  fs::rename(m_directory.path() / kSecond, m_directory.path() / "real.safetensors");
  fs::create_symlink("real.safetensors", m_directory.path() / kSecond);
  EXPECT_TRUE(ModelCheckpoint::open(m_directory.path()).has_value());
}

TEST_F(ShardIndexTest, RefusesWhatIsNoRegularFile) {
  fs::remove(m_directory.path() / kSecond);
  ASSERT_EQ(::mkfifo((m_directory.path() / kSecond).c_str(), 0600), 0);
  expect_refused("FIFO");
  fs::remove(m_directory.path() / kSecond);
  fs::create_directory(m_directory.path() / kSecond);
  expect_refused("a directory");
  fs::remove(m_directory.path() / kSecond);
  expect_refused("cannot be found");
  point_second_at("model.safetensors.index.json");
  expect_refused("the index itself");
}

TEST_F(ShardIndexTest, RefusesTensorsInTheWrongPlace) {
  m_map["model.extra"] = kSecond;
  write_index();
  expect_refused("model.extra is not in its shard");
  m_map.erase("model.extra");
  m_second.push_back(m_first[0]);
  write_shards();
  expect_refused("is in two shards");
  // Two shards with the same tensor that the index does not name.
  m_second.back() = {"unnamed", "F32", {1}};
  m_first.push_back({"unnamed", "F32", {1}});
  write_shards();
  expect_refused("unnamed is in two shards");
}

TEST_F(ShardIndexTest, RefusesWrongIndexes) {
  const auto index = [&](const char* text) {
    m_directory.write("model.safetensors.index.json", text);
  };
  index("{}");
  expect_refused("weight_map");
  index(R"({"weight_map":[]})");
  expect_refused("weight_map");
  index(R"({"weight_map":{}})");
  expect_refused("weight_map");
  index(R"({"weight_map":{"a":1}})");
  expect_refused("not a file name");
  index(R"({"weight_map":{"a":"x","a":"y"}})");
  expect_refused("twice");
  index("{");
  expect_refused("not valid JSON");
}

TEST_F(ShardIndexTest, ABrokenShardIsNamed) {
  m_directory.write(kSecond, "short");
  expect_refused(kSecond);
}

}  // namespace
}  // namespace driftscope
