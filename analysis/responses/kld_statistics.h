// SPDX-License-Identifier: Apache-2.0
// Two llama.cpp logit files of the same text: the statistics that llama.cpp prints of such a pair.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/import/kld_file.h"

namespace driftscope {

struct MeanAndError {
  double mean = 0.0;
  double error = 0.0;  // standard error, sqrt(variance / (n - 1)); 0 for 10 values and fewer
};

// Percentiles interpolate linearly between order statistics.
struct Spread {
  MeanAndError mean;
  double maximum = 0.0, p999 = 0.0, p99 = 0.0, p95 = 0.0, p90 = 0.0, p75 = 0.0, median = 0.0,
         p25 = 0.0, p10 = 0.0, p5 = 0.0, p1 = 0.0, p01 = 0.0, minimum = 0.0;
};

struct KldStatistics {
  std::int64_t tokens = 0;
  MeanAndError perplexity_base, perplexity_other;
  MeanAndError log_ratio;     // mean of ln(PPL(Q) / PPL(base))
  double correlation = 0.0;   // of ln(PPL(Q)) and ln(PPL(base)), per token
  Spread divergence;          // KLD, nats; slightly negative values are rounding of 16 bits
  Spread probability_change;  // of the scored token, Q minus base
  MeanAndError rms_probability_change;
  MeanAndError same_top;  // share of rows with the same most likely token
};

// Entries whose base log p is at or below `floor` are left out of the divergence; llama.cpp's is
// -16 below the row's largest logit, which is where its files end. Errors: malformed, when the
// files are of different texts or vocabularies.
[[nodiscard]] Result<KldStatistics> compare_kld_files(const KldFile& base, const KldFile& other);
[[nodiscard]] std::string kld_text(const KldStatistics& statistics);

}  // namespace driftscope
