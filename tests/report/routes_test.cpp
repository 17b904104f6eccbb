// SPDX-License-Identifier: Apache-2.0
// Route flips in the documents and in the event stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/report/documents.h"
#include "analysis/report/events.h"
#include "tests/report/sample_comparison.h"
#include "tests/report/schema_check.h"

namespace driftscope {
namespace {

using Json = nlohmann::json;
using testing::load_schema;
using testing::SampleShape;
using testing::schema_problem;

const SampleShape kShape{.routes = true};

// The one flip of the sample: step 3, layer 2, expert 1 instead of 0.
void expect_the_flip(const Json& flips) {
  ASSERT_EQ(flips.size(), 1U);
  EXPECT_EQ(flips[0]["step"], 3);
  EXPECT_EQ(flips[0]["layer"], 2);
  EXPECT_EQ(flips[0]["only_a"], Json({0}));
  EXPECT_EQ(flips[0]["only_b"], Json({1}));
  EXPECT_EQ(flips[0]["margin_a"], double{0.002F});
  EXPECT_EQ(flips[0]["margin_b"], double{0.001F});
}

TEST(Routes, StandInTheComparison) {
  const auto comparison = testing::built_sample(kShape, {})->snapshot(TraceState::complete);
  const Json json = Json::parse(compare_document(*comparison, {}));
  EXPECT_EQ(schema_problem(load_schema("compare.schema.json"), json), "");
  EXPECT_EQ(json["routes"]["layers"], Json({0, 2}));
  EXPECT_EQ(json["routes"]["experts"], 5);
  EXPECT_EQ(json["routes"]["chosen"], 2);
  EXPECT_EQ(json["routes"]["decisions"], 12);
  expect_the_flip(json["routes"]["flips"]);
  expect_the_flip(json["routes"]["flips_free"]);
  const std::string lines = jsonl_document(*comparison);
  const Json head = Json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(schema_problem(load_schema("export.jsonl.schema.json"), head), "");
  const auto dense = testing::built_sample({}, {})->snapshot(TraceState::complete);
  EXPECT_TRUE(Json::parse(compare_document(*dense, {}))["routes"].is_null());
}

TEST(Routes, ComeBackFromTheEventStream) {
  const ExperimentFacts facts = testing::sample_facts(kShape);
  const auto builder = testing::built_sample(kShape, {});
  const auto comparison = builder->snapshot(TraceState::complete);
  std::vector<std::string> lines{started_event(facts, {})};
  for (std::int64_t i = 0; i < builder->compared_steps(); ++i) {
    lines.push_back(step_event(*builder->step(i), builder->tap_values(i), facts.piece,
                               builder->route_flips(i)));
  }
  lines.push_back(done_event(*comparison, "c.h5", 1));
  const Json schema = load_schema("event.schema.json");
  EventReader reader;
  for (const std::string& line : lines) {
    EXPECT_EQ(schema_problem(schema, Json::parse(line)), "") << line.substr(0, 200);
    const bool done = &line == &lines.back();
    if (done) {
      // What a reader knows while the run goes on.
      EXPECT_EQ(reader.snapshot()->routes.decisions, 12);
      EXPECT_EQ(reader.snapshot()->routes.flips.size(), 1U);
    }
    const auto read = reader.push(line);
    ASSERT_TRUE(read) << read.error().message;
  }
  const auto read = reader.snapshot();
  EXPECT_EQ(read->routes.spec, facts.routes);
  EXPECT_EQ(read->routes.decisions, 12);
  EXPECT_EQ(read->routes.decisions_free, comparison->routes.decisions_free);
  ASSERT_EQ(read->routes.flips.size(), 1U);
  EXPECT_EQ(read->routes.flips[0].only_b, (std::vector<std::int32_t>{1}));
  ASSERT_EQ(read->routes.flips_free.size(), 1U);
  ASSERT_EQ(read->findings.size(), comparison->findings.size());
  for (std::size_t i = 0; i < read->findings.size(); ++i) {
    EXPECT_EQ(read->findings[i].text, comparison->findings[i].text);
  }
}

TEST(Routes, AreShownByInspect) {
  const testing::ScratchFolder folder;
  ASSERT_TRUE(testing::write_sample(folder / "c.h5", kShape, {}, TraceState::complete));
  const auto reader = CaptureReader::open(folder / "c.h5");
  ASSERT_TRUE(reader);
  const auto text = inspect_document(**reader, 3);
  ASSERT_TRUE(text) << text.error().message;
  const Json json = Json::parse(*text);
  EXPECT_EQ(schema_problem(load_schema("inspect.schema.json"), json), "");
  EXPECT_EQ(json["routes"], Json::parse(R"({"layers":[0,2],"experts":5,"chosen":2})"));
  const Json& lane_b = json["at_step"]["lanes"][1];
  EXPECT_EQ(lane_b["lane"], "b");
  EXPECT_EQ(lane_b["routes"][1]["layer"], 2);
  EXPECT_EQ(lane_b["routes"][1]["experts"], Json({4, 1}));
  EXPECT_EQ(lane_b["routes"][1]["weights"], Json({0.625, 0.375}));
  EXPECT_EQ(lane_b["routes"][1]["margin"], double{0.001F});
}

}  // namespace
}  // namespace driftscope
