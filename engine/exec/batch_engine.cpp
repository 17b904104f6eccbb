// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/batch_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

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
    : m_backend(std::move(backend)), m_config(config), m_schedule(config), m_tap_level(taps) {
  const SamplingConfig& sampling = config.sampling;
  if (sampling.seed_scope == SeedScope::shared_worker && sampling.temperature > 0.0) {
    m_neighbour_sampler.emplace(sampling);
  }
}

Result<std::unique_ptr<BatchEngine>> BatchEngine::create(
    std::shared_ptr<Backend> backend, const RunConfig& config,
    std::vector<std::vector<TokenId>> neighbour_prompts, TapLevel taps,
    std::int64_t expected_tokens) {
  std::unique_ptr<BatchEngine> engine(new BatchEngine(std::move(backend), config, taps));
  auto cache = engine->m_backend->create_cache(expected_tokens);
  if (!cache) return tl::unexpected(cache.error());
  engine->m_target.cache = *std::move(cache);
  for (std::vector<TokenId>& prompt : neighbour_prompts) {
    auto own = engine->m_backend->create_cache(expected_tokens);
    if (!own) return tl::unexpected(own.error());
    engine->m_neighbours.push_back({.prompt = std::move(prompt), .cache = *std::move(own)});
  }
  return engine;
}

Result<std::unique_ptr<BatchEngine>> BatchEngine::fork() const {
  std::unique_ptr<BatchEngine> copy(new BatchEngine(m_backend, m_config, m_tap_level));
  auto target = m_target.clone();
  if (!target) return tl::unexpected(target.error());
  copy->m_target = *std::move(target);
  for (const Request& neighbour : m_neighbours) {
    auto own = neighbour.clone();
    if (!own) return tl::unexpected(own.error());
    copy->m_neighbours.push_back(*std::move(own));
  }
  copy->m_turn = m_turn;
  copy->m_draws = m_draws;
  copy->m_rows = m_rows;
  copy->m_drafts = m_drafts;
  copy->m_served = m_served;
  return copy;
}

void BatchEngine::begin() {
  m_target.leave();
  for (Request& neighbour : m_neighbours) neighbour.leave();
  m_rows.clear();
  m_drafts.clear();
  m_served = 0;
  m_turn = 0;
}

// Arrivals and departures of this turn.
void BatchEngine::move_neighbours() {
  for (std::size_t i = 0; i < m_neighbours.size(); ++i) {
    Request& neighbour = m_neighbours[i];
    const bool takes_part = m_schedule.takes_part(i, m_turn);
    if (takes_part && !neighbour.in_flight) neighbour.arrive(neighbour.prompt, 1);
    if (!takes_part && neighbour.in_flight) neighbour.leave();
  }
}

bool BatchEngine::neighbours_prefill() const {
  return std::any_of(m_neighbours.begin(), m_neighbours.end(), [](const Request& neighbour) {
    return neighbour.in_flight && !neighbour.decoding;
  });
}

Result<StepOutput> BatchEngine::prefill(std::span<const TokenId> prompt,
                                        const std::stop_token& stop) {
  const std::int64_t start = now_ns();
  begin();
  m_draws = 0;
  m_target.arrive(prompt, 1);
  if (auto done = warm_prefix(stop); !done) return tl::unexpected(done.error());
  move_neighbours();
  if (m_schedule.neighbours_come_first()) {
    m_target.in_flight = false;
    while (neighbours_prefill()) {
      auto done = run_call(CallPurpose::serve, stop, keep_rows());
      if (!done) return tl::unexpected(done.error());
    }
    m_target.in_flight = true;
  }
  if (auto done = put_prompt_in(CallPurpose::serve, stop, keep_rows()); !done) {
    return tl::unexpected(done.error());
  }
  return serve_row(now_ns() - start);
}

