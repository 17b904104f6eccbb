// SPDX-License-Identifier: Apache-2.0
// Readers of logit files, Token-DiFR and reported figures: any bytes, every row. HDF5 is read by
// its library from a file and stays out.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "analysis/import/logits/logit_formats.h"
#include "analysis/import/logits/token_difr.h"
#include "analysis/responses/figure_rules.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace driftscope;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (is_token_difr(bytes)) static_cast<void>(read_token_difr(bytes, "fuzz"));
  if (const auto figures = read_reported_figures(bytes, "fuzz")) {
    static_cast<void>(judge_figures(*figures));
  }
  const LogitFormat* format = find_logit_format(bytes);
  if (format == nullptr || format->read == &logits::read_own_hdf5) return 0;
  auto file = read_logit_file({.bytes = bytes, .name = "fuzz", .path = {}});
  if (!file) return 0;
  constexpr std::int64_t kMostRows = 64;
  std::vector<float> row(static_cast<std::size_t>(file->vocabulary));
  for (std::int64_t i = 0; i < std::min(file->rows, kMostRows); ++i) {
    static_cast<void>(file->read(i, row));
  }
  return 0;
}
