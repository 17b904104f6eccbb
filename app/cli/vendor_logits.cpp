// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_logits.h"

#include <nlohmann/json.hpp>

#include "analysis/compare/findings.h"
#include "analysis/responses/kld_statistics.h"

namespace driftscope::cli {
namespace {

using Json = nlohmann::ordered_json;

Json mean_json(const MeanAndError& value) {
  return {{"mean", json_number(value.mean)}, {"error", json_number(value.error)}};
}

Json spread_json(const Spread& s) {
  return {{"mean", mean_json(s.mean)},    {"max", json_number(s.maximum)},
          {"p99.9", json_number(s.p999)}, {"p99", json_number(s.p99)},
          {"p95", json_number(s.p95)},    {"p90", json_number(s.p90)},
          {"p75", json_number(s.p75)},    {"median", json_number(s.median)},
          {"p25", json_number(s.p25)},    {"p10", json_number(s.p10)},
          {"p5", json_number(s.p5)},      {"p1", json_number(s.p1)},
          {"p0.1", json_number(s.p01)},   {"min", json_number(s.minimum)}};
}

}  // namespace

Result<int> compare_logit_files(const VendorInput& base, const VendorInput& other, bool json,
                                CommandContext& context) {
  const auto a = read_kld_file(base.bytes(), base.name());
  if (!a) return tl::unexpected(a.error());
  const auto b = read_kld_file(other.bytes(), other.name());
  if (!b) return tl::unexpected(b.error());
  const auto s = compare_kld_files(*a, *b);
  if (!s) return tl::unexpected(s.error());
  const Json document{{"tokens", s->tokens},
                      {"perplexity_base", mean_json(s->perplexity_base)},
                      {"perplexity", mean_json(s->perplexity_other)},
                      {"log_ratio", mean_json(s->log_ratio)},
                      {"correlation", json_number(s->correlation)},
                      {"kld", spread_json(s->divergence)},
                      {"probability_change", spread_json(s->probability_change)},
                      {"rms_probability_change", mean_json(s->rms_probability_change)},
                      {"same_top", mean_json(s->same_top)}};
  auto printed = context.console.print(json ? document.dump(2) + "\n" : kld_text(*s));
  if (!printed) return tl::unexpected(printed.error());
  return 0;
}

}  // namespace driftscope::cli
