// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/batch_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/exec/sampler.h"

namespace driftscope {
namespace {

// Logits of at most this many rows are held at once: 64 rows of 150,000 are 37 MiB.
constexpr std::int64_t kLogitsBlock = 64;
constexpr std::size_t kPrefixBlock = 16;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

BatchEngine::BatchEngine(std::shared_ptr<Backend> backend, const RunConfig& config, TapLevel taps)
    : m_backend(std::move(backend)), m_config(config), m_tap_level(taps) {}

Result<std::unique_ptr<BatchEngine>> BatchEngine::create(
    std::shared_ptr<Backend> backend, const RunConfig& config,
    std::vector<std::vector<TokenId>> neighbour_prompts, TapLevel taps,
    std::int64_t expected_tokens) {
  std::unique_ptr<BatchEngine> engine(new BatchEngine(std::move(backend), config, taps));
  auto cache = engine->m_backend->create_cache(expected_tokens);
  if (!cache) return tl::unexpected(cache.error());
  engine->m_cache = *std::move(cache);
  for (std::vector<TokenId>& prompt : neighbour_prompts) {
    auto own = engine->m_backend->create_cache(expected_tokens);
    if (!own) return tl::unexpected(own.error());
    engine->m_neighbours.push_back({.prompt = std::move(prompt), .cache = *std::move(own)});
  }
  return engine;
}

std::size_t BatchEngine::target_place() const {
  const auto place = static_cast<std::size_t>(std::max<std::int64_t>(m_config.batch_position, 0));
  return std::min(place, m_neighbours.size());
}

void BatchEngine::clear_caches() {
  m_cache->truncate(0);
  for (Neighbour& neighbour : m_neighbours) neighbour.cache->truncate(0);
}

Result<StepOutput> BatchEngine::prefill(std::span<const TokenId> prompt,
                                        const std::stop_token& stop) {
  clear_caches();
  auto warmed = warm_prefix(prompt, stop);
  if (!warmed) return tl::unexpected(warmed.error());
  queue_prompts(prompt.subspan(*warmed), 1);
  return run_step(Phase::prefill, m_config.prefill_chunk, stop);
}

// Returns how many tokens are in the cache now.
Result<std::size_t> BatchEngine::warm_prefix(std::span<const TokenId> prompt,
                                             const std::stop_token& stop) {
  if (m_config.prefix_cache == PrefixCache::cold) return 0;
  const std::size_t length = (prompt.size() - 1) / kPrefixBlock * kPrefixBlock;
  if (length == 0) return 0;
  const BatchSequence prefix{.cache = m_cache.get(), .tokens = prompt.first(length)};
  const Batch batch{.phase = Phase::prefill, .sequences = {&prefix, 1}};
  if (auto done = m_backend->forward(batch, stop); !done) return tl::unexpected(done.error());
  return length;
}

Result<StepOutput> BatchEngine::decode(TokenId token, const std::stop_token& stop) {
  const std::int64_t context = m_backend->model().max_positions;
  for (Neighbour& neighbour : m_neighbours) {
    if (neighbour.cache->length() < context) continue;
    neighbour.cache->truncate(static_cast<std::int64_t>(neighbour.prompt.size()) - 1);
    neighbour.next = neighbour.prompt.back();
  }
  queue({&token, 1}, 1,
        [](const Neighbour& neighbour) { return std::span<const TokenId>(&neighbour.next, 1); });
  return run_step(Phase::decode, 0, stop);
}

Result<void> BatchEngine::score(std::span<const TokenId> sequence, std::int64_t rows,
                                const std::stop_token& stop, const RowFunction& on_row) {
  clear_caches();
  queue_prompts(sequence, rows);
  m_clock_ns = now_ns();
  return run_queue(Phase::score, m_config.prefill_chunk, stop, on_row);
}

Result<StepOutput> BatchEngine::score_last(std::span<const TokenId> sequence,
                                           const std::stop_token& stop) {
  clear_caches();
  queue_prompts(sequence, 1);
  return run_step(Phase::score, m_config.prefill_chunk, stop);
}

Result<std::unique_ptr<BatchEngine>> BatchEngine::fork() const {
  std::unique_ptr<BatchEngine> copy(new BatchEngine(m_backend, m_config, m_tap_level));
  auto cache = m_cache->clone();
  if (!cache) return tl::unexpected(cache.error());
  copy->m_cache = *std::move(cache);
  for (const Neighbour& neighbour : m_neighbours) {
    auto own = neighbour.cache->clone();
    if (!own) return tl::unexpected(own.error());
    copy->m_neighbours.push_back(
        {.prompt = neighbour.prompt, .cache = *std::move(own), .next = neighbour.next});
  }
  return copy;
}

template <class TokensOf>
void BatchEngine::queue(std::span<const TokenId> target, std::int64_t target_rows,
                        TokensOf tokens_of) {
  m_queue.clear();
  m_queue_head = 0;
  const auto add_target = [&] {
    m_queue.push_back({.cache = m_cache.get(), .tokens = target, .output_rows = target_rows});
  };
  for (std::size_t i = 0; i < m_neighbours.size(); ++i) {
    if (i == target_place()) add_target();
    Neighbour& neighbour = m_neighbours[i];
    m_queue.push_back({.cache = neighbour.cache.get(),
                       .tokens = tokens_of(neighbour),
                       .output_rows = 1,
                       .neighbour = &neighbour});
  }
  if (target_place() == m_neighbours.size()) add_target();
}

void BatchEngine::queue_prompts(std::span<const TokenId> target, std::int64_t target_rows) {
  queue(target, target_rows,
        [](const Neighbour& neighbour) { return std::span<const TokenId>(neighbour.prompt); });
}

Result<StepOutput> BatchEngine::run_step(Phase phase, std::int64_t rows_per_call,
                                         const std::stop_token& stop) {
  const std::int64_t start = now_ns();
  const auto keep = [this](std::int64_t, const StepOutput& output) -> Result<void> {
    keep_row(output);
    return {};
  };
  if (auto done = run_queue(phase, rows_per_call, stop, keep); !done) {
    return tl::unexpected(done.error());
  }
  return StepOutput{.logits = m_row_logits,
                    .taps = m_row_taps,
                    .timing_ns = now_ns() - start,
                    .routes = m_row_routes.row()};
}

Result<void> BatchEngine::run_queue(Phase phase, std::int64_t rows_per_call,
                                    const std::stop_token& stop, const RowFunction& on_row) {
  while (m_queue_head < m_queue.size()) {
    fill_call(rows_per_call);
    const Batch batch{.phase = phase, .sequences = m_call, .taps = m_tap_level};
    if (auto done = m_backend->forward(batch, stop); !done) return done;
    if (auto done = read_outputs(on_row); !done) return done;
  }
  return {};
}

// Takes rows from the queue in batch order until the call is full, as continuous batching does.
void BatchEngine::fill_call(std::int64_t rows_per_call) {
  m_call.clear();
  m_call_neighbours.clear();
  std::int64_t room = rows_per_call;
  while (m_queue_head < m_queue.size() && (rows_per_call == 0 || room > 0)) {
    Pending& pending = m_queue[m_queue_head];
    const auto left = static_cast<std::int64_t>(pending.tokens.size());
    const std::int64_t taken = rows_per_call == 0 ? left : std::min(left, room);
    const std::int64_t after = left - taken;
    m_call.push_back(
        {.cache = pending.cache,
         .tokens = pending.tokens.first(static_cast<std::size_t>(taken)),
         .output_rows = std::clamp<std::int64_t>(pending.output_rows - after, 0, taken),
         .taps = pending.neighbour == nullptr});
    m_call_neighbours.push_back(pending.neighbour);
    pending.tokens = pending.tokens.subspan(static_cast<std::size_t>(taken));
    pending.output_rows = std::min(pending.output_rows, after);
    if (pending.tokens.empty()) ++m_queue_head;
    room -= taken;
  }
}

Result<void> BatchEngine::read_outputs(const RowFunction& on_row) {
  const std::int64_t rows = m_backend->output_rows();
  const auto vocabulary = static_cast<std::size_t>(m_backend->model().vocabulary);
  std::span<const float> block;
  std::int64_t block_first = 0;
  std::int64_t row = 0;
  bool first_of_target = true;
  for (std::size_t s = 0; s < m_call.size(); ++s) {
    for (std::int64_t i = 0; i < m_call[s].output_rows; ++i, ++row) {
      if (block.empty() || row % kLogitsBlock == 0) {
        auto logits = m_backend->logits(row, std::min(kLogitsBlock, rows - row));
        if (!logits) return tl::unexpected(logits.error());
        block = *logits;
        block_first = row;
      }
      const auto values =
          block.subspan(static_cast<std::size_t>(row - block_first) * vocabulary, vocabulary);
      if (Neighbour* neighbour = m_call_neighbours[s]; neighbour != nullptr) {
        neighbour->next = greedy_choice(values);
        continue;
      }
      const StepOutput output{.logits = values,
                              .taps = m_backend->taps(row),
                              .timing_ns = first_of_target ? now_ns() - m_clock_ns : 0,
                              .routes = m_backend->routes(row)};
      first_of_target = false;
      const std::int64_t position = m_cache->length() - m_call[s].output_rows + i;
      if (auto done = on_row(position, output); !done) return done;
    }
  }
  if (!first_of_target) m_clock_ns = now_ns();
  return {};
}

// The backend's buffers are gone with its next call, but a prompt's last row may come before other
// sequences' calls.
void BatchEngine::keep_row(const StepOutput& output) {
  m_row_logits.assign(output.logits.begin(), output.logits.end());
  m_row_tap_values.clear();
  m_row_taps.assign(output.taps.begin(), output.taps.end());
  for (const TensorTap& tap : output.taps) {
    m_row_tap_values.insert(m_row_tap_values.end(), tap.values.begin(), tap.values.end());
  }
  std::size_t offset = 0;
  for (TensorTap& tap : m_row_taps) {
    tap.values = std::span(m_row_tap_values).subspan(offset, tap.values.size());
    offset += tap.values.size();
  }
  m_row_routes = StoredRoutes(output.routes);
}

}  // namespace driftscope
