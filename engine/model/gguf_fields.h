// SPDX-License-Identifier: Apache-2.0
// Reads the metadata of a GGUF file by key and type; the first failure is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/gguf.h"

namespace driftscope {

// `absent`: what a key that is not there means; nothing where the key is needed.
class GgufFields {
 public:
  // `name` begins messages. The header and the file must outlive this.
  GgufFields(const GgufHeader& header, std::string name);

  [[nodiscard]] const std::string& name() const { return m_name; }
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  [[nodiscard]] const GgufValue* find(std::string_view key) const;

  // An integer from 1 on, of any integer type; a list (one per layer) must have one value only.
  [[nodiscard]] std::int64_t count(std::string_view key, std::optional<std::int64_t> absent = {});
  [[nodiscard]] std::int64_t whole(std::string_view key, std::optional<std::int64_t> absent = {});
  // A finite f32 or f64 above 0. An f32 is read as the shortest decimal that rounds to it: what
  // the converter was given (1e-05, not 9.99999974737875e-06).
  [[nodiscard]] double positive(std::string_view key, std::optional<double> absent = {});
  [[nodiscard]] bool flag(std::string_view key, bool absent);
  [[nodiscard]] std::string_view text(std::string_view key,
                                      std::optional<std::string_view> absent = {});
  // An id; nothing where the key is absent or says that there is none (the highest u32).
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view key);

  // Lists; empty where the key is absent.
  [[nodiscard]] std::vector<std::string_view> texts(std::string_view key);
  [[nodiscard]] std::vector<float> floats(std::string_view key);           // of f32 only
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key);  // booleans too

  // The first failure stays.
  void refuse(std::string reason);
  void adopt(Error error);  // whose message names the file itself
  [[nodiscard]] bool good() const { return !m_error; }
  [[nodiscard]] tl::unexpected<Error> failure() const { return tl::unexpected<Error>(*m_error); }

 private:
  const GgufValue* find_needed(std::string_view key, bool needed);
  void refuse_type(std::string_view key, const GgufValue& value, std::string_view expected);
  std::optional<std::int64_t> integer(std::string_view key, bool needed);

  const GgufHeader& m_header;
  std::string m_name;
  std::optional<Error> m_error;
};

// The decimal with the fewest digits that rounds to `value`.
[[nodiscard]] double shortest_decimal(float value);

}  // namespace driftscope
