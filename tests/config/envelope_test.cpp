// SPDX-License-Identifier: Apache-2.0
#include "engine/config/envelope.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

EnvelopeFacts quantised_facts() {
  EnvelopeFacts facts;
  facts.model_files = {{"config.json", "cc"}, {"model.safetensors", "aa"}};
  facts.model_revision = "0123456789abcdef0123456789abcdef01234567";
  facts.stored_quantisation = "AWQ int4, group 128, zero points";
  facts.quantisation_notes = {"activations are as the configuration says"};
  facts.scale_files = {"model.safetensors", "kv_cache_scales.json"};
  return facts;
}

TEST(Envelope, NamesTheMethodAndTheFilesWithScales) {
  const Json json = make_envelope(quantised_facts(), {});
  const Json& runtime = json["runtime"];
  EXPECT_EQ(json["model_revision"], "0123456789abcdef0123456789abcdef01234567");
  EXPECT_EQ(runtime["quantization_method"], "AWQ int4, group 128, zero points");
  EXPECT_EQ(runtime["quantization_notes"],
            Json::array({"activations are as the configuration says"}));
  EXPECT_EQ(runtime["scale_files"], Json::parse(R"([{"name": "model.safetensors", "sha256": "aa"},
    {"name": "kv_cache_scales.json", "sha256": null}])"));
  EXPECT_EQ(json["fingerprint"]["quantization_method"], "AWQ int4, group 128, zero points");
}

// What the file holds and what the run makes of it are both said.
TEST(Envelope, AQuantisationOfTheRunComesAfterThatOfTheFile) {
  EnvelopeFacts facts = quantised_facts();
  facts.config.quantisation = Quantisation::int8_w8a16;
  EXPECT_EQ(make_envelope(facts, {})["runtime"]["quantization_method"],
            "AWQ int4, group 128, zero points, then int8_w8a16");
  facts.stored_quantisation.clear();
  EXPECT_EQ(make_envelope(facts, {})["runtime"]["quantization_method"], "int8_w8a16");
  facts.config.quantisation = Quantisation::none;
  EXPECT_EQ(make_envelope(facts, {})["runtime"]["quantization_method"], "none");
}

TEST(Envelope, UnknownStaysNull) {
  const Json json = make_envelope({}, {});
  EXPECT_TRUE(json["model_revision"].is_null());
  EXPECT_TRUE(json["tokenizer_sha256"].is_null());
  EXPECT_TRUE(json["chat_template_sha256"].is_null());
  EXPECT_TRUE(json["runtime"]["scale_files"].empty());
}

}  // namespace
}  // namespace driftscope
