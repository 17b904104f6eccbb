// SPDX-License-Identifier: Apache-2.0
// A vendor's answer is made of a run of our own under one configuration, printed as servers print;
// the ranking must find that configuration again.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "analysis/capture/capture.h"
#include "engine/text/tokenizer.h"
#include "tests/cli/program.h"
#include "tests/report/schema_check.h"

namespace driftscope::test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kPrompt = "And the king said unto the";

struct Printing {
  int decimals = 4;
  double temperature = 1.0;  // the server processed its logprobs with it
  bool ids = false;          // tokens as "token_id:N" instead of text and bytes
  bool logprobs = true;
  std::size_t alternatives = 5;
};

class VendorAnswer {
 public:
  VendorAnswer(const ScratchFolder& scratch, const std::vector<std::string>& configuration) {
    std::vector<std::string> words{"run",     "--model",      sample_model(), "--prompt",
                                   kPrompt,   "-q",           "--steps",      "24",
                                   "--force", "--no-control", "-o",           scratch.file("v.h5")};
    words.insert(words.end(), configuration.begin(), configuration.end());
    const auto ran = run_program(words, scratch.path());
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    auto reader = CaptureReader::open(scratch.file("v.h5"));
    m_tokens = (*reader)->tokens(Lane::a).value();
    for (std::size_t i = 0; i < m_tokens.size(); ++i) {
      m_rows.push_back((*reader)->logits(Lane::a, static_cast<std::int64_t>(i)).value());
    }
  }

  // The prompt's own logprobs under the same configuration, as vLLM prints them: by id, with the
  // most likely token beside the prompt's, and nothing for the first.
  static std::string prompt_logprobs(const ScratchFolder& scratch, const std::string& set) {
    const auto tokenizer = Tokenizer::open(sample_model()).value();
    const auto scored = run_program(
        {"score", "--model", sample_model(), "--text", kPrompt, "-q", "--force", "--config",
         "bf16-invariant", "--set", set, "--set", "scoring=prefill", "-o", scratch.file("p.h5")},
        scratch.path());
    EXPECT_EQ(scored.exit_code, 0) << scored.err;
    auto reader = CaptureReader::open(scratch.file("p.h5"));
    const auto ids = tokenizer->encode(kPrompt, {}).value();
    std::string out = "[null";
    for (std::size_t i = 1; i < ids.size(); ++i) {
      const auto row = (*reader)->logits(Lane::a, static_cast<std::int64_t>(i) - 1).value();
      const auto values = logprobs(row, 1.0);
      const auto own = static_cast<std::size_t>(ids[i].id.value);
      const auto top =
          static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
      const auto one = [&](std::size_t id) {
        return fmt::format("\"{}\":{{\"logprob\":{:.4f},\"rank\":{}}}", id, values[id],
                           1 + std::count_if(values.begin(), values.end(),
                                             [&](double other) { return other > values[id]; }));
      };
      out += ",{" + one(own) + (top == own ? "" : "," + one(top)) + "}";
    }
    return out + "]";
  }

  // In the form of OpenAI's chat completions.
  std::string print(const Printing& how) const {
    const auto tokenizer = Tokenizer::open(sample_model()).value();
    std::string content;
    std::string steps;
    for (std::size_t i = 0; i < m_tokens.size(); ++i) {
      content += tokenizer->piece(m_tokens[i]);
      const auto values = logprobs(m_rows[i], how.temperature);
      std::vector<std::int32_t> order(values.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
      });
      std::string top;
      for (std::size_t k = 0; k < how.alternatives; ++k) {
        top += (k > 0 ? "," : "") + entry({order[k]}, values, *tokenizer, how) + "}";
      }
      steps += (i > 0 ? "," : "") + entry(m_tokens[i], values, *tokenizer, how) +
               ",\"top_logprobs\":[" + top + "]}";
    }
    return fmt::format(
        "{{\"id\":\"x\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":"
        "[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":{}}},\"logprobs\":{},"
        "\"finish_reason\":\"length\"}}]}}",
        Json(content).dump(), how.logprobs ? "{\"content\":[" + steps + "]}" : "null");
  }

 private:
  static std::vector<double> logprobs(const std::vector<float>& logits, double temperature) {
    std::vector<double> out(logits.begin(), logits.end());
    for (double& value : out) value /= temperature;
    const double top = *std::max_element(out.begin(), out.end());
    double sum = 0.0;
    for (const double value : out) sum += std::exp(value - top);
    for (double& value : out) value -= top + std::log(sum);
    return out;
  }
  static std::string entry(TokenId id, const std::vector<double>& values,
                           const Tokenizer& tokenizer, const Printing& how) {
    const std::string piece = tokenizer.piece(id);
    const std::string text = how.ids
                                 ? fmt::format("token_id:{}", id.value)
                                 : Json(piece).dump(-1, ' ', false, Json::error_handler_t::replace);
    return fmt::format(
        "{{\"token\":{},\"logprob\":{:.{}f},\"bytes\":{}", how.ids ? "\"" + text + "\"" : text,
        values[static_cast<std::size_t>(id.value)], how.decimals,
        how.ids ? std::string("null")
                : Json(std::vector<unsigned char>(piece.begin(), piece.end())).dump());
  }

  std::vector<TokenId> m_tokens;
  std::vector<std::vector<float>> m_rows;
};

