// SPDX-License-Identifier: Apache-2.0
#include "engine/model/rope_description.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "engine/model/rope_scaling.h"

namespace driftscope {
namespace {

// One group of keys, and the theta it holds.
struct Rope {
  RopeScaling scaling;
  std::optional<double> theta;
};

class RopeReader {
 public:
  RopeReader(ConfigFields& fields, const Architecture& architecture, ModelDescription& description)
      : m_fields(fields), m_architecture(architecture), m_description(description) {}

  void run() {
    m_older = object("rope_scaling");
    m_newer = object("rope_parameters");
    if (!m_fields.good()) return;
    read_rotary_dim();
    if (m_newer != nullptr && is_per_layer_type(*m_newer)) {
      read_per_layer_type();
    } else {
      read_flat();
    }
  }

 private:
  const nlohmann::json* object(std::string_view key) {
    const auto* value = m_fields.find(key);
    if (value == nullptr || value->is_object()) return value;
    m_fields.refuse(fmt::format("{} is {}; it must be an object or null", key, show_value(*value)));
    return nullptr;
  }

  static bool is_per_layer_type(const nlohmann::json& group) {
    return group.contains("full_attention") || group.contains("sliding_attention");
  }

  void read_rotary_dim() {
    double factor = m_fields.positive("partial_rotary_factor", 1.0);
    if (m_newer != nullptr) {
      ConfigFields group(*m_newer, m_fields.name() + ": rope_parameters");
      const double newer = group.positive("partial_rotary_factor", factor);
      if (m_fields.has("partial_rotary_factor") && newer != factor) {
        m_fields.refuse(
            "partial_rotary_factor and rope_parameters.partial_rotary_factor differ; "
            "keep one of them");
      }
      factor = newer;
      m_fields.adopt(group);
    }
    if (factor == 1.0 || !m_fields.good()) return;
    const double product = static_cast<double>(m_description.head_dim) * factor;
    if (!m_architecture.partial_rotary) {
      m_fields.refuse(fmt::format("partial_rotary_factor other than 1 is not supported for {}",
                                  m_architecture.model_type));
    } else if (product < 2.0 || factor > 1.0 || static_cast<std::int64_t>(product) % 2 != 0) {
      m_fields.refuse(
          fmt::format("partial_rotary_factor {} of head_dim {} does not give an even "
                      "number of dimensions from 2 to head_dim; fix the checkpoint",
                      factor, m_description.head_dim));
    } else {
      m_description.rotary_dim = static_cast<std::int64_t>(product);
    }
  }

  // `theta`: where the group holds none.
  Rope read_group(const nlohmann::json& group, const std::string& name, double theta) {
    ConfigFields keys(group, fmt::format("{}: {}", m_fields.name(), name));
    Rope rope;
    if (keys.has("rope_theta")) rope.theta = keys.positive("rope_theta");
    rope.scaling =
        read_rope_scaling(keys, {.theta = rope.theta.value_or(theta),
                                 .rotated = m_description.rotated(),
                                 .max_positions = m_description.max_positions,
                                 .original_max_positions = m_fields.whole(
                                     "original_max_position_embeddings", std::int64_t{0}),
                                 .su_is_longrope = m_architecture.partial_rotary});
    m_fields.adopt(keys);
    return rope;
  }

  void set_theta(std::optional<double> newer) {
    const double older = m_fields.positive("rope_theta", m_architecture.default_theta);
    m_description.rope_theta = newer.value_or(older);
    if (newer && m_fields.has("rope_theta") && *newer != older) {
      m_fields.refuse(
          fmt::format("rope_theta {} and rope_parameters.rope_theta {} differ; keep one of them",
                      older, *newer));
    }
  }

  void check_same(const RopeScaling& newer, double theta) {
    if (m_older == nullptr || !m_fields.good()) return;
    const Rope older = read_group(*m_older, "rope_scaling", theta);
    if (m_fields.good() && !(older.scaling == newer)) {
      m_fields.refuse("rope_scaling and rope_parameters differ; keep one of them");
    }
  }

  void read_flat() {
    const double theta = m_fields.positive("rope_theta", m_architecture.default_theta);
    if (m_newer != nullptr) {
      const Rope rope = read_group(*m_newer, "rope_parameters", theta);
      m_description.rope_scaling = rope.scaling;
      set_theta(rope.theta);
      check_same(rope.scaling, m_description.rope_theta);
    } else {
      if (m_older != nullptr) {
        m_description.rope_scaling = read_group(*m_older, "rope_scaling", theta).scaling;
      } else if (m_architecture.needs_scaling && !m_fields.contains("rope_scaling")) {
        m_fields.refuse("rope_scaling is missing; null stands for none");
      }
      m_description.rope_theta = theta;
    }
    if (m_architecture.default_local_theta > 0.0) {
      set_local({.scaling = {}, .theta = local_theta()});
    }
  }

  double local_theta() {
    return m_fields.positive("rope_local_base_freq", m_architecture.default_local_theta > 0.0
                                                         ? m_architecture.default_local_theta
                                                         : m_description.rope_theta);
  }

  // The same angles in all layers need no second set.
  void set_local(const Rope& rope) {
    const double theta = rope.theta.value_or(local_theta());
    if (theta == m_description.rope_theta && rope.scaling == m_description.rope_scaling) return;
    m_description.local_rope_theta = theta;
    m_description.local_rope_scaling = rope.scaling;
  }

  void read_per_layer_type() {
    ConfigFields group(*m_newer, m_fields.name() + ": rope_parameters");
    const auto part = [&](const char* key) -> const nlohmann::json* {
      const auto* value = group.find(key);
      if (value != nullptr && value->is_object()) return value;
      group.refuse(value == nullptr
                       ? fmt::format("{} is missing; give it for both layer types", key)
                       : fmt::format("{} is {}; it must be an object", key, show_value(*value)));
      return nullptr;
    };
    const auto* full = part("full_attention");
    const auto* sliding = part("sliding_attention");
    m_fields.adopt(group);
    if (!m_fields.good()) return;
    const Rope global =
        read_group(*full, "rope_parameters: full_attention", m_architecture.default_theta);
    m_description.rope_scaling = global.scaling;
    set_theta(global.theta);
    check_same(global.scaling, m_description.rope_theta);
    const Rope local = read_group(*sliding, "rope_parameters: sliding_attention", local_theta());
    set_local(local);
    if (local.theta && m_fields.has("rope_local_base_freq") && *local.theta != local_theta()) {
      m_fields.refuse(
          "rope_local_base_freq and rope_parameters.sliding_attention.rope_theta "
          "differ; keep one of them");
    }
  }

  ConfigFields& m_fields;
  const Architecture& m_architecture;
  ModelDescription& m_description;
  const nlohmann::json* m_older = nullptr;
  const nlohmann::json* m_newer = nullptr;
};

}  // namespace

void read_rope(ConfigFields& fields, const Architecture& architecture,
               ModelDescription& description) {
  if (!fields.good() || description.learned_positions) return;
  RopeReader(fields, architecture, description).run();
}

}  // namespace driftscope
