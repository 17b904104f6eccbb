// SPDX-License-Identifier: Apache-2.0
#include "response_null.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "analysis/responses/populations.h"

namespace driftscope::bench {
namespace {

constexpr std::int64_t kPermutations = 999;

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : m_state(seed) {}
  double unit() { return static_cast<double>(next() >> 11U) * 0x1p-53; }
  std::uint64_t next() {
    m_state += 0x9E3779B97F4A7C15U;
    return mixed(m_state);
  }
  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }

 private:
  std::uint64_t m_state;
};

// A small model of language: the next symbol's logits depend on the last symbol, so that answers
// that part stay apart, and are drawn at a temperature.
struct Prompt {
  std::uint64_t seed = 1;
  std::size_t length = 40;
  std::size_t symbols = 20;
  double spread = 4.0;  // of the logits: large for prompts that are answered nearly alike
};

struct Sample {
  SymbolSequence sequence;
  double mean_logprob = 0.0;
};

// A prompt at a temperature: exp(logit / temperature) of each symbol after each other, the row
// behind the last being of the start.
class Sampler {
 public:
  Sampler(const Prompt& prompt, double temperature) : m_prompt(prompt) {
    for (std::size_t last = 0; last <= prompt.symbols; ++last) {
      const std::uint64_t state = Draws::mixed(prompt.seed + last + 1);
      Row row;
      for (std::size_t s = 0; s < prompt.symbols; ++s) {
        const double u = static_cast<double>(Draws::mixed(state * 1000003U + s) >> 11U) * 0x1p-53;
        const double logit = prompt.spread * u;
        row.weights.push_back(std::exp(logit / temperature));
        row.sum += row.weights.back();
        row.plain += std::exp(logit);
        row.logits.push_back(logit);
      }
      m_rows.push_back(std::move(row));
    }
  }

  Sample draw(Draws& draws) const {
    Sample sample;
    std::size_t last = m_prompt.symbols;
    for (std::size_t i = 0; i < m_prompt.length; ++i) {
      const Row& row = m_rows[last];
      double left = draws.unit() * row.sum;
      std::size_t chosen = 0;
      while (chosen + 1 < m_prompt.symbols && left >= row.weights[chosen]) {
        left -= row.weights[chosen++];
      }
      // As a server tells it: at temperature 1.
      sample.mean_logprob += row.logits[chosen] - std::log(row.plain);
      sample.sequence.push_back(static_cast<std::int64_t>(chosen));
      last = chosen;
    }
    sample.mean_logprob /= static_cast<double>(m_prompt.length);
    return sample;
  }

 private:
  struct Row {
    std::vector<double> weights, logits;
    double sum = 0.0, plain = 0.0;
  };
  Prompt m_prompt;
  std::vector<Row> m_rows;
};

SampleGroup draw_group(const Prompt& prompt, std::size_t count, double temperature, Draws& draws) {
  SampleGroup group;
  const Sampler sampler(prompt, temperature);
  for (std::size_t i = 0; i < count; ++i) {
    Sample sample = sampler.draw(draws);
    group.sequences.push_back(std::move(sample.sequence));
    group.texts.emplace_back();
    group.mean_logprobs.push_back(sample.mean_logprob);
  }
  return group;
}

struct Rates {
  std::int64_t at_1 = 0, at_5 = 0, at_10 = 0, logprobs_at_5 = 0, either_at_5 = 0;
};

Rates rates_of(const Prompt& shape, std::size_t count_a, std::size_t count_b, double temperature_b,
               std::int64_t experiments, Draws& draws) {
  Rates rates;
  for (std::int64_t i = 0; i < experiments; ++i) {
    Prompt prompt = shape;
    prompt.seed = draws.next();
    const SampleGroup a = draw_group(prompt, count_a, 1.0, draws);
    const SampleGroup b = draw_group(prompt, count_b, temperature_b, draws);
    const double p = two_sample_test(a.sequences, b.sequences, kPermutations, draws.next()).p_value;
    rates.at_1 += p <= 0.01 ? 1 : 0;
    rates.at_5 += p <= 0.05 ? 1 : 0;
    rates.at_10 += p <= 0.10 ? 1 : 0;
    const double of_logprobs =
        kolmogorov_smirnov(a.mean_logprobs, b.mean_logprobs, kPermutations, draws.next()).p_value;
    rates.logprobs_at_5 += of_logprobs <= 0.05 ? 1 : 0;
    rates.either_at_5 += 2.0 * std::min(p, of_logprobs) <= 0.05 ? 1 : 0;
  }
  return rates;
}

