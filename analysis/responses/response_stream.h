// SPDX-License-Identifier: Apache-2.0
// Two files of lines compared pair by pair: only the pairs at work are in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/import/response_lines.h"
#include "analysis/responses/response_set.h"
#include "analysis/responses/sample_groups.h"
#include "kernels/base/parallel.h"

namespace driftscope {

struct LineSide {
  ResponseLines lines;
  std::string name;  // of the file
  // The bytes of a line, put into `buffer` so that those of a mapped file need not be touched;
  // called from any thread. Empty: the line itself is read.
  std::function<std::string_view(std::string_view line, std::string& buffer)> fetch = {};
};

// Which lines belong together: by custom_id where both sides have them, else by order. The same
// custom_id again is "id#2", as in pair_sides().
struct LinePairs {
  struct Pair {
    std::string key;
    std::size_t a = 0, b = 0;  // places in the lists of lines
  };
  std::vector<Pair> pairs;  // in A's order
  std::vector<std::string> only_a, only_b;
  // Lines whose custom_id was seen before.
  std::int64_t repeated_a = 0, repeated_b = 0;
  bool by_custom_id = false;
};
[[nodiscard]] LinePairs pair_lines(const LineSide& a, const LineSide& b);

struct StreamOptions {
  // Keeps LogprobDrift::per_step; without it, a comparison is small whatever the answers' length.
  bool keep_steps = false;
  std::stop_token stop = {};
  // Told how many lines or pairs are done, one call at a time, from any thread.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

// What one pair of lines came to: one comparison for each choice.
using PairTaker = std::function<void(PairedSides&&)>;

// Compares the pairs and gives the results in the order of `pairs`, one call at a time, whatever
// the number of workers. Returns how many were given: fewer than all after a stop.
std::size_t compare_lines(const LineSide& a, const LineSide& b, const LinePairs& pairs,
                          Parallel& parallel, const StreamOptions& options, const PairTaker& take);

// The answers of a file as samples, in its order. After a stop, those that were read.
[[nodiscard]] std::vector<SampleRecord> read_samples(const LineSide& side, Parallel& parallel,
                                                     const StreamOptions& options);

}  // namespace driftscope
