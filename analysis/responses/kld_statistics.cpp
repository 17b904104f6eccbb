// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/kld_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/compare/statistics.h"

namespace driftscope {
namespace {

// Entries with a base log p at or below this are not part of the sum (llama.cpp).
constexpr float kFloor = -16.0F;

MeanAndError mean_and_error(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0.0;
  double squares = 0.0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  MeanAndError result{.mean = sum / n};
  const double variance = squares / n - result.mean * result.mean;
  if (values.size() > 10 && variance > 0.0) result.error = std::sqrt(variance / (n - 1.0));
  return result;
}

Spread spread(std::vector<double> values) {
  Spread result;
  result.mean = mean_and_error(values);
  std::sort(values.begin(), values.end());
  const auto at = [&](double fraction) { return percentile(values, fraction); };
  result.maximum = values.back();
  result.minimum = values.front();
  result.p999 = at(0.999);
  result.p99 = at(0.99);
  result.p95 = at(0.95);
  result.p90 = at(0.90);
  result.p75 = at(0.75);
  result.median = at(0.5);
  result.p25 = at(0.25);
  result.p10 = at(0.10);
  result.p5 = at(0.05);
  result.p1 = at(0.01);
  result.p01 = at(0.001);
  return result;
}

MeanAndError perplexity(const std::vector<double>& losses) {
  const MeanAndError mean = mean_and_error(losses);
  const double value = std::exp(mean.mean);
  return {.mean = value, .error = value * mean.error};
}

struct Columns {
  std::vector<double> loss_base, loss_other, divergence, change, squared_change, same;
};

void add_row(const KldFile& base, const KldFile& other, std::int64_t row, std::vector<float>& p,
             std::vector<float>& q, Columns& columns) {
  base.log_probabilities(row, p);
  other.log_probabilities(row, q);
  double divergence = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] <= kFloor) continue;
    divergence += std::exp(double{p[i]}) * (double{p[i]} - double{q[i]});
  }
  const auto token = static_cast<std::size_t>(base.scored_token(row));
  const double change = std::exp(double{q[token]}) - std::exp(double{p[token]});
  const auto top_p = std::max_element(p.begin(), p.end()) - p.begin();
  const auto top_q = std::max_element(q.begin(), q.end()) - q.begin();
  columns.loss_base.push_back(-double{p[token]});
  columns.loss_other.push_back(-double{q[token]});
  columns.divergence.push_back(divergence);
  columns.change.push_back(change);
  columns.squared_change.push_back(change * change);
  columns.same.push_back(top_p == top_q ? 1.0 : 0.0);
}

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const double mean_x = mean_and_error(x).mean;
  const double mean_y = mean_and_error(y).mean;
  double xx = 0.0, yy = 0.0, xy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return xy / std::sqrt(xx * yy);
}

}  // namespace

Result<KldStatistics> compare_kld_files(const KldFile& base, const KldFile& other) {
  if (base.vocabulary != other.vocabulary || base.context != other.context ||
      base.tokens != other.tokens) {
    return fail(ErrorKind::malformed,
                "the two logit files are of different texts, contexts or vocabularies; make both "
                "with the same text and context");
  }
  Columns columns;
  std::vector<float> p(static_cast<std::size_t>(base.vocabulary));
  std::vector<float> q(p.size());
  for (std::int64_t row = 0; row < base.rows(); ++row) add_row(base, other, row, p, q, columns);
  KldStatistics result;
  result.tokens = base.rows();
  result.perplexity_base = perplexity(columns.loss_base);
  result.perplexity_other = perplexity(columns.loss_other);
  std::vector<double> ratios(columns.loss_base.size());
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    ratios[i] = columns.loss_other[i] - columns.loss_base[i];
  }
  result.log_ratio = mean_and_error(ratios);
  result.correlation = correlation(columns.loss_base, columns.loss_other);
  result.divergence = spread(columns.divergence);
  result.probability_change = spread(columns.change);
  const MeanAndError squares = mean_and_error(columns.squared_change);
  const double rms = std::sqrt(squares.mean);
  result.rms_probability_change = {.mean = rms,
                                   .error = rms > 0.0 ? 0.5 * squares.error / rms : 0.0};
  const double same = mean_and_error(columns.same).mean;
  const auto n = static_cast<double>(columns.same.size());
  result.same_top = {.mean = same,
                     .error = n > 1 ? std::sqrt(same * (1.0 - same) / (n - 1.0)) : 0.0};
  return result;
}

std::string kld_text(const KldStatistics& s) {
  std::string out = fmt::format(
      "{} scored tokens\n"
      "  PPL(Q) {:.6f} ± {:.6f}, PPL(base) {:.6f} ± {:.6f}, ln ratio {:.6f} ± {:.6f}, correlation "
      "{:.2f}%\n"
      "  same top token {:.3f} ± {:.3f} %, RMS Δp {:.3f} ± {:.3f} %\n",
      s.tokens, s.perplexity_other.mean, s.perplexity_other.error, s.perplexity_base.mean,
      s.perplexity_base.error, s.log_ratio.mean, s.log_ratio.error, 100.0 * s.correlation,
      100.0 * s.same_top.mean, 100.0 * s.same_top.error, 100.0 * s.rms_probability_change.mean,
      100.0 * s.rms_probability_change.error);
  const auto line = [&](std::string_view name, const Spread& v, double unit) {
    out += fmt::format(
        "  {:<4} mean {:.6f} ± {:.6f}, max {:.6f}, 99.9% {:.6f}, 99% {:.6f}, 95% {:.6f}, 90% "
        "{:.6f}, "
        "75% {:.6f}, median {:.6f}, 25% {:.6f}, 10% {:.6f}, 5% {:.6f}, 1% {:.6f}, 0.1% {:.6f}, min "
        "{:.6f}\n",
        name, unit * v.mean.mean, unit * v.mean.error, unit * v.maximum, unit * v.p999,
        unit * v.p99, unit * v.p95, unit * v.p90, unit * v.p75, unit * v.median, unit * v.p25,
        unit * v.p10, unit * v.p5, unit * v.p1, unit * v.p01, unit * v.minimum);
  };
  line("KLD", s.divergence, 1.0);
  line("Δp %", s.probability_change, 100.0);
  return out;
}

}  // namespace driftscope
