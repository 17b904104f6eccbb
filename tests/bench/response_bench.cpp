// SPDX-License-Identifier: Apache-2.0
// Comparing many answers: makes files with known differences, compares them and checks what was
// found, and counts how often the tests of populations are wrong.
#include <fmt/format.h>
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <string_view>

#include "analysis/responses/response_stream.h"
#include "engine/backend/host/thread_pool.h"
#include "engine/model/files.h"
#include "response_corpus.h"
#include "response_null.h"

using namespace driftscope;

namespace {

struct Arguments {
  std::string what, folder;
  bench::CorpusShape shape;
  int threads = 0;
  std::int64_t experiments = 1000;
};

bool number(std::string_view text, std::int64_t& value) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size() && value >= 0;
}

int make(const Arguments& arguments) {
  if (auto done = bench::write_corpus(arguments.folder, arguments.shape); !done) {
    fmt::print(stderr, "{}\n", done.error().message);
    return 6;
  }
  const bench::CorpusTruth truth = bench::truth_of(arguments.shape);
  fmt::print("equal {}, drift only {}, near-tie {}, beyond rounding {}\n", truth.equal, truth.drift,
             truth.near_tie, truth.beyond_rounding);
  return 0;
}

// A pair's verdict, where its number is the end of its key.
bool as_planted(const Arguments& arguments, const AnswerPair& pair) {
  std::int64_t place = 0;
  const std::size_t dash = pair.key.rfind('-');
  if (!number(std::string_view(pair.key).substr(dash == std::string::npos ? 0 : dash + 1), place)) {
    return false;
  }
  const std::int64_t step = bench::parting_step(arguments.shape, place);
  const auto& found = pair.comparison.divergence;
  if (step < 0) {
    return !found && pair.comparison.tier == (place % 10 < 4 ? Tier::tolerance : Tier::token);
  }
  const auto cause = place % 10 < 9 ? ResponseCause::near_tie : ResponseCause::beyond_rounding;
  return found && found->step == step && found->cause == cause;
}

int run(const Arguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const auto a = MappedFile::open(arguments.folder + "/A.jsonl");
  const auto b = MappedFile::open(arguments.folder + "/B.jsonl");
  if (!a || !b) {
    fmt::print(stderr, "{}: has no A.jsonl and B.jsonl\n", arguments.folder);
    return 4;
  }
  LineSide left{.lines = find_response_lines(a->bytes()).value_or(ResponseLines{}), .name = "A"};
  LineSide right{.lines = find_response_lines(b->bytes()).value_or(ResponseLines{}), .name = "B"};
  const LinePairs pairs = pair_lines(left, right);
  ThreadPool pool(arguments.threads);
  std::int64_t right_verdicts = 0;
  std::int64_t compared = 0;
  compare_lines(left, right, pairs, pool, {}, [&](PairedSides&& sides) {
    for (const AnswerPair& pair : sides.pairs) {
      ++compared;
      right_verdicts += as_planted(arguments, pair) ? 1 : 0;
    }
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  rusage used{};
  (void)getrusage(RUSAGE_SELF, &used);
  fmt::print(
      "{} pairs in {:.2f} s on {} threads, {:.2f} s of processors; {} as planted\n", compared,
      seconds.count(), pool.workers(),
      static_cast<double>(used.ru_utime.tv_sec) + 1e-6 * static_cast<double>(used.ru_utime.tv_usec),
      right_verdicts);
  return compared > 0 && right_verdicts == compared ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments;
  if (count < 3) {
    fmt::print(
        "response_bench make DIR [--responses N] [--tokens N] [--top N] [--seed N] "
        "[--prompts N] [--bare] [--shuffle]\n");
    return 2;
  }
  arguments.what = values[1];
  arguments.folder = values[2];
  for (int i = 3; i < count; ++i) {
    const std::string_view name = values[i];
    std::int64_t value = 0;
    bench::CorpusShape& shape = arguments.shape;
    if (name == "--bare") {
      shape.batch = false;
    } else if (name == "--shuffle") {
      shape.shuffle = true;
    } else if (i + 1 < count && number(values[i + 1], value)) {
      ++i;
      if (name == "--responses") shape.responses = value;
      if (name == "--tokens") shape.tokens = value;
      if (name == "--top") shape.top = value;
      if (name == "--prompts") shape.prompts = value;
      if (name == "--threads") arguments.threads = static_cast<int>(value);
      if (name == "--experiments") arguments.experiments = value;
      if (name == "--seed") shape.seed = static_cast<std::uint64_t>(value);
    } else {
      fmt::print(stderr, "{}: is no option\n", name);
      return 2;
    }
  }
  if (arguments.what == "make") return make(arguments);
  if (arguments.what == "run") return run(arguments);
  if (arguments.what != "null") return 2;
  bench::print_test_rates(arguments.experiments, arguments.shape.seed);
  return 0;
}
