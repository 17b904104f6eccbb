// SPDX-License-Identifier: Apache-2.0
// A Jinja interpreter for what published chat templates use, with the settings that they are
// rendered with (trim_blocks, lstrip_blocks, an immutable sandbox, no automatic escaping).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace driftscope::jinja {

// Nothing in a template can cost more than this.
struct Limits {
  std::uint64_t steps = 20'000'000;  // evaluated nodes, and 32 bytes of text or one item as one
  std::size_t output_bytes = std::size_t{16} << 20U;
  int depth = 600;  // of statements, expressions and macro calls inside each other
};

// The clock of strftime_now stands still at midnight of this day.
struct Date {
  int year = 2024;
  int month = 7;
  int day = 26;
  [[nodiscard]] std::string text() const;  // 2024-07-26
  // "YYYY-MM-DD". Errors: usage.
  [[nodiscard]] static Result<Date> parse(std::string_view text);
  friend bool operator==(const Date&, const Date&) = default;
};

struct Rendered {
  std::string text;
  bool date_used = false;  // strftime_now was called
};

class Template {
 public:
  // `name` begins the messages. Errors: malformed, with the line.
  [[nodiscard]] static Result<Template> parse(std::string_view source, std::string name);
  // `context` is an object: the names that the template sees. Errors: malformed, with the line;
  // what raise_exception says is quoted.
  [[nodiscard]] Result<Rendered> render(const nlohmann::ordered_json& context, const Date& date,
                                        const Limits& limits = {}) const;

  struct Program;

 private:
  explicit Template(std::shared_ptr<const Program> program) : m_program(std::move(program)) {}
  std::shared_ptr<const Program> m_program;
};

}  // namespace driftscope::jinja
