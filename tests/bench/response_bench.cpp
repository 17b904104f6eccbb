// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "response_corpus.h"

using namespace driftscope;

namespace {

struct Arguments {
  std::string what, folder;
  bench::CorpusShape shape;
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
      if (name == "--seed") shape.seed = static_cast<std::uint64_t>(value);
    } else {
      fmt::print(stderr, "{}: is no option\n", name);
      return 2;
    }
  }
  if (arguments.what == "make") return make(arguments);
  return 2;
}
