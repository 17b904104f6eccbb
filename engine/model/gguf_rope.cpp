// SPDX-License-Identifier: Apache-2.0
#include "engine/model/gguf_rope.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "kernels/base/display_text.h"
#include "kernels/plan/portable_math.h"

namespace driftscope {
namespace {

using Kind = RopeScaling::Kind;

constexpr double kDefaultTheta = 10000.0;

// YaRN's factor on cos and sin.
double yarn_magnitude(double factor) {
  return factor > 1.0 ? 0.1 * portable::log(factor) + 1.0 : 1.0;
}

class RopeReader {
 public:
  RopeReader(const GgufSource& source, GgufFields& fields, const GgufArchitecture& architecture,
             ModelDescription& description)
      : m_source(source),
        m_fields(fields),
        m_architecture(architecture),
        m_description(description) {}

  void run() {
    read_width();
    if (!m_fields.good()) return;
    RopeScaling& scaling = m_description.rope_scaling;
    if (m_source.contains("rope_factors_long.weight")) return read_longrope(scaling);
    const std::string kind = scaling_kind();
    if (kind == "none" || kind.empty()) {
      if (m_source.contains("rope_freqs.weight")) read_divisors("rope_freqs.weight", scaling);
      return;
    }
    if (m_source.contains("rope_freqs.weight")) {
      return m_fields.refuse(
          fmt::format("rope scaling \"{}\" together with rope_freqs.weight is "
                      "not supported",
                      escape_for_display(kind)));
    }
    if (kind == "linear") return read_linear(scaling);
    if (kind == "yarn") return read_yarn(scaling);
    m_fields.refuse(
        fmt::format("{} \"{}\" is not supported; supported are none, linear, yarn and "
                    "longrope by its tensors",
                    key("scaling.type"), escape_for_display(kind)));
  }

 private:
  [[nodiscard]] std::string key(std::string_view suffix) const {
    return fmt::format("{}.rope.{}", m_architecture.name, suffix);
  }

  void read_width() {
    ModelDescription& d = m_description;
    d.rope_theta = m_fields.positive(key("freq_base"), kDefaultTheta);
    const std::int64_t width = m_fields.count(key("dimension_count"), d.head_dim);
    if (!m_fields.good() || width == d.head_dim) return;
    if (width > d.head_dim || width % 2 != 0 || m_architecture.paired_rows) {
      return m_fields.refuse(
          fmt::format("metadata {} is {} for heads of {} dimensions, which is "
                      "not supported",
                      key("dimension_count"), width, d.head_dim));
    }
    d.rotary_dim = width;
  }

  // The older spelling of linear scaling has a key of its own.
  std::string scaling_kind() {
    const bool older = m_fields.has(key("scale_linear"));
    return std::string(m_fields.text(key("scaling.type"), older ? "linear" : ""));
  }

  void read_linear(RopeScaling& scaling) {
    const std::string newer = key("scaling.factor");
    scaling.factor = m_fields.positive(m_fields.has(newer) ? newer : key("scale_linear"));
    scaling.kind = Kind::linear;
  }

  void read_yarn(RopeScaling& scaling) {
    scaling.kind = Kind::yarn;
    scaling.factor = m_fields.positive(key("scaling.factor"));
    scaling.original_max_positions =
        m_fields.count(key("scaling.original_context_length"), m_description.max_positions);
    // The runtime reads the two ends of the band for every architecture but llama.
    if (m_architecture.name != "llama") {
      scaling.beta_fast = m_fields.positive(key("scaling.yarn_beta_fast"), scaling.beta_fast);
      scaling.beta_slow = m_fields.positive(key("scaling.yarn_beta_slow"), scaling.beta_slow);
    }
    if (!m_fields.good()) return;
    scaling.attention_factor =
        m_fields.positive(key("scaling.attn_factor"), 1.0) * yarn_magnitude(scaling.factor);
  }

  void read_longrope(RopeScaling& scaling) {
    scaling.kind = Kind::longrope;
    scaling.original_max_positions =
        m_fields.count(key("scaling.original_context_length"), m_description.max_positions);
    scaling.attention_factor = m_fields.positive(key("scaling.attn_factor"), 1.0);
    // config.json gives these as decimals; read as the shortest ones, both forms are one model.
    scaling.short_divisors = divisors("rope_factors_short.weight", true);
    scaling.long_divisors = divisors("rope_factors_long.weight", true);
    if (m_fields.good()) {
      scaling.factor = static_cast<double>(m_description.max_positions) /
                       static_cast<double>(scaling.original_max_positions);
    }
  }

  void read_divisors(const std::string& name, RopeScaling& scaling) {
    scaling.kind = Kind::divisors;
    scaling.short_divisors = divisors(name, false);
  }

  std::vector<double> divisors(const std::string& name, bool decimal) {
    const auto view = m_source.find(name);
    if (!view) {
      m_fields.adopt(view.error());
      return {};
    }
    const std::int64_t pairs = m_description.rotated() / 2;
    if (view->elements() != pairs) {
      m_fields.refuse(fmt::format("tensor {} has {} divisors, {} pairs are rotated", name,
                                  view->elements(), pairs));
      return {};
    }
    std::vector<float> values(static_cast<std::size_t>(pairs));
    view->values(0, pairs, values.data());
    std::vector<double> result;
    for (const float value : values) {
      if (!std::isfinite(value) || value <= 0.0F) {
        m_fields.refuse(fmt::format("tensor {} holds {}; divisors are above 0", name, value));
        return {};
      }
      result.push_back(decimal ? shortest_decimal(value) : double{value});
    }
    return result;
  }

  const GgufSource& m_source;
  GgufFields& m_fields;
  const GgufArchitecture& m_architecture;
  ModelDescription& m_description;
};

}  // namespace

Result<void> read_gguf_rope(const GgufSource& source, GgufFields& fields,
                            const GgufArchitecture& architecture, ModelDescription& description) {
  RopeReader(source, fields, architecture, description).run();
  if (!fields.good()) return fields.failure();
  return {};
}

}  // namespace driftscope
