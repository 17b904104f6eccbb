// SPDX-License-Identifier: Apache-2.0
// What is found in a text of reported figures.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/responses/figure_rules.h"

namespace driftscope {

inline std::vector<Finding> judge(const std::string& text) {
  const auto figures = read_reported_figures(text, "f");
  EXPECT_TRUE(figures) << (figures ? "" : figures.error().message);
  return figures ? judge_figures(*figures) : std::vector<Finding>();
}

// A copy: the findings may be a temporary.
inline std::optional<Finding> find(const std::vector<Finding>& findings, std::string_view id) {
  for (const Finding& finding : findings) {
    if (finding.id == id) return finding;
  }
  return std::nullopt;
}

#define EXPECT_TELLS(findings, id, part)                \
  do {                                                  \
    const auto found = find(findings, id);              \
    ASSERT_TRUE(found) << (id);                         \
    EXPECT_THAT(found->text, testing::HasSubstr(part)); \
  } while (false)

inline nlohmann::json evidence(const std::vector<Finding>& findings, std::string_view id) {
  const auto found = find(findings, id);
  return found ? nlohmann::json::parse(found->evidence) : nlohmann::json();
}

}  // namespace driftscope
