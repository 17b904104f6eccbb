// SPDX-License-Identifier: Apache-2.0
// The group `routes` of a capture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <fstream>

#include "analysis/compare/comparison.h"
#include "tests/capture/sample_capture.h"

namespace driftscope {
namespace {

using ::testing::HasSubstr;
using testing::SampleShape;
using testing::ScratchFolder;

const SampleShape kShape{.routes = true};

std::unique_ptr<CaptureReader> opened(const std::filesystem::path& path) {
  auto reader = CaptureReader::open(path);
  if (!reader) throw std::runtime_error(reader.error().message + reader.error().detail);
  return std::move(*reader);
}

void write(const std::filesystem::path& path, const CaptureOptions& options) {
  const auto written = testing::write_sample(path, kShape, options, TraceState::complete);
  ASSERT_TRUE(written) << written.error().message << written.error().detail;
}

TEST(CaptureRoutes, ComeBackForEveryLaneAndStep) {
  const ScratchFolder folder;
  for (const CaptureOptions& options :
       {CaptureOptions{}, CaptureOptions{.deflate = 3, .flush_every = 4},
        CaptureOptions{.keep = KeepMode::topk, .top_k = 5}}) {
    write(folder / "c.h5", options);
    const auto reader = opened(folder / "c.h5");
    EXPECT_EQ(reader->format_version(), 1);
    EXPECT_EQ(reader->header().routes, (RouteSpec{.layers = {0, 2}, .experts = 5, .chosen = 2}));
    for (const Lane lane : kShape.lanes) {
      for (std::int64_t step = 0; step < kShape.steps; ++step) {
        const auto routes = reader->routes(lane, step);
        ASSERT_TRUE(routes) << routes.error().message;
        const StoredRoutes wanted = testing::sample_routes(lane, step);
        EXPECT_EQ(routes->experts, wanted.experts);
        EXPECT_EQ(routes->weights, wanted.weights);
        EXPECT_EQ(routes->margins, wanted.margins);
      }
      const auto beyond = reader->routes(lane, kShape.steps);
      ASSERT_FALSE(beyond);
      EXPECT_EQ(beyond.error().kind, ErrorKind::usage);
    }
    // 4 lanes of 6 steps: the small columns, the logits, 4 taps and the routes of each step.
    EXPECT_EQ(*reader->verify(), 4 * 6 * (1 + 1 + 4 + 1));
  }
}

TEST(CaptureRoutes, AreAbsentInDenseModels) {
  const ScratchFolder folder;
  ASSERT_TRUE(testing::write_sample(folder / "c.h5", {}, {}, TraceState::complete));
  const auto reader = opened(folder / "c.h5");
  EXPECT_TRUE(reader->header().routes.layers.empty());
  const auto routes = reader->routes(Lane::a, 0);
  ASSERT_FALSE(routes);
  EXPECT_EQ(routes.error().kind, ErrorKind::inconclusive);
}

TEST(CaptureRoutes, AreComparedFromTheFile) {
  const ScratchFolder folder;
  for (const KeepMode keep : {KeepMode::full, KeepMode::topk}) {
    write(folder / "c.h5", {.keep = keep});
    const auto reader = opened(folder / "c.h5");
    const auto comparison = compare_capture(*reader, {});
    ASSERT_TRUE(comparison) << comparison.error().message;
    const RouteComparison& routes = (*comparison)->routes;
    EXPECT_EQ(routes.decisions, 2 * 6);
    ASSERT_EQ(routes.flips.size(), 1U);
    EXPECT_EQ(routes.flips[0].step, 3);
    EXPECT_EQ(routes.flips[0].layer, 2);
    EXPECT_EQ(routes.flips[0].only_a, (std::vector<std::int32_t>{0}));
    EXPECT_EQ(routes.flips[0].only_b, (std::vector<std::int32_t>{1}));
    // The free lanes part at step 4, whose row is still computed from the same tokens.
    EXPECT_EQ(routes.decisions_free, 2 * 5);
    EXPECT_EQ(routes.flips_free.size(), 1U);
  }
}

TEST(CaptureRoutes, AreRecovered) {
  const ScratchFolder folder;
  write(folder / "c.h5", {});
  ASSERT_TRUE(recover_capture(folder / "c.h5", folder / "fresh.h5"));
  const auto reader = opened(folder / "fresh.h5");
  EXPECT_EQ(reader->routes(Lane::b, 3)->experts, testing::sample_routes(Lane::b, 3).experts);
}

TEST(CaptureRoutes, DamageIsFound) {
  const ScratchFolder folder;
  write(folder / "c.h5", {});
  {
    const hid_t file = H5Fopen((folder / "c.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t experts = H5Dopen2(file, "/traces/a/routes/experts", H5P_DEFAULT);
    std::vector<std::int32_t> ids(6 * 4);
    ASSERT_GE(H5Dread(experts, H5T_STD_I32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, ids.data()), 0);
    ids[2 * 4] ^= 1;
    ASSERT_GE(H5Dwrite(experts, H5T_STD_I32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, ids.data()), 0);
    H5Dclose(experts);
    H5Fclose(file);
  }
  const auto reader = opened(folder / "c.h5");
  EXPECT_TRUE(reader->routes(Lane::a, 1));
  const auto damaged = reader->routes(Lane::a, 2);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().kind, ErrorKind::malformed);
  EXPECT_THAT(damaged.error().message, HasSubstr("step 2 fails its check value"));
  EXPECT_FALSE(reader->verify());
}

TEST(CaptureRoutes, TwoCapturesAreComparedOnlyWithTheSameRouters) {
  const ScratchFolder folder;
  write(folder / "a.h5", {});
  ASSERT_TRUE(testing::write_sample(folder / "b.h5", {}, {}, TraceState::complete));
  const auto a = opened(folder / "a.h5");
  const auto b = opened(folder / "b.h5");
  const auto same = compare_captures(*a, *a, {});
  ASSERT_TRUE(same);
  EXPECT_EQ((*same)->routes.decisions, 12);
  EXPECT_TRUE((*same)->routes.flips.empty());
  const auto other = compare_captures(*a, *b, {});
  ASSERT_TRUE(other);
  EXPECT_TRUE((*other)->routes.spec.layers.empty());
}

}  // namespace
}  // namespace driftscope
