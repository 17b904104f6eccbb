// SPDX-License-Identifier: Apache-2.0
// GGUF files against independent float64 logits over their dequantised weights, in f64 and in f32.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tests/exec/architecture_oracle.h"
#include "tests/exec/npy.h"
#include "tests/exec/recording.h"

namespace driftscope::test {
namespace {

namespace fs = std::filesystem;
const fs::path kData = DRIFTSCOPE_SHARED_DATA;

#define NEED_SHARED_DATA() \
  if (!fs::exists(kData)) GTEST_SKIP() << "no shared test data at " << kData

std::vector<TokenId> ids_of(const NumpyArray& array) {
  std::vector<TokenId> tokens;
  for (const double id : array.values) tokens.push_back(TokenId{static_cast<std::int32_t>(id)});
  return tokens;
}

std::shared_ptr<const ModelCheckpoint> open(const fs::path& path) {
  auto opened = ModelCheckpoint::open(path);
  if (!opened) throw std::runtime_error(opened.error().message);
  return *opened;
}

// The host's f32 logits after each token of the prompt.
std::vector<float> host_logits(const std::shared_ptr<const ModelCheckpoint>& model,
                               const std::vector<TokenId>& prompt) {
  LaneInput input{.model = model, .prompt = prompt};
  input.config.scoring = Scoring::prefill;
  std::vector<float> rows;
  for (const RecordedStep& step : score(input)) {
    rows.insert(rows.end(), step.logits.begin(), step.logits.end());
  }
  return rows;
}

double largest_of(const NumpyArray& exact) {
  double largest = 0.0;
  for (const double value : exact.values) largest = std::max(largest, std::abs(value));
  return largest;
}

// The witness works in f64 and returns f32: half a unit in the last place of the largest logit,
// and a thousandth of it for the f64 arithmetic.
double witness_tolerance(const NumpyArray& exact) {
  return 1.001 * std::exp2(std::floor(std::log2(largest_of(exact))) - 24.0);
}

class GgufTwin : public testing::TestWithParam<const char*> {
 protected:
  const fs::path m_folder = kData / "oracle" / "architectures" / GetParam();
  std::vector<TokenId> prompt(int index) const {
    return tokens_of(read_json(m_folder / fmt::format("prompt{}.ids.json", index)));
  }
  NumpyArray exact(int index) const {
    return read_npy(m_folder / fmt::format("logits_f64_{}.npy", index));
  }
  std::vector<TokenId> greedy(int index) const {
    return tokens_of(
        read_json(m_folder / "greedy.json")[static_cast<std::size_t>(index)]["tokens"]);
  }
  double tolerance(int index) const {
    const auto manifest = read_json(kData / "oracle" / "architectures" / "MANIFEST.json");
    return manifest["models"][GetParam()]["prompts"][static_cast<std::size_t>(index)]
                   ["suggested_tolerance_float32"];
  }
};

class GgufTwinWitness : public GgufTwin {};

TEST_P(GgufTwinWitness, GivesTheExactLogitsAndGreedyTokens) {
  NEED_SHARED_DATA();
  const auto model = open(m_folder / "model.gguf");
  for (const int index : {0, 1}) {
    const NumpyArray wanted = exact(index);
    // The file has the divisors of llama3's frequencies rounded to f32.
    const bool rounded = model->description().rope_scaling.kind == RopeScaling::Kind::divisors;
    const double allowed = rounded ? tolerance(index) / 10.0 : witness_tolerance(wanted);
    const double difference =
        largest_difference(Witness(model).score(prompt(index)), wanted.values.data());
    fmt::print("{} prompt {}: witness differs by at most {:.2e}, allowed {:.2e}\n", GetParam(),
               index, difference, allowed);
    EXPECT_LE(difference, allowed);
    EXPECT_EQ(Witness(model).greedy(prompt(index), greedy(index).size()), greedy(index));
  }
}

constexpr const char* kModels[] = {
    "qwen2",  "qwen3",  "llama3_rope", "mistral_tied", "mixtral",    "qwen3moe", "qwen2moe",
    "gemma2", "gemma3", "phi3",        "gpt2",         "llama_yarn", "gpt_oss"};
INSTANTIATE_TEST_SUITE_P(Models, GgufTwinWitness, testing::ValuesIn(kModels));

class GgufTwinHost : public GgufTwin {};

TEST_P(GgufTwinHost, LogitsAreWithinTheToleranceAndGreedyTokensAreEqual) {
  NEED_SHARED_DATA();
  const auto model = open(m_folder / "model.gguf");
  for (const int index : {0, 1}) {
    const double difference =
        largest_difference(host_logits(model, prompt(index)), exact(index).values.data());
    fmt::print("{} prompt {}: f32 differs by at most {:.2e}, tolerance {:.1e}\n", GetParam(), index,
               difference, tolerance(index));
    EXPECT_LE(difference, tolerance(index));
    LaneInput input{.model = model, .prompt = prompt(index)};
    input.config.sampling.ignore_eos = true;
    EXPECT_EQ(emitted_of(generate(input, static_cast<std::int64_t>(greedy(index).size()))),
              greedy(index));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GgufTwinHost, testing::ValuesIn(kModels));

struct FileCase {
  const char* file;    // below models/
  const char* logits;  // below oracle/
  const char* tokens;  // below oracle/
};
void PrintTo(const FileCase& item, std::ostream* out) { *out << item.file << " " << item.logits; }

class GgufFile : public testing::TestWithParam<FileCase> {};

TEST_P(GgufFile, LogitsAreThoseOfTheDequantisedWeights) {
  NEED_SHARED_DATA();
  const auto model = open(kData / "models" / GetParam().file);
  const NumpyArray exact = read_npy(kData / "oracle" / GetParam().logits);
  const auto prompt = ids_of(read_npy(kData / "oracle" / GetParam().tokens));
  const double witness = largest_difference(Witness(model).score(prompt), exact.values.data());
  const double host = largest_difference(host_logits(model, prompt), exact.values.data());
  fmt::print("{} ({}): logits up to {:.3g}, f64 differs by {:.2e}, f32 by {:.2e}\n",
             GetParam().file, model->weight_formats(), largest_of(exact), witness, host);
  EXPECT_LE(witness, witness_tolerance(exact));
  EXPECT_LE(host, 2e-4);  // the tolerance of the oracle for f32
}

constexpr const char* kLily = "stories260K/story_lily.tokens.npy";
constexpr const char* kCode = "stories260K/code_bytes.tokens.npy";
constexpr const char* kRandom0 = "gguf/synth-tiny/rand0.tokens.npy";
constexpr const char* kRandom1 = "gguf/synth-tiny/rand1.tokens.npy";
INSTANTIATE_TEST_SUITE_P(
    Oracle, GgufFile,
    testing::Values(FileCase{"stories260K/gguf/stories260K-Q4_K_M.gguf",
                             "gguf/stories260K/Q4_K_M.story_lily.logits_f64.npy", kLily},
                    FileCase{"stories260K/gguf/stories260K-Q4_K_M.gguf",
                             "gguf/stories260K/Q4_K_M.code_bytes.logits_f64.npy", kCode},
                    FileCase{"stories260K-pad192/gguf/stories260K-pad192-Q5_0.gguf",
                             "gguf/stories260K/pad_Q5_0.story_lily.logits_f64.npy", kLily},
                    FileCase{"stories260K-pad192/gguf/stories260K-pad192-Q5_0.gguf",
                             "gguf/stories260K/pad_Q5_0.code_bytes.logits_f64.npy", kCode},
                    FileCase{"stories260K-pad192/gguf/stories260K-pad192-Q8_0.gguf",
                             "gguf/stories260K/pad_Q8_0.story_lily.logits_f64.npy", kLily},
                    FileCase{"stories260K-pad192/gguf/stories260K-pad192-Q8_0.gguf",
                             "gguf/stories260K/pad_Q8_0.code_bytes.logits_f64.npy", kCode},
                    FileCase{"stories260K/gguf/stories260K-F32.gguf",
                             "stories260K/story_lily.logits_f64.npy", kLily},
                    FileCase{"stories260K/gguf/stories260K-llamacpptool-F32.gguf",
                             "stories260K/story_lily.logits_f64.npy", kLily},
                    FileCase{"stories260K-pad192/gguf/stories260K-pad192-F32.gguf",
                             "stories260K/code_bytes.logits_f64.npy", kCode},
                    FileCase{"synth-tiny/tiny-Q4_0.gguf",
                             "gguf/synth-tiny/Q4_0.rand0.logits_f64.npy", kRandom0},
                    FileCase{"synth-tiny/tiny-Q4_0.gguf",
                             "gguf/synth-tiny/Q4_0.rand1.logits_f64.npy", kRandom1},
                    FileCase{"synth-tiny/tiny-Q4_K_M.gguf",
                             "gguf/synth-tiny/Q4_K_M.rand0.logits_f64.npy", kRandom0},
                    FileCase{"synth-tiny/tiny-Q4_K_M.gguf",
                             "gguf/synth-tiny/Q4_K_M.rand1.logits_f64.npy", kRandom1},
                    FileCase{"synth-tiny/tiny-Q8_0.gguf",
                             "gguf/synth-tiny/Q8_0.rand0.logits_f64.npy", kRandom0},
                    FileCase{"synth-tiny/tiny-Q8_0.gguf",
                             "gguf/synth-tiny/Q8_0.rand1.logits_f64.npy", kRandom1},
                    FileCase{"synth-tiny/hf-bf16", "gguf/synth-tiny/bf16.rand0.logits_f64.npy",
                             kRandom0}));

// Files without logits of their own: f32 against the witness over the same values.
TEST(GgufFiles, EveryFileRunsAndAgreesWithTheWitness) {
  NEED_SHARED_DATA();
  for (const auto& entry : fs::recursive_directory_iterator(kData / "models")) {
    if (entry.path().extension() != ".gguf") continue;
    const auto model = open(entry.path());
    const bool stories = entry.path().filename().string().starts_with("stories");
    auto prompt = ids_of(read_npy(kData / "oracle" / (stories ? kLily : kRandom0)));
    prompt.resize(std::min<std::size_t>(prompt.size(), 24));
    const auto exact = Witness(model).score(prompt);
    const std::vector<double> wide(exact.begin(), exact.end());
    const double difference = largest_difference(host_logits(model, prompt), wide.data());
    fmt::print("{}: f32 differs from f64 by {:.2e}\n", entry.path().filename().string(),
               difference);
    EXPECT_LE(difference, 2e-4) << entry.path();
  }
}

// A file of f32 and its twin in Hugging Face layout are one model, bit for bit.
TEST(GgufFiles, PlainFilesGiveTheBitsOfTheirTwins) {
  NEED_SHARED_DATA();
  const auto prompt = ids_of(read_npy(kData / "oracle" / kLily));
  const fs::path models = kData / "models";
  for (const auto& [gguf, folder] :
       {std::pair{"stories260K/gguf/stories260K-F32.gguf", "stories260K/hf"},
        std::pair{"stories260K-pad192/gguf/stories260K-pad192-F32.gguf",
                  "stories260K-pad192/hf"}}) {
    EXPECT_TRUE(host_logits(open(models / gguf), prompt) ==
                host_logits(open(models / folder), prompt))
        << gguf;
  }
}

// Files of 16-bit elements keep their norms in f32; the matrices are those of the twin.
TEST(GgufFiles, SixteenBitMatricesAreThoseOfTheirTwins) {
  NEED_SHARED_DATA();
  const fs::path models = kData / "models";
  for (const auto& [gguf, folder, dtype] :
       {std::tuple{"stories260K/gguf/stories260K-F16.gguf", "stories260K/hf-f16", Dtype::f16},
        std::tuple{"stories260K/gguf/stories260K-BF16.gguf", "stories260K/hf-bf16", Dtype::bf16}}) {
    const auto a = open(models / gguf);
    const auto b = open(models / folder);
    EXPECT_EQ(a->description().stored_dtype, dtype);
    for (const auto member :
         {&LayerTensors::q, &LayerTensors::k, &LayerTensors::v, &LayerTensors::down}) {
      const TensorView& left = a->layer(2).*member;
      const TensorView& right = b->layer(2).*member;
      EXPECT_EQ(left.dtype, dtype);
      std::vector<std::byte> bytes_a(left.bytes());
      std::vector<std::byte> bytes_b(right.bytes());
      left.convert(dtype, bytes_a.data());
      right.convert(dtype, bytes_b.data());
      EXPECT_TRUE(bytes_a == bytes_b) << left.name;
    }
  }
}

}  // namespace
}  // namespace driftscope::test
