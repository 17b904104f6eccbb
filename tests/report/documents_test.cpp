// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/report/events.h"
#include "tests/report/sample_comparison.h"
#include "tests/report/schema_check.h"

namespace driftscope {
namespace {

using ::testing::HasSubstr;
using testing::load_schema;
using ::testing::Not;
using testing::schema_problem;
using Json = nlohmann::json;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        cells.back() += line[i++];
      } else {
        quoted = !quoted;
      }
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

std::string cell(const std::vector<std::string>& heads, const std::vector<std::string>& cells,
                 const std::string& head) {
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (heads[i] == head) return cells.at(i);
  }
  return "no column " + head;
}

TEST(CompareDocument, SaysWhatTheComparisonHolds) {
  const Comparison comparison = testing::handmade_comparison();
  const Json json = Json::parse(compare_document(comparison, {}));
  EXPECT_EQ(schema_problem(load_schema("compare.schema.json"), json), "");
  EXPECT_EQ(json["verdict"], "different");
  EXPECT_EQ(json["steps"], 2);
  EXPECT_EQ(json["tokens_equal"], 1);
  EXPECT_EQ(json["first_divergence"]["step"], 1);
  EXPECT_EQ(json["first_divergence"]["token_a"], 2);
  EXPECT_EQ(json["first_divergence"]["token_b"], 3);
  EXPECT_EQ(json["first_divergence"]["text_a"], "=\"x\"");
  EXPECT_EQ(json["first_divergence"]["text_b"], Json({{"bytes", "c3"}}));
  EXPECT_EQ(json["first_divergence"]["margin_a"], 0.25);
  EXPECT_EQ(json["first_divergence"]["margin_b"], 0.125);
  EXPECT_EQ(json["first_divergence"]["cause"], "near_tie");
  EXPECT_TRUE(json["first_flip"].is_null());
  EXPECT_EQ(json["rank_flips"]["count"], 1);
  EXPECT_EQ(json["rank_flips"]["worst"]["step"], 1);
  EXPECT_EQ(json["rank_flips"]["worst"]["gap_a"], 0.25);
  EXPECT_EQ(json["envelope_diff"][0]["field"], "knob.kv_dtype");
  EXPECT_EQ(json["findings"][0]["evidence"]["step"], 1);
  EXPECT_EQ(json["control"]["bits_equal"], true);
  EXPECT_EQ(json["tiers"][0]["holds"], false);
  EXPECT_TRUE(json["tiers"][1]["holds"].is_null());
  EXPECT_FALSE(json.contains("per_step"));
}

TEST(CompareDocument, WritesEveryStepWhenAsked) {
  const Comparison comparison = testing::handmade_comparison();
  const Json json = Json::parse(compare_document(comparison, {.per_step = true}));
  EXPECT_EQ(schema_problem(load_schema("compare.schema.json"), json), "");
  ASSERT_EQ(json["per_step"].size(), 2U);
  const Json& step = json["per_step"][1];
  EXPECT_EQ(step["metrics"]["max_abs"], 0.25);
  EXPECT_EQ(step["metrics"]["kl_ab"], "NaN");
  EXPECT_EQ(step["metrics"]["headroom"], "Infinity");
  EXPECT_EQ(step["top_a"], Json::parse("[[2, 1.5], [3, 1.25]]"));
  EXPECT_EQ(step["flipped"], true);
}

TEST(CompareDocument, OfRealRowsFollowsTheSchema) {
  const auto builder = testing::built_sample({}, {});
  const auto comparison = builder->snapshot(TraceState::complete);
  const Json json = Json::parse(compare_document(*comparison, {.per_step = true}));
  EXPECT_EQ(schema_problem(load_schema("compare.schema.json"), json), "");
  EXPECT_EQ(json["first_divergence"]["step"], 4);
  EXPECT_EQ(json["taps"].size(), 4U);
  EXPECT_EQ(json["taps"][0]["first_step"], 2);  // the sample's B differs from step 2 on
}

TEST(JsonlDocument, IsASummaryAndOneLinePerStep) {
  const Comparison comparison = testing::handmade_comparison();
  const auto lines = lines_of(jsonl_document(comparison));
  ASSERT_EQ(lines.size(), 3U);
  const Json schema = load_schema("export.jsonl.schema.json");
  for (const std::string& line : lines) EXPECT_EQ(schema_problem(schema, Json::parse(line)), "");
  EXPECT_EQ(Json::parse(lines[0])["kind"], "comparison");
  EXPECT_EQ(Json::parse(lines[2])["step"], 1);
}