void print_row(const char* what, std::size_t a, std::size_t b, const Rates& rates,
               std::int64_t experiments) {
  const auto percent = [&](std::int64_t hits) {
    return 100.0 * static_cast<double>(hits) / static_cast<double>(experiments);
  };
  const Share share = share_of(rates.at_5, experiments);
  fmt::print(
      "{:<34} {:>4} {:>4}   {:>5.1f}  {:>5.1f} ({:.1f} to {:.1f})  {:>5.1f}   {:>5.1f}   "
      "{:>5.1f}\n",
      what, a, b, percent(rates.at_1), percent(rates.at_5), 100.0 * share.low, 100.0 * share.high,
      percent(rates.at_10), percent(rates.logprobs_at_5), percent(rates.either_at_5));
}

// Experiments in which any of `prompts` prompts without a change is called changed.
void print_family(std::size_t prompts, std::size_t samples, std::int64_t experiments,
                  Draws& draws) {
  std::int64_t any = 0;
  for (std::int64_t i = 0; i < experiments; ++i) {
    std::vector<SampleGroup> a, b;
    for (std::size_t k = 0; k < prompts; ++k) {
      const Prompt prompt{.seed = draws.next()};
      a.push_back(draw_group(prompt, samples, 1.0, draws));
      b.push_back(draw_group(prompt, samples, 1.0, draws));
      a.back().prompt = b.back().prompt = std::to_string(k);
    }
    any += compare_populations(a, b, usual_permutations(prompts), draws.next()).changed > 0 ? 1 : 0;
  }
  const Share share = share_of(any, experiments);
  fmt::print(
      "{} prompts of {} samples, none changed: any is called changed in {:.1f}% of {} "
      "experiments ({:.1f} to {:.1f})\n",
      prompts, samples, 100.0 * share.value, experiments, 100.0 * share.low, 100.0 * share.high);
}

}  // namespace

void print_test_rates(std::int64_t experiments, std::uint64_t seed) {
  Draws draws(seed);
  const Prompt usual;
  const Prompt sharp{.symbols = 6, .spread = 40.0};  // most answers are equal: many ties
  fmt::print(
      "Share of {} experiments in which a change is found, in percent ({} permutations)\n"
      "{:<34}    A    B   at 1%  at 5% (95% interval)  at 10%  KS of logprobs at 5%  either\n",
      experiments, kPermutations, "");
  for (const std::size_t n : {5U, 10U, 20U, 50U, 100U}) {
    print_row("no change", n, n, rates_of(usual, n, n, 1.0, experiments, draws), experiments);
  }
  print_row("no change, unequal sizes", 10, 50, rates_of(usual, 10, 50, 1.0, experiments, draws),
            experiments);
  print_row("no change, most answers equal", 20, 20,
            rates_of(sharp, 20, 20, 1.0, experiments, draws), experiments);
  print_row("the same, unequal sizes", 10, 50, rates_of(sharp, 10, 50, 1.0, experiments, draws),
            experiments);
  for (const double temperature : {0.9, 0.8, 0.6}) {
    for (const std::size_t n : {5U, 10U, 20U, 50U, 100U}) {
      const std::string what = fmt::format("temperature 1 and {}", temperature);
      print_row(what.c_str(), n, n, rates_of(usual, n, n, temperature, experiments, draws),
                experiments);
    }
  }
  print_family(20, 20, experiments, draws);
}

}  // namespace driftscope::bench
