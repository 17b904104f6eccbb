// SPDX-License-Identifier: Apache-2.0
// Speculative verification: other rows in flight, the same answer.
#include <gtest/gtest.h>

#include "engine/exec/backend_factory.h"
#include "engine/exec/batch_engine.h"
#include "tests/exec/recording.h"
#include "tests/exec/tiny_checkpoint.h"

namespace driftscope::test {
namespace {

constexpr std::int64_t kVocabulary = 160;

LaneInput input_of(const RunConfig& config) {
  static const auto model = tiny_checkpoint({.type = "qwen3"});
  LaneInput input{.model = model, .config = config, .prompt = some_ids(20, kVocabulary, 1)};
  for (std::int64_t i = 0; i < config.neighbours; ++i) {
    input.neighbour_prompts.push_back(
        some_ids(4 + 3 * i, kVocabulary, 60 + static_cast<unsigned>(i)));
  }
  return input;
}

RunConfig config_of(PlanPolicy policy) {
  RunConfig config;
  config.matmul_policy = policy;
  config.sampling.ignore_eos = true;
  config.threads = 1;
  return config;
}

// Counts the calls that reach a backend.
class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(std::unique_ptr<Backend> inner) : m_inner(std::move(inner)) {}
  [[nodiscard]] const ModelDescription& model() const override { return m_inner->model(); }
  [[nodiscard]] Result<std::unique_ptr<KvCache>> create_cache(std::int64_t tokens) override {
    return m_inner->create_cache(tokens);
  }
  [[nodiscard]] Result<void> forward(const Batch& batch, const std::stop_token& stop) override {
    ++calls;
    return m_inner->forward(batch, stop);
  }
  [[nodiscard]] std::int64_t output_rows() const override { return m_inner->output_rows(); }
  [[nodiscard]] Result<std::span<const float>> logits(std::int64_t first,
                                                      std::int64_t count) override {
    return m_inner->logits(first, count);
  }
  [[nodiscard]] std::span<const TensorTap> taps(std::int64_t row) override {
    return m_inner->taps(row);
  }
  [[nodiscard]] std::vector<std::string> plans() const override { return m_inner->plans(); }
  [[nodiscard]] std::string storage_note() const override { return m_inner->storage_note(); }
  std::int64_t calls = 0;

 private:
  std::unique_ptr<Backend> m_inner;
};

struct Counted {
  std::shared_ptr<CountingBackend> backend;
  std::unique_ptr<BatchEngine> engine;
};
Counted counted(const RunConfig& config) {
  const LaneInput input = input_of(config);
  BackendFactory factory;
  Counted made;
  made.backend = std::make_shared<CountingBackend>(*factory.open(input.model, config));
  made.engine =
      *BatchEngine::create(made.backend, config, input.neighbour_prompts, TapLevel::logits, 64);
  return made;
}

TEST(Speculation, RightDraftsSaveCallsAndWrongOnesAreThrownAway) {
  RunConfig config = config_of(PlanPolicy::invariant);
  config.speculative_tokens = 3;
  auto [backend, engine] = counted(config);
  ASSERT_TRUE(engine->prefill(ids({5, 9, 5, 9}), {}));
  EXPECT_EQ(backend->calls, 1);
  // 5 comes with the drafts 9, 5, 9: four tokens of the loop are one call.
  for (const std::int32_t id : {5, 9, 5, 9}) ASSERT_TRUE(engine->decode(TokenId{id}, {}));
  EXPECT_EQ(backend->calls, 2);
  // 5 again, with the same drafts, but 7 comes: a call of its own; and another one.
  for (const std::int32_t id : {5, 7, 8}) ASSERT_TRUE(engine->decode(TokenId{id}, {}));
  EXPECT_EQ(backend->calls, 5);
}

TEST(Speculation, GivenTokensHaveTheLogitsOfPlainDecoding) {
  // A text with loops, so that drafts of every number are right.
  LaneInput input = input_of(config_of(PlanPolicy::invariant));
  input.prompt = ids({5, 9, 5, 9, 5, 9, 5, 7, 7, 7, 7, 7, 1, 2, 3, 1, 2, 3, 1, 2, 4, 5, 9, 5, 9});
  const auto plain = score(input, TapLevel::all);
  ASSERT_EQ(plain.size(), input.prompt.size());
  for (const std::int64_t drafts : {1, 2, 5, 16}) {
    input.config.speculative_tokens = drafts;
    const auto verified = score(input, TapLevel::all);
    EXPECT_TRUE(same_logits(verified, plain)) << drafts;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(verified[i].taps.size(), plain[i].taps.size());
      for (std::size_t t = 0; t < plain[i].taps.size(); ++t) {
        EXPECT_TRUE(same_bits(verified[i].taps[t].values, plain[i].taps[t].values))
            << plain[i].taps[t].operation << " position " << i;
      }
    }
  }
}

TEST(Speculation, EmitsWhatPlainDecodingEmitsUnderInvariantPlans) {
  for (const double temperature : {0.0, 1.0}) {
    for (const std::int64_t neighbours : {0, 3}) {
      RunConfig config = config_of(PlanPolicy::invariant);
      config.sampling.temperature = temperature;
      config.neighbours = neighbours;
      const auto plain = generate(input_of(config), 40);
      ASSERT_EQ(plain.size(), 40U);
      for (const std::int64_t drafts : {1, 4}) {
        config.speculative_tokens = drafts;
        const auto verified = generate(input_of(config), 40);
        EXPECT_EQ(emitted_of(verified), emitted_of(plain)) << temperature << " " << drafts;
        EXPECT_TRUE(same_logits(verified, plain)) << temperature << " " << drafts;
      }
    }
  }
}

TEST(Speculation, ChangesBitsUnderShapeDependentPlans) {
  RunConfig config = config_of(PlanPolicy::shape_dependent);
  const auto plain = generate(input_of(config), 4);
  config.speculative_tokens = 8;
  const auto verified = generate(input_of(config), 4);
  EXPECT_TRUE(same_bits(verified[0].logits, plain[0].logits));  // the prompt has no drafts
  EXPECT_FALSE(same_bits(verified[1].logits, plain[1].logits));
}

TEST(Speculation, AForkTakesTheDraftsAlong) {
  RunConfig config = config_of(PlanPolicy::invariant);
  config.speculative_tokens = 3;
  config.neighbours = 1;
  auto [backend, engine] = counted(config);
  const auto after = [](BatchEngine& from, std::initializer_list<std::int32_t> fed) {
    std::vector<float> logits;
    for (const std::int32_t id : fed) {
      const auto output = *from.decode(TokenId{id}, {});
      logits.assign(output.logits.begin(), output.logits.end());
    }
    return logits;
  };
  ASSERT_TRUE(engine->prefill(ids({5, 9, 5, 9}), {}));
  after(*engine, {5, 9});  // two drafts are left
  auto copy = *engine->fork();
  const auto calls = backend->calls;
  const auto kept = after(*engine, {5, 9});
  const auto copied = after(*copy, {5, 9});
  EXPECT_EQ(backend->calls, calls);
  EXPECT_TRUE(same_bits(kept, copied));
  const auto other = after(*copy, {3, 4});
  auto [again, scratch] = counted(config);
  ASSERT_TRUE(scratch->prefill(ids({5, 9, 5, 9}), {}));
  EXPECT_TRUE(same_bits(after(*scratch, {5, 9, 5, 9, 3, 4}), other));
}

}  // namespace
}  // namespace driftscope::test
