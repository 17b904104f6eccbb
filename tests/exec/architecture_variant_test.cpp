// SPDX-License-Identifier: Apache-2.0
// Variants of the architectures that somebody has exact logits of: every folder below
// $DRIFTSCOPE_ARCHITECTURES, each with config.json, model.safetensors, promptN.ids.json and
// logits_f64_N.npy ([positions, vocabulary], as the oracle's own).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/exec/architecture_oracle.h"
#include "tests/exec/recording.h"

namespace driftscope::test {
namespace {

namespace fs = std::filesystem;

double host_difference(const std::shared_ptr<const ModelCheckpoint>& model,
                       const std::vector<TokenId>& prompt, const NumpyArray& exact) {
  LaneInput input{.model = model, .prompt = prompt};
  input.config.scoring = Scoring::prefill;
  double largest = 0.0;
  for (const RecordedStep& step : score(input)) {
    largest = std::max(largest, largest_difference(step.logits, exact.row(step.step)));
  }
  return largest;
}

TEST(ArchitectureVariants, OfAFolderGiveItsExactLogits) {
  const char* root = std::getenv("DRIFTSCOPE_ARCHITECTURES");
  if (root == nullptr) GTEST_SKIP() << "DRIFTSCOPE_ARCHITECTURES names no folder";
  constexpr double kHostTolerance = 2e-4;  // of the oracle's manifest
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!fs::exists(entry.path() / "logits_f64_0.npy")) continue;
    const auto opened = ModelCheckpoint::open(entry.path());
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    for (int i = 0; fs::exists(entry.path() / fmt::format("logits_f64_{}.npy", i)); ++i) {
      const auto prompt = tokens_of(read_json(entry.path() / fmt::format("prompt{}.ids.json", i)));
      const auto exact = read_npy(entry.path() / fmt::format("logits_f64_{}.npy", i));
      double scale = 16.0;
      for (const double value : exact.values) scale = std::max(scale, std::abs(value));
      const double witness =
          largest_difference(Witness(*opened).score(prompt), exact.values.data());
      const double host = host_difference(*opened, prompt, exact);
      fmt::print("{} prompt {}: witness {:.2e}, host {:.2e}\n", entry.path().filename().string(), i,
                 witness, host);
      EXPECT_LE(witness, kWitnessTolerance * (scale > 16.0 ? 2.0 : 1.0)) << entry.path();
      EXPECT_LE(host, kHostTolerance) << entry.path();
    }
  }
}

}  // namespace
}  // namespace driftscope::test
