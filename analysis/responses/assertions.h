// SPDX-License-Identifier: Apache-2.0
// What an answer must be to be of use: checks that people write down once and hold every answer
// against. A file of checks is a JSON object:
//   {"checks": [{"id": "total", "kind": "json_path_equals", "path": "$.total", "value": 12.5}, …]}
// Every check has an "id" of its own and a "kind" (check_kinds() lists them), and may have
//   "where"       content (default), reasoning or tool_calls (the arguments, as JSON text)
//   "tool"        with tool_calls: of calls with this name only
//   "custom_ids"  list: only answers to these lines of a batch; others are not applicable
//   "fenced"      true: the JSON is in the first ``` block of the text
//   "negate"      true: what a text kind looks for must not be there
//   "min_rate"    share of the answers that must pass, 1 where not given
// Kinds that begin with pair_ look at the two answers of a pair.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/responses/json_path.h"
#include "analysis/responses/json_schema.h"
#include "analysis/responses/response_set.h"
#include "analysis/responses/text_pattern.h"
#include "kernels/base/result.h"

namespace driftscope {

enum class CheckOutcome : std::uint8_t { passed, failed, not_applicable };
[[nodiscard]] std::string_view name_of(CheckOutcome outcome);

struct CheckResult {
  CheckOutcome outcome = CheckOutcome::not_applicable;
  std::string place;   // "content", "tool call 0", "content at $.total"
  std::string reason;  // why it failed or does not apply
};

enum class AnswerPart : std::uint8_t { content, reasoning, tool_calls };
[[nodiscard]] std::string_view name_of(AnswerPart part);

struct Assertion;

struct CheckKind {
  std::string_view name;
  std::string_view members;  // that it takes, separated by spaces; a "?" behind: may be missing
  std::string_view meaning;
  // Exactly one is set. `text`: the whole text of the part.
  CheckResult (*text)(const Assertion&, const std::string& text) = nullptr;
  CheckResult (*json)(const Assertion&, const nlohmann::json& value) = nullptr;
  CheckResult (*answer)(const Assertion&, const ResponseChoice&) = nullptr;
  CheckResult (*text_pair)(const Assertion&, const std::string& a, const std::string& b) = nullptr;
  CheckResult (*json_pair)(const Assertion&, const nlohmann::json& a,
                           const nlohmann::json& b) = nullptr;
  bool negatable = false;
  [[nodiscard]] bool of_pairs() const { return text_pair != nullptr || json_pair != nullptr; }
};
[[nodiscard]] std::span<const CheckKind> check_kinds();

// One check as read; which members mean something depends on its kind.
struct Assertion {
  std::string id;
  const CheckKind* kind = nullptr;
  AnswerPart where = AnswerPart::content;
  std::optional<std::string> tool = {};
  std::vector<std::string> custom_ids = {};
  bool fenced = false;
  bool negate = false;
  double min_rate = 1.0;

  std::string text = {};
  std::optional<TextPattern> pattern = {};
  std::optional<JsonSchema> schema = {};
  std::vector<JsonPath> paths = {};
  std::shared_ptr<const nlohmann::json> value = {};
  double tolerance = 0.0;
  std::string pick = "any";  // which number of a text: any, first, last, only
  std::optional<double> minimum = {}, maximum = {};
};

// Errors: malformed, with the check and the member: no JSON, unknown kinds and members, an id given
// twice, schemas, patterns and paths that cannot be read.
[[nodiscard]] Result<std::vector<Assertion>> read_assertions(std::string_view text,
                                                             std::string_view name);

// `assertion` is not of pairs.
[[nodiscard]] CheckResult check_answer(const Assertion& assertion, const Answer& answer);
// `assertion` is of pairs.
[[nodiscard]] CheckResult check_pair(const Assertion& assertion, const Answer& a, const Answer& b);

}  // namespace driftscope