struct Ranked {
  int exit_code = -1;
  Json local;
  std::set<std::string> leaders;
  std::string error;
};

Ranked rank(const ScratchFolder& scratch, const std::string& answer,
            const std::vector<std::string>& more = {}) {
  write_file(scratch.path() / "v.json", answer);
  std::vector<std::string> words{"vendor", "v.json", "--model", sample_model(), "--json", "-q"};
  words.insert(words.end(), more.begin(), more.end());
  const auto result = run_program(words, scratch.path());
  Ranked out{.exit_code = result.exit_code, .local = {}, .leaders = {}, .error = result.err};
  if (result.out.empty()) return out;
  const Json document = Json::parse(result.out);
  out.local = document["local"];
  for (const Json& one : out.local["configurations"]) {
    if (one["standing"] == "leading") out.leaders.insert(one["name"].get<std::string>());
  }
  return out;
}

const std::vector<std::string> kWithPrompt{"--prompt", kPrompt};

struct Origin {
  const char* name;
  std::vector<std::string> configuration;
};

std::vector<Origin> origins() {
  const auto of = [](const char* preset, const char* set) {
    std::vector<std::string> words{"--a", preset, "--b", preset};
    if (*set != '\0') words.insert(words.end(), {"--set-a", set, "--set-b", set});
    return words;
  };
  return {{"f32", of("reference-f32", "")},
          {"bf16", of("bf16-invariant", "")},
          {"f16", of("f16-invariant", "")},
          {"bf16-eager", of("hf-eager-like", "")},
          {"bf16-by-shape", of("bf16-shape-dependent", "")},
          {"bf16-fused", of("vllm-default-like", "")},
          {"int8", of("bf16-invariant", "quantisation=int8_w8a16")},
          {"int8-w8a8", of("bf16-invariant", "quantisation=int8_w8a8")},
          {"fp8", of("bf16-invariant", "quantisation=fp8_channel")},
          {"fp8-tensor", of("bf16-invariant", "quantisation=fp8_tensor")},
          {"int4", of("bf16-invariant", "quantisation=int4_symmetric")},
          {"int4-asymmetric", of("bf16-invariant", "quantisation=int4_asymmetric")},
          {"kv-fp8", of("bf16-invariant", "kv_dtype=fp8_e4m3")},
          {"kv-int8", of("bf16-invariant", "kv_dtype=int8")},
          {"bf16-logits", of("bf16-invariant", "logits_dtype=bf16")}};
}

// Those whose answers are printed alike cannot be told apart and lead together; all others are.
TEST(VendorLocal, EveryConfigurationIsFoundAgain) {
  const ScratchFolder scratch;
  std::vector<VendorAnswer> answers;
  for (const Origin& origin : origins()) answers.emplace_back(scratch, origin.configuration);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string name = origins()[i].name;
    const Printing how{.decimals = i % 4 == 0 ? 8 : 4, .ids = i % 4 == 0};
    const std::string printed = answers[i].print(how);
    std::set<std::string> same;
    for (std::size_t j = 0; j < answers.size(); ++j) {
      if (answers[j].print(how) == printed) same.insert(origins()[j].name);
    }
    const Ranked ranked = rank(scratch, printed, kWithPrompt);
    ASSERT_EQ(ranked.exit_code, 0) << name << ranked.error << ranked.local.dump(1);
    EXPECT_EQ(ranked.local["verdict"], "exact") << name << ranked.local.dump(1);
    EXPECT_EQ(ranked.leaders, same) << name << ": " << ranked.local["sentence"];
    EXPECT_LE(ranked.local["configurations"][0]["max_abs"].get<double>(),
              0.5 * std::pow(10.0, -how.decimals) + 1e-12)
        << name;
    EXPECT_EQ(ranked.local["answers"][0]["tokens_by"], how.ids ? "ids" : "bytes");
  }
}

