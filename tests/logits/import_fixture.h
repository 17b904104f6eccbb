// SPDX-License-Identifier: Apache-2.0
// From files and answers to a capture to a comparison.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/capture/capture.h"
#include "analysis/import/logits/import_capture.h"
#include "analysis/import/logits/logit_formats.h"
#include "analysis/import/response_file.h"
#include "analysis/responses/response_lint.h"
#include "tests/logits/file_bytes.h"

namespace driftscope::test {

class Import : public testing::Test {
 protected:
  void SetUp() override {
    m_folder =
        std::filesystem::path(testing::TempDir()) /
        (std::string("import_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(m_folder);
    std::filesystem::create_directories(m_folder);
  }
  void TearDown() override { std::filesystem::remove_all(m_folder); }

  // The bytes live as long as the test.
  ImportSide side_of_file(std::string bytes) {
    m_bytes.push_back(std::make_unique<std::string>(std::move(bytes)));
    auto file = read_logit_file({.bytes = *m_bytes.back(), .name = "f", .path = {}});
    EXPECT_TRUE(file) << (file ? "" : file.error().message);
    return import_side(std::move(*file));
  }
  static ImportSide side_of_answer(const std::string& text) {
    auto responses = read_responses(text, "r");
    EXPECT_TRUE(responses) << (responses ? "" : responses.error().message);
    grade_response((*responses)[0]);
    auto side = import_side((*responses)[0], 0);
    EXPECT_TRUE(side) << (side ? "" : side.error().message);
    return std::move(*side);
  }
  std::filesystem::path write(const std::vector<ImportSide>& sides, const std::string& name) {
    const auto path = m_folder / name;
    const auto written = write_import(
        path, sides, {.created = "2026-01-01T00:00:00Z", .command = "driftscope import"});
    EXPECT_TRUE(written) << (written ? "" : written.error().message);
    return path;
  }
  static ComparisonPointer compare(const std::filesystem::path& path) {
    auto reader = CaptureReader::open(path);
    EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
    EXPECT_TRUE((*reader)->verify());
    auto comparison = compare_capture(**reader, {});
    EXPECT_TRUE(comparison) << (comparison ? "" : comparison.error().message);
    return *comparison;
  }
  static ComparisonPointer compare(const std::filesystem::path& a, const std::filesystem::path& b) {
    auto first = CaptureReader::open(a);
    auto second = CaptureReader::open(b);
    auto comparison = compare_captures(**first, **second, {});
    EXPECT_TRUE(comparison) << (comparison ? "" : comparison.error().message);
    return *comparison;
  }
  std::filesystem::path m_folder;
  std::vector<std::unique_ptr<std::string>> m_bytes;
};

inline const Finding* find(const Comparison& comparison, std::string_view id) {
  for (const Finding& finding : comparison.findings) {
    if (finding.id == id) return &finding;
  }
  return nullptr;
}

inline double at(const Comparison& comparison, std::size_t step, std::string_view metric) {
  return metric_value(comparison.steps[step]->metrics, metric);
}

inline std::optional<bool> holds(const Comparison& comparison, Tier tier) {
  for (const TierCheck& check : comparison.tiers) {
    if (check.tier == tier) return check.holds;
  }
  return std::nullopt;
}

struct Listed {
  std::string token;
  double logprob;
  std::vector<std::pair<std::string, double>> top;
};

inline std::string answer(const std::vector<Listed>& steps, const std::string& finish = "stop") {
  std::string content, list;
  for (const Listed& step : steps) {
    content += step.token;
    std::string top;
    for (const auto& [token, value] : step.top) {
      top += (top.empty() ? "" : ",") + ("{\"token\":\"" + token + "\",\"logprob\":") +
             std::to_string(value) + "}";
    }
    list += (list.empty() ? "" : ",") + ("{\"token\":\"" + step.token + "\",\"logprob\":") +
            std::to_string(step.logprob) + ",\"top_logprobs\":[" + top + "]}";
  }
  return R"({"id":"x","object":"chat.completion","created":0,"model":"m","choices":[{"index":0,)"
         R"("message":{"role":"assistant","content":")" +
         content + R"("},"logprobs":{"content":[)" + list + R"(]},"finish_reason":")" + finish +
         "\"}]}";
}

}  // namespace driftscope::test
