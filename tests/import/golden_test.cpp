// SPDX-License-Identifier: Apache-2.0
// Every row of the table of formats, every container and every trap has a small sample with the
// reading that is right; every public kind of mismatch has two answers with the verdict.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "analysis/import/formats.h"
#include "analysis/import/response_file.h"
#include "analysis/responses/response_compare.h"
#include "analysis/responses/response_documents.h"
#include "analysis/responses/response_lint.h"
#include "tests/import/golden_files.h"

namespace driftscope {
namespace {

using testing_golden::disagreement;
using testing_golden::file_text;
using testing_golden::golden_files;
using testing_golden::Json;
namespace fs = std::filesystem;

const fs::path kGolden = fs::path(DRIFTSCOPE_SOURCE_DIR) / "tests/import/golden";
const fs::path kPairs = fs::path(DRIFTSCOPE_SOURCE_DIR) / "tests/import/pairs";

struct Reading {
  std::vector<Response> responses;
  std::string error;
};

Reading read(const fs::path& path, const std::string& name) {
  auto read = read_responses(file_text(path), name);
  if (!read) return {.responses = {}, .error = read.error().message};
  for (Response& response : *read) grade_response(response);
  return {.responses = std::move(*read), .error = {}};
}

Json expected_of(const fs::path& path) {
  const Json json = Json::parse(file_text(path), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << path << " is no JSON";
  return json;
}

// {"responses": […]} or, for one alone, its fields; {"refused": "part of the line"}.
std::string check(const fs::path& path, std::vector<std::string>& formats) {
  const Json expected = expected_of(path.string() + ".expected.json");
  const Reading reading = read(path, path.filename().string());
  if (expected.contains("refused")) {
    const bool one_line = reading.error.find('\n') == std::string::npos;
    const bool said =
        reading.error.find(expected["refused"].get<std::string>()) != std::string::npos;
    return !reading.error.empty() && one_line && said ? "" : "refused: \"" + reading.error + "\"\n";
  }
  if (!reading.error.empty()) return reading.error + "\n";
  Json list = Json::array();
  for (const Response& response : reading.responses) {
    list.push_back(response_json(response, true));
    formats.push_back(response.format);
  }
  // What credentials the samples hold is called so.
  if (list.dump().find("SECRET") != std::string::npos) return "a credential is shown\n";
  const Json& wanted =
      expected.contains("responses") ? expected["responses"] : Json::array({expected});
  return disagreement(wanted, list, "responses");
}

TEST(Goldens, AreReadAsWrittenDown) {
  std::map<std::string, int> of_row;
  for (const fs::path& path : golden_files(kGolden)) {
    std::vector<std::string> formats;
    EXPECT_EQ(check(path, formats), "") << path;
    const std::string row = path.parent_path().filename();
    for (const std::string& format : formats) {
      const bool dialect = row == "openai" || row == format;
      if (dialect) ++of_row[row];
    }
  }
  for (const ResponseFormat& row : response_formats()) {
    EXPECT_GT(of_row[std::string(row.name)], 0) << row.name << ": a row without a golden";
  }
}

// NAME/a.* and NAME/b.* with expected.json.
TEST(Pairs, GetTheVerdictThatIsRight) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(kPairs)) {
    std::map<std::string, fs::path> sides;
    for (const auto& file : fs::directory_iterator(entry.path())) {
      sides[file.path().stem().string()] = file.path();
    }
    const Reading a = read(sides["a"], "a");
    const Reading b = read(sides["b"], "b");
    ASSERT_EQ(a.error + b.error, "") << entry.path();
    ASSERT_FALSE(a.responses.empty() || b.responses.empty()) << entry.path();
    const Json expected = expected_of(sides["expected"]);
    const Json actual = comparison_json(compare_responses(a.responses[0], 0, b.responses[0], 0));
    EXPECT_EQ(disagreement(expected, actual, ""), "") << entry.path();
    ++count;
  }
  EXPECT_GE(count, 15);
}

// samples/make_answers.py wrote them from a capture; the margins are differences of its logits, by
// h5py, and the answers have nine digits.
TEST(SampleAnswers, PartWhereTheirCaptureDoes) {
  const fs::path folder = fs::path(DRIFTSCOPE_SOURCE_DIR) / "samples/answers";
  const Reading a = read(folder / "alone.json", "a");
  const Reading b = read(folder / "among_seven.json", "b");
  ASSERT_EQ(a.error + b.error, "");
  const ResponseComparison c = compare_responses(a.responses.at(0), 0, b.responses.at(0), 0);
  ASSERT_TRUE(c.divergence);
  EXPECT_EQ(c.divergence->step, 46);
  EXPECT_EQ(c.divergence->text_a, " and");
  EXPECT_EQ(c.divergence->text_b, " saying");
  EXPECT_EQ(c.divergence->cause, ResponseCause::near_tie);
  ASSERT_TRUE(c.divergence->margin_a && c.divergence->margin_b);
  EXPECT_NEAR(*c.divergence->margin_a, 0.015034675598144531, 2e-8);
  EXPECT_NEAR(*c.divergence->margin_b, 0.0010538101196289062, 2e-8);
  EXPECT_TRUE(c.findings.empty());
}

}  // namespace
}  // namespace driftscope
