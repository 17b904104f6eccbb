// SPDX-License-Identifier: Apache-2.0
#include "engine/model/config_difference.h"

#include <gtest/gtest.h>

#include "tests/model/temporary_directory.h"

namespace driftscope {
namespace {

TEST(ConfigDifference, NamesFieldsThatDifferOrAreMissing) {
  const TemporaryDirectory a;
  const TemporaryDirectory b;
  (void)a.write("config.json",
                R"({"rope_theta": 10000.0, "rope_scaling": {"factor": 8, "type": "linear"},
                                   "hidden_size": 64})");
  (void)b.write("config.json", R"({"hidden_size": 64, "rope_theta": 500000.0,
                                   "rope_scaling": {"factor": 4, "type": "linear"}})");
  (void)b.write("generation_config.json", R"({"eos_token_id": [2, 7]})");
  const auto differences = config_file_difference(a.path(), b.path());
  ASSERT_EQ(differences.size(), 4U);
  EXPECT_EQ(differences[0].field, "config.json rope_scaling/factor");
  EXPECT_EQ(differences[0].a, "8");
  EXPECT_EQ(differences[0].b, "4");
  EXPECT_EQ(differences[1].field, "config.json rope_theta");
  EXPECT_EQ(differences[1].b, "500000.0");
  EXPECT_EQ(differences[2].field, "generation_config.json eos_token_id/0");
  EXPECT_EQ(differences[2].a, "absent");
  EXPECT_EQ(differences[3].b, "7");
  EXPECT_EQ(describe(differences),
            "config.json rope_scaling/factor: 8 and 4; config.json rope_theta: 10000.0 and "
            "500000.0; generation_config.json eos_token_id/0: absent and 2; "
            "generation_config.json eos_token_id/1: absent and 7");
}

TEST(ConfigDifference, OrderAndSpacingAreNoDifference) {
  const TemporaryDirectory a;
  const TemporaryDirectory b;
  (void)a.write("config.json", R"({"x": 1, "y": [1, 2]})");
  (void)b.write("config.json", "{\"y\":[1,2],\n\"x\":1}");
  EXPECT_TRUE(config_file_difference(a.path(), b.path()).empty());
  EXPECT_EQ(describe(std::vector<ConfigFieldDifference>{}), "");
}

TEST(ConfigDifference, ManyFieldsAreCounted) {
  const TemporaryDirectory a;
  const TemporaryDirectory b;
  (void)a.write("config.json", R"({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1})");
  (void)b.write("config.json", R"({"a":2,"b":2,"c":2,"d":2,"e":2,"f":2,"g":2})");
  EXPECT_TRUE(describe(config_file_difference(a.path(), b.path()))
                  .ends_with("e: 1 and 2; and 2 more fields"));
}

TEST(ConfigDifference, DescriptionsOfTwoFormatsAreComparedByWhatTheyCompute) {
  ModelDescription a;
  a.hidden = 8;
  a.layers = 2;
  a.heads = 2;
  a.kv_heads = 1;
  a.head_dim = 4;
  ModelDescription b = a;
  a.model_type = "mistral";  // a GGUF file calls it llama; no number depends on the name
  EXPECT_TRUE(description_difference(a, b).empty());
  b.rope_theta = 500000.0;
  b.sliding_window = 6;
  b.sliding_layers = {0, 1};
  b.eos = {TokenId{2}};
  const auto differences = description_difference(a, b);
  EXPECT_EQ(describe(differences),
            "eos: absent and 2; rope_theta: 10000 and 500000; window of layer 1: 0 and 6");
}

}  // namespace
}  // namespace driftscope
