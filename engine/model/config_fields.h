// SPDX-License-Identifier: Apache-2.0
// Typed access to the keys of a JSON object. The first thing that is wrong is kept as the
// error; later reads then return fallbacks, so that a list of reads needs one check at its end.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace driftscope {

class ConfigFields {
 public:
  // `object` must outlive this; `name` begins the messages ("config.json").
  ConfigFields(const nlohmann::json& object, std::string name);

  // A key whose value is null counts as absent, as in the reference implementation.
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] bool contains(std::string_view key) const;  // also when its value is null
  [[nodiscard]] const nlohmann::json* find(std::string_view key) const;

  // Integers in [1, 2^31 - 1].
  std::int64_t count(std::string_view key);
  std::int64_t count(std::string_view key, std::int64_t fallback);
  std::int64_t whole(std::string_view key, std::int64_t fallback);  // in [0, 2^31 - 1]
  // Finite and greater than 0.
  double positive(std::string_view key);
  double positive(std::string_view key, double fallback);
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string_view fallback);

  void refuse(std::string_view what);    // message: "{name}: {what}"
  void adopt(const ConfigFields& part);  // takes over the error of a nested object, if any
  [[nodiscard]] bool good() const { return m_error.empty(); }
  [[nodiscard]] tl::unexpected<Error> failure() const;
  [[nodiscard]] const std::string& name() const { return m_name; }

 private:
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;
  void refuse_type(std::string_view key, std::string_view expected);
  const nlohmann::json& m_object;
  std::string m_name;
  std::string m_error;
};

// An integer in [0, highest], whatever the sign of the type that holds it.
[[nodiscard]] std::optional<std::int64_t> integer_in(const nlohmann::json& value,
                                                     std::int64_t highest);

// A value as it is shown in a message: shortened, on one line.
[[nodiscard]] std::string show_value(const nlohmann::json& value);

}  // namespace driftscope
