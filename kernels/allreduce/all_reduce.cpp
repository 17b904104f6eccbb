// SPDX-License-Identifier: Apache-2.0
#include "kernels/allreduce/all_reduce.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace driftscope {

namespace {

// A piece of all messages stays in the first-level cache from the first rounding to the last copy.
constexpr std::int64_t kPiece = 512;
// Pieces of one task: enough to outweigh its dispatch.
constexpr std::int64_t kPiecesPerTask = 16;

// Elements [begin, begin + count) of every rank's message.
struct Piece {
  const AllReduceArguments& arguments;
  std::int64_t begin;
  std::int64_t count;

  [[nodiscard]] std::size_t ranks() const { return arguments.ranks.size(); }
  [[nodiscard]] float* of(std::size_t rank) const { return arguments.ranks[rank] + begin; }
  void round(float* values) const {
    round_span(arguments.dtype, values, static_cast<std::size_t>(count));
  }
  void add(float* into, const float* from) const {
    for (std::int64_t i = 0; i < count; ++i) into[i] += from[i];
  }
  // Rank `from` holds the sum: every other rank gets it.
  void spread(std::size_t from) const {
    float* sum = of(from);
    for (std::int64_t i = 0; i < count; ++i) sum[i] = canonical_nan(sum[i]);
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (rank != from) std::copy_n(sum, count, of(rank));
    }
  }
};

void add_in_rank_order(const Piece& piece) {
  for (std::size_t rank = 1; rank < piece.ranks(); ++rank) piece.add(piece.of(0), piece.of(rank));
  piece.round(piece.of(0));
  piece.spread(0);
}

// The piece lies inside one chunk.
void add_around_ring(const Piece& piece) {
  const std::size_t ranks = piece.ranks();
  const auto last = static_cast<std::size_t>(
      piece.begin / ring_chunk(piece.arguments.elements, static_cast<std::int64_t>(ranks)));
  for (std::size_t hop = 2; hop <= ranks; ++hop) {
    float* here = piece.of((last + hop) % ranks);
    piece.add(here, piece.of((last + hop - 1) % ranks));
    piece.round(here);
  }
  piece.spread(last);
}

void add_up_tree(const Piece& piece) {
  for (std::size_t distance = 1; distance < piece.ranks(); distance *= 2) {
    for (std::size_t rank = 0; rank + distance < piece.ranks(); rank += 2 * distance) {
      piece.add(piece.of(rank), piece.of(rank + distance));
      piece.round(piece.of(rank));
    }
  }
  piece.spread(0);
}

// Every element is summed on its own, so pieces can be done in any order. They do not straddle
// multiples of `unit`.
template <void (*sum)(const Piece&)>
void run_pieces(const AllReduceArguments& arguments, std::int64_t unit, Parallel& parallel) {
  assert(!arguments.ranks.empty() && arguments.elements >= 0);
  assert(arguments.dtype != Dtype::f64);
  if (arguments.ranks.size() == 1 || arguments.elements == 0) return;
  constexpr std::int64_t kTask = kPiece * kPiecesPerTask;
  const auto tasks = static_cast<std::size_t>((arguments.elements + kTask - 1) / kTask);
  parallel.run(tasks, [&](std::size_t task, int) {
    std::int64_t begin = static_cast<std::int64_t>(task) * kTask;
    const std::int64_t end = std::min(arguments.elements, begin + kTask);
    while (begin < end) {
      const std::int64_t unit_end = (begin / unit + 1) * unit;
      const std::int64_t count = std::min({kPiece, end - begin, unit_end - begin});
      const Piece piece{.arguments = arguments, .begin = begin, .count = count};
      for (std::size_t rank = 0; rank < piece.ranks(); ++rank) piece.round(piece.of(rank));
      sum(piece);
      begin += count;
    }
  });
}

void run_one_shot(const AllReduceArguments& arguments, Parallel& parallel) {
  run_pieces<add_in_rank_order>(arguments, std::max<std::int64_t>(1, arguments.elements), parallel);
}
void run_ring(const AllReduceArguments& arguments, Parallel& parallel) {
  const auto ranks = static_cast<std::int64_t>(arguments.ranks.size());
  run_pieces<add_around_ring>(
      arguments, std::max<std::int64_t>(1, ring_chunk(arguments.elements, ranks)), parallel);
}
void run_tree(const AllReduceArguments& arguments, Parallel& parallel) {
  run_pieces<add_up_tree>(arguments, std::max<std::int64_t>(1, arguments.elements), parallel);
}

constexpr std::array kVariants = {
    AllReduceVariant{"one_shot", AllReduceOrder::one_shot, Determinism::device_to_device,
                     run_one_shot},
    AllReduceVariant{"ring", AllReduceOrder::ring, Determinism::run_to_run, run_ring},
    AllReduceVariant{"tree", AllReduceOrder::tree, Determinism::device_to_device, run_tree},
};

}  // namespace

std::span<const AllReduceVariant> all_reduce_variants() { return kVariants; }

void all_reduce(AllReduceOrder order, const AllReduceArguments& arguments, Parallel& parallel) {
  for (const AllReduceVariant& variant : kVariants) {
    if (variant.order == order) return variant.run(arguments, parallel);
  }
}

void all_reduce_reference(std::span<const float* const> ranks, std::int64_t elements,
                          double* sums) {
  for (std::int64_t i = 0; i < elements; ++i) {
    double sum = 0.0;
    for (const float* part : ranks) sum += static_cast<double>(part[i]);
    sums[i] = sum;
  }
}

}  // namespace driftscope