TEST(EventLines, FollowTheSchema) {
  const Json schema = load_schema("event.schema.json");
  const auto builder = testing::built_sample({}, {});
  const auto comparison = builder->snapshot(TraceState::complete);
  const ExperimentFacts facts = testing::sample_facts({});
  std::vector<std::string> lines{
      started_event(facts, {}),
      progress_event("decode", 1, 2),
      step_event(*comparison->steps[1], builder->tap_values(1), facts.piece),
      step_event(*testing::handmade_comparison().steps[1], {}, {}),
      done_event(*comparison, "x.h5", 0),
      done_event(testing::handmade_comparison(), "x.h5", 1),
      error_event({.kind = ErrorKind::engine, .message = "m", .detail = "\xFF"})};
  for (const Finding& finding : comparison->findings) lines.push_back(finding_event(finding));
  const std::map<std::string, std::string> names{
      {"started", "started"},       {"progress", "progress"}, {"step", "step_event"},
      {"finding", "finding_event"}, {"done", "done"},         {"error", "error"}};
  for (const std::string& line : lines) {
    // The alternative that the name asks for, so that a failure says what is wrong with it.
    Json one = schema;
    one.erase("anyOf");
    one["$ref"] = "#/$defs/" + names.at(Json::parse(line)["event"]);
    EXPECT_EQ(schema_problem(one, Json::parse(line)), "") << line.substr(0, 200);
    EXPECT_EQ(schema_problem(schema, Json::parse(line)), "");
  }
  EXPECT_NE(schema_problem(schema, Json::parse(R"({"event":"step","step":0})")), "");
}

