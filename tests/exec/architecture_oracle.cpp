// SPDX-License-Identifier: Apache-2.0
#include "tests/exec/architecture_oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "engine/backend/host/thread_pool.h"
#include "engine/backend/reference/reference_backend.h"

namespace driftscope::test {

namespace fs = std::filesystem;

const fs::path& oracle_folder() {
  static const fs::path folder = fs::path(DRIFTSCOPE_SHARED_DATA) / "oracle" / "architectures";
  return folder;
}

nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

std::vector<TokenId> tokens_of(const nlohmann::json& json) {
  std::vector<TokenId> tokens;
  for (const auto& id : json) tokens.push_back(TokenId{id.get<std::int32_t>()});
  return tokens;
}

std::vector<TokenId> prompt_of(const std::string& model, int prompt) {
  return tokens_of(read_json(oracle_folder() / model / fmt::format("prompt{}.ids.json", prompt)));
}

std::shared_ptr<const ModelCheckpoint> open_with_config(const fs::path& folder,
                                                        const nlohmann::json& config) {
  auto own = std::make_shared<TemporaryFolder>();
  std::ofstream(own->path() / "config.json") << config;
  fs::copy_file(folder / "model.safetensors", own->path() / "model.safetensors");
  auto opened = ModelCheckpoint::open(own->path());
  if (!opened) throw std::runtime_error(opened.error().message);
  auto checkpoint = *opened;
  const ModelCheckpoint* raw = checkpoint.get();
  return {raw, [own, checkpoint](const ModelCheckpoint*) {}};
}

std::shared_ptr<const ModelCheckpoint> open_oracle(const std::string& model,
                                                   const std::string& config_file) {
  const fs::path folder = oracle_folder() / model;
  return open_with_config(folder, read_json(folder / config_file));
}

double largest_difference(std::span<const float> ours, const double* exact) {
  double largest = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double difference = std::abs(double{ours[i]} - exact[i]);
    // A NaN is a difference too.
    largest = std::isnan(difference) ? HUGE_VAL : std::max(largest, difference);
  }
  return largest;
}

Witness::Witness(const std::shared_ptr<const ModelCheckpoint>& model)
    : m_backend(std::move(open_reference(model, std::make_shared<ThreadPool>(2))).value()) {}

std::vector<float> Witness::score(const std::vector<TokenId>& prompt) {
  auto cache = m_backend->create_cache(0).value();
  return run(*cache, prompt, static_cast<std::int64_t>(prompt.size()));
}

std::vector<TokenId> Witness::greedy(const std::vector<TokenId>& prompt, std::size_t count) {
  auto cache = m_backend->create_cache(0).value();
  std::vector<TokenId> tokens;
  std::vector<float> row = run(*cache, prompt, 1);
  while (tokens.size() < count) {
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    tokens.push_back(TokenId{static_cast<std::int32_t>(best)});
    if (tokens.size() < count) row = run(*cache, {tokens.back()}, 1);
  }
  return tokens;
}

std::vector<float> Witness::run(KvCache& cache, const std::vector<TokenId>& tokens,
                                std::int64_t output_rows) {
  const std::array sequences{
      BatchSequence{.cache = &cache, .tokens = tokens, .output_rows = output_rows}};
  const auto done = m_backend->forward({.phase = Phase::score, .sequences = sequences}, {});
  if (!done) throw std::runtime_error(done.error().message);
  const auto rows = m_backend->logits(0, output_rows).value();
  return {rows.begin(), rows.end()};
}

}  // namespace driftscope::test