Result<void> BatchEngine::warm_prefix(const std::stop_token& stop) {
  if (m_config.prefix_cache == PrefixCache::cold) return {};
  const std::size_t length = (m_target.prompt.size() - 1) / kPrefixBlock * kPrefixBlock;
  if (length == 0) return {};
  const BatchSequence prefix{.cache = m_target.cache.get(),
                             .tokens = std::span(m_target.prompt).first(length)};
  return m_backend->forward({.phase = Phase::prefill, .sequences = {&prefix, 1}}, stop);
}

Result<StepOutput> BatchEngine::decode(TokenId token, const std::stop_token& stop) {
  const bool drafted = m_served < m_rows.size() && m_drafts[m_served - 1] == token;
  // Rows behind the tokens that were accepted.
  if (!drafted) m_target.cache->truncate(static_cast<std::int64_t>(m_target.tokens.size()));
  m_target.tokens.push_back(token);
  if (drafted) return serve_row(0);
  const std::int64_t start = now_ns();
  ++m_turn;
  move_neighbours();
  m_rows.clear();
  m_served = 0;
  if (auto done = run_call(CallPurpose::serve, stop, keep_rows()); !done) {
    return tl::unexpected(done.error());
  }
  return serve_row(now_ns() - start);
}

Result<void> BatchEngine::score(std::span<const TokenId> sequence, std::int64_t rows,
                                const std::stop_token& stop, const RowFunction& on_row) {
  begin();
  m_draws = 0;
  for (Request& neighbour : m_neighbours) neighbour.arrive(neighbour.prompt, 1);
  m_target.arrive(sequence, rows);
  m_clock_ns = now_ns();
  return put_prompt_in(CallPurpose::score, stop, on_row);
}

Result<StepOutput> BatchEngine::score_last(std::span<const TokenId> sequence,
                                           const std::stop_token& stop) {
  const std::int64_t start = now_ns();
  begin();
  for (Request& neighbour : m_neighbours) neighbour.arrive(neighbour.prompt, 1);
  m_target.arrive(sequence, 1);
  if (auto done = put_prompt_in(CallPurpose::score, stop, keep_rows()); !done) {
    return tl::unexpected(done.error());
  }
  return serve_row(now_ns() - start);
}

Result<void> BatchEngine::put_prompt_in(CallPurpose purpose, const std::stop_token& stop,
                                        const RowFunction& on_row) {
  while (!m_target.decoding) {
    if (auto done = run_call(purpose, stop, on_row); !done) return done;
  }
  return {};
}

std::vector<Request*> BatchEngine::in_flight() {
  std::vector<Request*> order;
  for (Request& neighbour : m_neighbours) order.push_back(&neighbour);
  const auto place = static_cast<std::ptrdiff_t>(m_schedule.target_place(order.size()));
  order.insert(order.begin() + place, &m_target);
  std::erase_if(order, [](const Request* request) { return !request->in_flight; });
  return order;
}

Result<void> BatchEngine::run_call(CallPurpose purpose, const std::stop_token& stop,
                                   const RowFunction& on_row) {
  const std::int64_t context = m_backend->model().max_positions;
  for (Request& neighbour : m_neighbours) neighbour.wrap(context);
  m_call = plan_call(m_schedule, in_flight(), context, purpose);
  if (auto done = lay_out_call(); !done) return done;
  const Batch batch{.phase = m_call.phase, .sequences = m_sequences, .taps = m_tap_level};
  if (auto done = m_backend->forward(batch, stop); !done) return done;
  for (const CallEntry& entry : m_call.entries) {
    Request* request = entry.request;
    if (request == nullptr || request->decoding) continue;
    request->decoding =
        request->cache->length() == static_cast<std::int64_t>(request->prompt.size());
  }
  return read_outputs(on_row);
}

