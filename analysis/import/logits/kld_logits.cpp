// SPDX-License-Identifier: Apache-2.0
// llama.cpp's --kl-divergence-base files as rows of log probabilities.
#include <fmt/format.h>

#include "analysis/import/kld_file.h"
#include "analysis/import/logits/logit_formats.h"

namespace driftscope::logits {

bool is_kld(std::string_view bytes) { return is_kld_file(bytes); }

Result<LogitFile> read_kld(const LogitSource& source) {
  auto read = read_kld_file(source.bytes, source.name);
  if (!read) return tl::unexpected<Error>(read.error());
  const auto kld = std::make_shared<const KldFile>(std::move(*read));
  LogitFile file;
  file.element = "u16 codes";
  file.values = "log_probability";
  file.rows = kld->rows();
  file.vocabulary = kld->vocabulary;
  if (file.rows > kMostLogitRows || file.vocabulary > kMostLogitColumns) {
    return broken_file(source,
                       fmt::format("{} rows of {} are too many", file.rows, file.vocabulary));
  }
  for (std::int64_t row = 0; row < file.rows; ++row) file.tokens.push_back(kld->scored_token(row));
  file.facts = {{"context", std::to_string(kld->context)},
                {"chunks", std::to_string(kld->chunks)},
                {"rows_of_chunk", std::to_string(kld->rows_of_chunk())}};
  file.findings.push_back(
      {"coded_values",
       "log probabilities are codes of 16 bits between each row's floor and its "
       "maximum: values below the floor (about 16 nats under the best) are cut off, "
       "and equal logits can differ by a code"});
  file.read = [kld](std::int64_t row, std::span<float> target) -> Result<void> {
    kld->log_probabilities(row, target);
    return {};
  };
  return file;
}

}  // namespace driftscope::logits
