// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace driftscope {
namespace {

Result<void> check_ids(const std::vector<TokenId>& ids, const ModelDescription& model,
                       std::string_view what) {
  if (ids.empty()) {
    return fail(ErrorKind::usage, fmt::format("{} is empty; give at least one token", what));
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].value >= 0 && ids[i].value < model.vocabulary) continue;
    return fail(
        ErrorKind::usage,
        fmt::format("{}: id {} at position {} is outside the model's vocabulary of {}; give "
                    "ids of this model's tokenizer",
                    what, ids[i].value, i, model.vocabulary));
  }
  if (static_cast<std::int64_t>(ids.size()) > model.max_positions) {
    return fail(ErrorKind::usage,
                fmt::format("{} has {} tokens, the model's context holds {}; shorten it", what,
                            ids.size(), model.max_positions));
  }
  return {};
}

}  // namespace

Result<void> check_lane_input(const LaneInput& input, std::string_view side) {
  assert(input.model != nullptr);
  const ModelDescription& model = input.model->description();
  if (auto fits = check_ids(input.prompt, model, fmt::format("prompt of side {}", side)); !fits) {
    return fits;
  }
  const auto neighbours = static_cast<std::int64_t>(input.neighbour_prompts.size());
  if (neighbours != input.config.neighbours) {
    return fail(ErrorKind::usage,
                fmt::format("side {}: neighbours={}, but {} neighbour prompts were given; give one "
                            "for each",
                            side, input.config.neighbours, neighbours));
  }
  for (std::size_t i = 0; i < input.neighbour_prompts.size(); ++i) {
    const std::string what = fmt::format("prompt of neighbour {} of side {}", i, side);
    if (auto fits = check_ids(input.neighbour_prompts[i], model, what); !fits) return fits;
  }
  return {};
}

LaneRun::LaneRun(Lane lane, const LaneInput& input)
    : m_input(&input), m_sampler(input.config.sampling) {
  m_summary.lane = lane;
}

Result<void> LaneRun::open(BackendFactory& factory, TapLevel taps, std::int64_t steps) {
  auto backend = m_summary.lane == Lane::reference || m_summary.lane == Lane::reference_b
                     ? factory.open_reference(m_input->model, m_input->config.threads)
                     : factory.open(m_input->model, m_input->config);
  if (!backend) return tl::unexpected(backend.error());
  m_backend = *std::move(backend);
  const std::int64_t expected = std::min(m_input->model->description().max_positions,
                                         static_cast<std::int64_t>(m_input->prompt.size()) + steps);
  auto engine =
      BatchEngine::create(m_backend, m_input->config, m_input->neighbour_prompts, taps, expected);
  if (!engine) return tl::unexpected(engine.error());
  m_engine = *std::move(engine);
  return {};
}

Result<void> LaneRun::fork_from(const LaneRun& other) {
  auto engine = other.m_engine->fork();
  if (!engine) return tl::unexpected(engine.error());
  m_engine = *std::move(engine);
  m_backend = other.m_backend;
  return {};
}

void LaneRun::adopt(LaneRun& other) {
  m_engine = std::move(other.m_engine);
  m_backend = other.m_backend;
}

Result<StepOutput> LaneRun::forward(const std::stop_token& stop) {
  if (m_input->config.scoring == Scoring::prefill) return recompute(stop);
  if (m_emitted.empty()) return m_engine->prefill(m_input->prompt, stop);
  return m_engine->decode(m_emitted.back(), stop);
}

// Without a cache: the whole sequence anew, its last row.
Result<StepOutput> LaneRun::recompute(const std::stop_token& stop) {
  m_sequence.assign(m_input->prompt.begin(), m_input->prompt.end());
  m_sequence.insert(m_sequence.end(), m_emitted.begin(), m_emitted.end());
  return m_engine->score_last(m_sequence, stop);
}

Choice LaneRun::choose(const StepOutput& output) {
  const bool shared = m_input->config.sampling.seed_scope == SeedScope::shared_worker;
  const std::uint64_t draw = shared ? output.draw : m_emitted.size();
  const TokenId token = m_sampler.choose(output.logits, m_input->prompt, m_emitted, draw);
  return {.token = token, .draw = m_sampler.draw()};
}

Result<void> LaneRun::deliver(TraceSink& sink, const StepOutput& output, const Choice& choice,
                              TokenId emitted) {
  const StepRecord record{.lane = m_summary.lane,
                          .step = steps_done(),
                          .choice = choice.token,
                          .emitted = emitted,
                          .logits = output.logits,
                          .taps = output.taps,
                          .timing_ns = output.timing_ns,
                          .rows_in_flight = output.rows_in_flight,
                          .draw = choice.draw,
                          .routes = output.routes};
  (m_emitted.empty() ? m_summary.prefill_ns : m_summary.decode_ns) += output.timing_ns;
  m_emitted.push_back(emitted);
  ++m_summary.steps;
  return sink.accept(record);
}

void LaneRun::check_end(std::int64_t steps, const DecodeText& decode_text) {
  if (is_stop_token(m_emitted.back())) {
    end(StopReason::end_of_sequence);
  } else if (has_stop_string(decode_text)) {
    end(StopReason::stop_string);
  } else if (steps_done() >= steps) {
    end(StopReason::steps);
  } else if (context_is_full()) {
    end(StopReason::context_full);
  }
}

bool LaneRun::context_is_full() const {
  return static_cast<std::int64_t>(m_input->prompt.size()) + steps_done() >
         m_input->model->description().max_positions;
}

void LaneRun::end(StopReason reason) {
  m_summary.stop = reason;
  m_ended = true;
}

bool LaneRun::is_stop_token(TokenId token) const {
  const SamplingConfig& sampling = m_input->config.sampling;
  const auto& stops = sampling.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token.value) != stops.end()) return true;
  const auto& eos = m_input->model->description().eos;
  return !sampling.ignore_eos && std::find(eos.begin(), eos.end(), token) != eos.end();
}

bool LaneRun::has_stop_string(const DecodeText& decode_text) const {
  const auto& stops = m_input->config.sampling.stop_strings;
  if (stops.empty()) return false;
  const std::string text = decode_text(m_emitted);
  return std::any_of(stops.begin(), stops.end(), [&](const std::string& stop) {
    return !stop.empty() && text.find(stop) != std::string::npos;
  });
}

LaneSummary LaneRun::summary() const {
  LaneSummary result = m_summary;
  if (m_backend != nullptr) {
    result.plans = m_backend->plans();
    result.storage = m_backend->storage_note();
  }
  return result;
}

}  // namespace driftscope