Result<void> BatchEngine::lay_out_call() {
  m_sequences.clear();
  std::size_t padding = 0;
  for (const CallEntry& entry : m_call.entries) {
    KvCache* cache = entry.request == nullptr ? nullptr : entry.request->cache.get();
    if (cache == nullptr) {
      if (padding == m_padding_caches.size()) {
        auto made = m_backend->create_cache(static_cast<std::int64_t>(entry.tokens.size()));
        if (!made) return tl::unexpected(made.error());
        m_padding_caches.push_back(*std::move(made));
      }
      cache = m_padding_caches[padding++].get();
      cache->truncate(0);
    }
    m_sequences.push_back({.cache = cache,
                           .tokens = entry.tokens,
                           .output_rows = entry.output_rows,
                           .taps = entry.request == &m_target});
  }
  return {};
}

Result<void> BatchEngine::read_outputs(const RowFunction& on_row) {
  m_block = {};
  std::int64_t row = 0;
  for (const CallEntry& entry : m_call.entries) {
    if (entry.request == nullptr) break;  // padding comes last
    if (auto done = read_entry(entry, row, on_row); !done) return done;
    row += entry.output_rows;
  }
  return {};
}

Result<void> BatchEngine::read_entry(const CallEntry& entry, std::int64_t first_row,
                                     const RowFunction& on_row) {
  Request& request = *entry.request;
  bool accepting = true;  // of a neighbour: the drafts so far were right
  for (std::int64_t i = 0; i < entry.output_rows; ++i) {
    const auto values = row_logits(first_row + i);
    if (!values) return tl::unexpected(values.error());
    const std::uint64_t draw = m_draws++;
    if (&request == &m_target) {
      const StepOutput output{.logits = *values,
                              .taps = m_backend->taps(first_row + i),
                              .timing_ns = i == 0 ? now_ns() - m_clock_ns : 0,
                              .rows_in_flight = m_call.rows,
                              .draw = draw,
                              .routes = m_backend->routes(first_row + i)};
      const std::int64_t position = request.cache->length() - entry.output_rows + i;
      if (auto done = on_row(position, output); !done) return done;
    } else if (accepting) {
      const TokenId choice = neighbour_choice(request, *values, draw);
      request.tokens.push_back(choice);
      const auto next = static_cast<std::size_t>(i) + 1;
      accepting = entry.decodes && next < entry.tokens.size() && entry.tokens[next] == choice;
    }
  }
  if (&request == &m_target) {
    if (entry.decodes) m_drafts.assign(entry.tokens.begin() + 1, entry.tokens.end());
    if (entry.output_rows > 0) m_clock_ns = now_ns();
  } else if (entry.decodes) {
    request.cache->truncate(static_cast<std::int64_t>(request.tokens.size()) - 1);
  }
  return {};
}

Result<std::span<const float>> BatchEngine::row_logits(std::int64_t row) {
  const auto vocabulary = static_cast<std::size_t>(m_backend->model().vocabulary);
  if (m_block.empty() || row % kLogitsBlock == 0) {
    auto logits = m_backend->logits(row, std::min(kLogitsBlock, m_backend->output_rows() - row));
    if (!logits) return logits;
    m_block = *logits;
    m_block_first = row;
  }
  return m_block.subspan(static_cast<std::size_t>(row - m_block_first) * vocabulary, vocabulary);
}

TokenId BatchEngine::neighbour_choice(const Request& neighbour, std::span<const float> logits,
                                      std::uint64_t draw) {
  if (!m_neighbour_sampler) return greedy_choice(logits);
  const std::span<const TokenId> tokens(neighbour.tokens);
  return m_neighbour_sampler->choose(logits, neighbour.prompt,
                                     tokens.subspan(neighbour.prompt.size()), draw);
}

// The backend's buffers are gone with its next call, but a row may be wanted after other calls.
RowFunction BatchEngine::keep_rows() {
  return [this](std::int64_t, const StepOutput& output) -> Result<void> {
    m_rows.emplace_back(output);
    return {};
  };
}

StepOutput BatchEngine::serve_row(std::int64_t timing_ns) {
  StepOutput output = m_rows[m_served++].output();
  output.timing_ns = timing_ns;
  return output;
}

}  // namespace driftscope