TEST(CsvDocument, HasOneRowPerStepWithUnits) {
  const auto lines = lines_of(csv_document(testing::handmade_comparison()));
  ASSERT_EQ(lines.size(), 3U);
  const auto heads = split_csv(lines[0]);
  const auto cells = split_csv(lines[2]);
  EXPECT_EQ(heads.size(), 8 + metric_registry().size());
  EXPECT_EQ(cells.size(), heads.size());
  // The front of the row as it stands, quotes doubled; a byte that is no text is shown as \xc3.
  EXPECT_EQ(lines[2].substr(0, lines[2].find(",0.25")), R"csv(1,2,"=""x""",3,"\xc3",3,1,3)csv");
  EXPECT_EQ(cell(heads, cells, "max_abs [logit]"), "0.25");
  EXPECT_EQ(cell(heads, cells, "rms [logit]"), "0.1");
  EXPECT_EQ(cell(heads, cells, "max_ulp [ulp]"), "3");
  EXPECT_EQ(cell(heads, cells, "kl_ab [nat]"), "NaN");
  EXPECT_EQ(cell(heads, cells, "headroom"), "Infinity");
}

TEST(Numbers, ReadBackToTheSameBits) {
  Comparison comparison = testing::handmade_comparison();
  const std::vector<double> values{0.1,  1.0 / 3.0,   5e-324, 1.7976931348623157e308,
                                   -0.0, 123456789.0, 1e22,   2.2250738585072014e-308};
  for (const double value : values) {
    auto step = std::make_shared<StepComparison>(*comparison.steps[1]);
    step->metrics.values[0] = value;
    comparison.steps[1] = step;
    const Json json = Json::parse(compare_document(comparison, {.per_step = true}));
    const double read = json["per_step"][1]["metrics"]["max_abs"].get<double>();
    EXPECT_EQ(read, value);
    EXPECT_EQ(std::signbit(read), std::signbit(value)) << value;
    const auto lines = lines_of(csv_document(comparison));
    const std::string text = cell(split_csv(lines[0]), split_csv(lines[2]), "max_abs [logit]");
    EXPECT_EQ(std::strtod(text.c_str(), nullptr), value);
  }
}

TEST(Documents, DoNotDependOnTheLocale) {
  const Comparison comparison = testing::handmade_comparison();
  const std::string json = compare_document(comparison, {.per_step = true});
  const std::string csv = csv_document(comparison);
  const std::string html = html_document(comparison, {});
  const char* changed = std::setlocale(LC_ALL, "de_DE.UTF-8");
  if (changed == nullptr) changed = std::setlocale(LC_ALL, "fr_FR.UTF-8");
  if (changed == nullptr) GTEST_SKIP() << "no locale with a decimal comma is installed";
  EXPECT_EQ(compare_document(comparison, {.per_step = true}), json);
  EXPECT_EQ(csv_document(comparison), csv);
  EXPECT_EQ(html_document(comparison, {}), html);
  std::setlocale(LC_ALL, "C");
}

TEST(HtmlDocument, IsOnePageWithEveryTextEscaped) {
  const ReportImage image{.title = "Plot <1>", .png = std::string("\x89PNG\0", 5)};
  const std::string html = html_document(testing::handmade_comparison(), {&image, 1});
  EXPECT_THAT(html, ::testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(html, HasSubstr("The runs part at step 1 &amp; stay apart."));
  EXPECT_THAT(html, HasSubstr("step 1: &quot;=x&quot; &lt;against&gt; y"));
  EXPECT_THAT(html, HasSubstr("driftscope run --prompt &#39;&lt;script&gt;&#39;"));
  EXPECT_THAT(html, HasSubstr("&lt;bf16&gt;"));
  EXPECT_THAT(html, HasSubstr("src=\"data:image/png;base64,iVBORwA=\""));
  EXPECT_THAT(html, HasSubstr("<span class=\"parted\" title=\"step 1, id 3\">\\xc3</span>"));
  for (const char* forbidden : {"<script", "<model>", "<bf16>", "http://", "https://", "<tie>"}) {
    std::string rest = html;
    // The name space of SVG is a name, not a place.
    for (std::size_t at = 0; (at = rest.find("http://www.w3.org/2000/svg")) != std::string::npos;) {
      rest.erase(at, 26);
    }
    EXPECT_THAT(rest, Not(HasSubstr(forbidden)));
  }
}

// A divergence that is the first flip as well: its table and its reason stand on the page once.
TEST(HtmlDocument, SaysAReasonOnce) {
  Comparison comparison = testing::handmade_comparison();
  comparison.first_divergence->reason = "near-tie: margin 0.25";
  comparison.first_flip = comparison.first_divergence;
  comparison.findings = {{.id = "first_divergence",
                          .severity = Severity::notice,
                          .text = "The texts part at step 1. near-tie: margin 0.25",
                          .evidence = "{}"}};
  const auto count = [](std::string_view text, std::string_view word) {
    int found = 0;
    for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
    return found;
  };
  std::string html = html_document(comparison, {});
  EXPECT_EQ(count(html, "near-tie: margin 0.25"), 1);
  EXPECT_THAT(html, HasSubstr("The same step, 1, with the same tokens."));
  EXPECT_THAT(html, HasSubstr("The texts part at step 1.</li>"));
  comparison.first_flip->step = 0;
  html = html_document(comparison, {});
  EXPECT_EQ(count(html, "<td>because</td>"), 2);
  // Labels never break inside a word.
  EXPECT_THAT(html, HasSubstr("td:first-child{white-space:nowrap}"));
}

TEST(HtmlDocument, HoldsForEmptyAndOddRuns) {
  EXPECT_THAT(html_document(Comparison{}, {}), HasSubstr("</html>"));
  const auto builder = testing::built_sample({}, {});
  const std::string html = html_document(*builder->snapshot(TraceState::complete), {});
  EXPECT_THAT(html, HasSubstr("Relative difference of each tap"));
  // No number that is not one got into a drawing.
  EXPECT_THAT(html, Not(HasSubstr("nan\"")));
  EXPECT_THAT(html, Not(HasSubstr("Mnan")));
  EXPECT_THAT(html, Not(HasSubstr("inf ")));
}

TEST(InspectDocument, FollowsTheSchema) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(testing::write_sample(folder / "c.h5", {}, {}, TraceState::complete));
  const auto reader = CaptureReader::open(folder / "c.h5");
  ASSERT_TRUE(reader);
  const auto document = inspect_document(**reader, 4);
  ASSERT_TRUE(document) << document.error().message;
  const Json json = Json::parse(*document);
  EXPECT_EQ(schema_problem(load_schema("inspect.schema.json"), json), "");
  EXPECT_EQ(json["lanes"].size(), 4U);
  EXPECT_EQ(json["lanes"][0]["steps_complete"], 6);
  EXPECT_EQ(json["at_step"]["lanes"][1]["lane"], "b");
  EXPECT_EQ(json["at_step"]["lanes"][1]["token"], 21);  // 4 * 5 + 1: the sample parts here
  EXPECT_EQ(json["at_step"]["lanes"][1]["text"], "<21>");
  const auto outside = inspect_document(**reader, 6);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().kind, ErrorKind::usage);
}

TEST(ExportFormats, AreFoundByName) {
  for (const char* name : {"csv", "json", "jsonl", "html"}) {
    const ExportFormat* format = find_export_format(name);
    ASSERT_NE(format, nullptr) << name;
    EXPECT_EQ(format->suffix, std::string(".") + name);
    EXPECT_EQ(format->write(testing::handmade_comparison(), {}).back(), '\n');
  }
  EXPECT_EQ(find_export_format("xlsx"), nullptr);
}

}  // namespace
}  // namespace driftscope