// The same bits by promise: the numbers cannot tell them apart, and that is the answer.
TEST(VendorLocal, WhatHasTheSameBitsIsUnobservable) {
  const ScratchFolder scratch;
  const VendorAnswer answer(scratch, {"--a", "bf16-invariant", "--b", "bf16-invariant"});
  write_file(scratch.path() / "c.json",
             R"([{"name":"one","preset":"bf16-invariant","threads":1},
                 {"name":"two","preset":"bf16-invariant","isa":"scalar"}])");
  const Ranked ranked =
      rank(scratch, answer.print({}), {"--prompt", kPrompt, "--configs-file", "c.json"});
  EXPECT_EQ(ranked.exit_code, 3);
  EXPECT_EQ(ranked.local["verdict"], "unobservable");
  EXPECT_EQ(ranked.leaders, (std::set<std::string>{"one", "two"}));
  // Printed to one decimal, bf16 and its plans by shape are one thing; int4 is not.
  const Ranked coarse = rank(
      scratch, answer.print({.decimals = 1}),
      {"--prompt", kPrompt, "--config", "bf16", "--config", "bf16-by-shape", "--config", "int4"});
  EXPECT_EQ(coarse.exit_code, 0) << coarse.error;
  EXPECT_EQ(coarse.leaders, (std::set<std::string>{"bf16", "bf16-by-shape"}))
      << coarse.local.dump(1);
}

TEST(VendorLocal, ATemperatureInTheLogprobsIsFitted) {
  const ScratchFolder scratch;
  const VendorAnswer answer(scratch, {"--a", "bf16-invariant", "--b", "bf16-invariant", "--set-a",
                                      "quantisation=int8_w8a16"});
  const Ranked ranked = rank(scratch, answer.print({.temperature = 0.7}), kWithPrompt);
  EXPECT_EQ(ranked.exit_code, 0) << ranked.error;
  EXPECT_EQ(ranked.local["temperature_use"], "fitted");
  EXPECT_EQ(ranked.local["configurations"][0]["temperature"], 0.7);
  EXPECT_EQ(ranked.leaders, std::set<std::string>{"int8"}) << ranked.local.dump(1);
}

// Another engine's arithmetic with the same weights: near, not exact.
TEST(VendorLocal, ArithmeticOutsideOfTheLibraryIsPlacedByItsWeights) {
  const ScratchFolder scratch;
  const VendorAnswer answer(scratch,
                            {"--a", "hf-eager-like", "--b", "hf-eager-like", "--set-a",
                             "quantisation=int4_symmetric", "--set-a", "residual=fused_f32"});
  const Ranked ranked = rank(scratch, answer.print({}), kWithPrompt);
  EXPECT_EQ(ranked.exit_code, 0);
  EXPECT_EQ(ranked.local["verdict"], "nearest");
  EXPECT_EQ(ranked.leaders, std::set<std::string>{"int4"});
}

// Each file is ranked on its own: one pool of both would be an answer that nobody gave.
TEST(VendorLocal, FilesOfTwoConfigurationsAreToldApart) {
  const ScratchFolder scratch;
  const VendorAnswer int8(scratch, {"--a", "bf16-invariant", "--b", "bf16-invariant", "--set-a",
                                    "quantisation=int8_w8a16"});
  const VendorAnswer bf16(scratch, {"--a", "bf16-invariant", "--b", "bf16-invariant"});
  write_file(scratch.path() / "a.json", int8.print({}));
  write_file(scratch.path() / "b.json", bf16.print({}));
  write_file(scratch.path() / "c.json", bf16.print({.logprobs = false}));
  write_file(scratch.path() / "d.json", R"({"error":{"message":"overloaded"}})");
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "vendor");
    words.insert(words.end(), {"--model", sample_model(), "--prompt", kPrompt, "-q", "--config",
                               "bf16", "--config", "int8", "--config", "int4"});
    return run_program(words, scratch.path());
  };
  const Json schema = testing::load_schema("vendor.schema.json");
  const auto local = [&](const std::vector<std::string>& words, int exit_code) {
    std::vector<std::string> all = words;
    all.emplace_back("--json");
    const auto result = run(all);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    const Json document = Json::parse(result.out);
    EXPECT_EQ(testing::schema_problem(schema, document), "");
    return document["local"];
  };
  const auto text = run({"a.json", "b.json"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("the files differ: A (a.json) exactly int8; B (b.json) exactly "
                                  "bf16"));
  const Json differ = local({"a.json", "b.json"}, 0);
  EXPECT_EQ(differ["agreement"], "differ");
  ASSERT_EQ(differ["files"].size(), 2U);
  EXPECT_EQ(differ["files"][0]["file"], "a.json");
  EXPECT_EQ(differ["files"][0]["configurations"][0]["name"], "int8");
  EXPECT_EQ(differ["files"][1]["configurations"][0]["name"], "bf16");
  for (const Json& file : differ["files"]) {
    EXPECT_EQ(file["verdict"], "exact");
    EXPECT_EQ(file["tokens"], 24);
  }
  const Json same = local({"b.json", "b.json"}, 0);
  EXPECT_EQ(same["agreement"], "same");
  EXPECT_EQ(same["common"], Json::array({"bf16"}));
  // The same answer in two files is no copy of another server's.
  EXPECT_EQ(same["files"][1]["tokens"], 24);
  // No logprobs, and no answer at all: that file is open, the others are told.
  const Json open = local({"a.json", "c.json", "d.json"}, 3);
  EXPECT_EQ(open["agreement"], "open");
  EXPECT_EQ(open["files"][0]["verdict"], "exact");
  EXPECT_EQ(open["files"][1]["verdict"], "unobservable");
  EXPECT_EQ(open["files"][2]["verdict"], "unobservable");
  EXPECT_EQ(open["common"], Json::array({"int8"}));
}

// An answer without logprobs, but with those of its prompt.
TEST(VendorLocal, ThePromptsLogprobsAreEvidence) {
  const ScratchFolder scratch;
  const VendorAnswer answer(scratch, {"--a", "bf16-invariant", "--b", "bf16-invariant"});
  const std::string silent = answer.print({.logprobs = false});
  const auto with = [&](const std::string& values) {
    return silent.substr(0, silent.size() - 1) + ",\"prompt_logprobs\":" + values + "}";
  };
  const std::string listed = VendorAnswer::prompt_logprobs(scratch, "quantisation=int8_w8a16");
  const std::vector<std::string> three{"--config", "bf16", "--config", "int8", "--config", "int4"};
  std::vector<std::string> more{"--prompt", kPrompt};
  more.insert(more.end(), three.begin(), three.end());
  EXPECT_EQ(rank(scratch, silent, more).local["verdict"], "unobservable");
  const Ranked ranked = rank(scratch, with(listed), more);
  EXPECT_EQ(ranked.exit_code, 0) << ranked.error;
  EXPECT_EQ(ranked.local["verdict"], "exact") << ranked.local.dump(1);
  EXPECT_EQ(ranked.leaders, std::set<std::string>{"int8"});
  ASSERT_EQ(ranked.local["answers"].size(), 2U);
  EXPECT_EQ(ranked.local["answers"][0]["is_prompt"], true);
  EXPECT_EQ(ranked.local["answers"][1]["is_prompt"], false);
  // Twice the same prompt is no more evidence.
  const Ranked twice = rank(scratch, with(listed) + "\n" + with(listed) + "\n", more);
  EXPECT_EQ(twice.local["logprobs"], ranked.local["logprobs"]);
  // Another prompt than that of the file: said, and not used.
  more[1] = "The program did not halt because";
  const Ranked other = rank(scratch, with(listed), more);
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.local["notes"].dump(), HasSubstr("the logprobs of its prompt are left out"));
  // Ids in the file that are not those of the prompt given: said, where they begin to differ. The
  // tokenizer puts 0 in front.
  more[1] = kPrompt;
  const std::string ids = silent.substr(0, silent.size() - 1) + ",\"prompt_token_ids\":[0,7]}";
  const Ranked listed_ids = rank(scratch, ids, more);
  EXPECT_THAT(listed_ids.local["notes"].dump(),
              HasSubstr("lists other ids for its prompt than those given, from token 1 on"));
}

TEST(VendorLocal, WhatCannotBeKnownIsSaid) {
  const ScratchFolder scratch;
  const VendorAnswer answer(scratch, {"--a", "bf16-invariant", "--b", "bf16-invariant"});
  const std::vector<std::string> two{"--config", "bf16", "--config", "int4"};
  std::vector<std::string> more{"--prompt", kPrompt};
  more.insert(more.end(), two.begin(), two.end());
  const Ranked silent = rank(scratch, answer.print({.logprobs = false}), more);
  EXPECT_EQ(silent.exit_code, 3);
  EXPECT_THAT(silent.local["sentence"].get<std::string>(), HasSubstr("unobservable: no logprobs"));
  EXPECT_EQ(silent.local["answers"][0]["tokens_by"], "boundaries");
  // Another prompt: none is near.
  more[1] = "The program did not halt because";
  const Ranked other = rank(scratch, answer.print({}), more);
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.local["sentence"].get<std::string>(), HasSubstr("none is near"));
  // No prompt at all.
  const Ranked none = rank(scratch, answer.print({}), two);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.error, HasSubstr("give --prompt-ids"));
  EXPECT_EQ(run_program({"vendor", "v.json", "--prompt", "x"}, scratch.path()).exit_code, 2);
}

}  // namespace
}  // namespace driftscope::test
