// SPDX-License-Identifier: Apache-2.0
// Attention with an online softmax: a block is one query of one head, tiles or splits one after the
// other. Groups compute scores, then each thread some elements of the sums, keys in rising order.
// Maximum, denominator and merge factors are computed by every thread alike, so that they need no
// exchange.
#include "kernels/attention/attention_portable.cuh"

#include "kernels/attention/attention_eager.cuh"
#include "kernels/attention/attention_query.cuh"
#include "kernels/plan/portable_exp_functions.h"

namespace driftscope::cuda {

namespace {

constexpr int kThreads = 128;
constexpr int kPiece = 256;      // keys whose scores are in shared memory at a time
constexpr int kLevels = 17;      // of the tree: 65536 splits
constexpr int kTotal = kLevels;  // place of the sums of the result
constexpr int kPlaces = kLevels + 1;

template <class Real>
constexpr std::size_t kWeightBytes = kPiece * sizeof(Real);
constexpr std::size_t kScoreBytes = kPiece * sizeof(float);

__device__ float exponential(float x) { return portable::exp_f32(x); }
__device__ double exponential(double x) { return portable::exp_f64(x); }
__device__ float rounded_real(Dtype dtype, float x) { return exact::rounded(dtype, x); }
__device__ double rounded_real(Dtype, double x) { return x; }

// What a tile or split leaves behind, but for its sums.
template <class Real>
struct OnlineState {
  bool empty = true;
  float max = -__builtin_inff();
  Real denominator = 0;
};

template <class Real>
class OnlineQuery {
 public:
  __device__ explicit OnlineQuery(const DeviceAttention& arguments)
      : m_call(arguments),
        m_query(query_of_block(arguments)),
        m_group(group_of(arguments.score_plan.lanes)) {}

  __device__ void run() {
    OnlineState<Real> total;
    if (m_call.kind == AttentionKind::flash) {
      const std::int64_t first = m_query.visible.begin / m_call.tile;  // those before see nothing
      for (std::int64_t t = first; t <= m_query.position / m_call.tile; ++t) {
        add_segment({t * m_call.tile, (t + 1) * m_call.tile}, total, kTotal);
      }
    } else if (m_call.split_combine == SplitCombine::tree) {
      run_tree(total);
    } else {
      run_in_order(total);
    }
    finish(total);
  }

 private:
  // Sums [head_dim] of one state; each thread touches its own elements only.
  __device__ Shared<float> sums(int place) const {
    DRIFTSCOPE_DYNAMIC_SHARED(float, all, kScoreBytes + kWeightBytes<Real>,
                              kPlaces * m_call.head_dim);
    return all + place * m_call.head_dim;
  }
  template <class Function>
  __device__ void each_dimension(const Function& function) const {
    for (std::int64_t d = threadIdx.x; d < m_call.head_dim; d += kThreads) function(d);
  }

  __device__ std::int64_t split_size() const {
    return m_call.kind == AttentionKind::split_kv_size
               ? m_call.tile
               : (m_query.keys + m_call.splits - 1) / m_call.splits;
  }
  __device__ std::int64_t split_count() const {
    return m_call.kind == AttentionKind::split_kv_size ? m_query.position / m_call.tile + 1
                                                       : m_call.splits;
  }
  // The state of split `number`, its sums at `place`.
  __device__ OnlineState<Real> split_state(std::int64_t number, int place) {
    OnlineState<Real> state;
    add_segment({number * split_size(), (number + 1) * split_size()}, state, place);
    return state;
  }

  __device__ void run_in_order(OnlineState<Real>& total) {
    const bool listed = m_call.split_combine == SplitCombine::arrival;
    const Global<const int> orders(m_call.merge_orders);
    const std::int64_t begin =
        listed ? Global<const std::int32_t>(m_call.merge_order_begin)[m_query.row] : 0;
    for (std::int64_t i = 0; i < split_count(); ++i) {
      const OnlineState<Real> state = split_state(listed ? orders[begin + i] : i, 0);
      merge(total, kTotal, state, 0);
    }
  }

  // A binary counter, as in join_tree(): level n holds 2^n splits.
  __device__ void run_tree(OnlineState<Real>& total) {
    OnlineState<Real> levels[kLevels];
    for (std::int64_t split = 0; split < split_count(); ++split) {
      OnlineState<Real> state = split_state(split, kTotal);
      int level = 0;
      for (; (split >> level & 1) != 0; ++level) {
        merge(levels[level], level, state, kTotal);
        state = levels[level];
        copy_sums(level, kTotal);
      }
      levels[level] = state;
      copy_sums(kTotal, level);
    }
    bool any = false;
    for (int level = 0; level < kLevels; ++level) {
      if ((split_count() >> level & 1) == 0) continue;
      if (any) merge(levels[level], level, total, kTotal);
      total = levels[level];
      copy_sums(level, kTotal);
      any = true;
    }
  }

  __device__ void copy_sums(int from, int to) {
    const Shared<float> source = sums(from);
    const Shared<float> target = sums(to);
    if (!has_sums(from)) return;
    each_dimension([&](std::int64_t d) { target[d] = source[d]; });
    m_has_sums |= 1U << static_cast<unsigned>(to);
  }
  // A place is written before it is read.
  __device__ bool has_sums(int place) const {
    return (m_has_sums >> static_cast<unsigned>(place) & 1U) != 0U;
  }

  __device__ void merge(OnlineState<Real>& into, int into_place, const OnlineState<Real>& from,
                        int from_place) {
    if (from.empty) return;
    if (into.empty) {
      into = from;
      copy_sums(from_place, into_place);
      return;
    }
    const float max = into.max < from.max ? from.max : into.max;
    const Real f1 = factor(into.max, max);
    const Real f2 = factor(from.max, max);
    into.max = max;
    into.denominator = rounded_real(m_call.softmax_dtype,
                                    exact::fused(from.denominator, f2, into.denominator * f1));
    const Shared<float> target = sums(into_place);
    const Shared<float> source = sums(from_place);
    each_dimension([&](std::int64_t d) {
      target[d] = __fmaf_rn(source[d], static_cast<float>(f2),
                            __fmul_rn(target[d], static_cast<float>(f1)));
    });
  }

  __device__ Real factor(float from, float to) const {
    return rounded_real(m_call.softmax_dtype,
                        exponential(static_cast<Real>(from) - static_cast<Real>(to)));
  }

  // Scores of keys [begin, end) to shared memory.
  __device__ void compute_scores(std::int64_t begin, std::int64_t end) const {
    DRIFTSCOPE_DYNAMIC_SHARED(float, scores, 0, kPiece);
    const std::int64_t groups = kThreads / m_group.width;
    __syncthreads();  // nobody still reads the piece before
    for (std::int64_t key = begin + group_number(m_group); key < end; key += groups) {
      const float score = __fmul_rn(score_of(m_call, m_query, key, m_group), m_call.scale);
      if (m_group.lane == 0) scores[key - begin] = score;
    }
    __syncthreads();
  }

  __device__ float max_of_scores(std::int64_t count, float max) const {
    DRIFTSCOPE_DYNAMIC_SHARED(float, scores, 0, kPiece);
    for (std::int64_t i = 0; i < count; ++i) {
      const float score = scores[i];
      max = max < score ? score : max;
    }
    return max;
  }

  // A tile: its visible keys in pieces; where there are several, once for the maximum and once more
  // for the rest.
  __device__ void add_segment(KeySpan segment, OnlineState<Real>& state, int place) {
    const std::int64_t begin = larger(segment.begin, m_query.visible.begin);
    const std::int64_t end = smaller(segment.end, m_query.visible.end);
    if (begin >= end) return;
    float max = state.max;
    for (std::int64_t piece = begin; piece < end; piece += kPiece) {
      const std::int64_t last = smaller(piece + kPiece, end);
      compute_scores(piece, last);
      max = max_of_scores(last - piece, max);
    }
    rescale(state, place, max);
    for (std::int64_t piece = begin; piece < end; piece += kPiece) {
      const std::int64_t last = smaller(piece + kPiece, end);
      if (end - begin > kPiece) compute_scores(piece, last);
      add_piece(piece, last - piece, state, place);
    }
    state.denominator = rounded_real(m_call.softmax_dtype, state.denominator);
  }

  __device__ void rescale(OnlineState<Real>& state, int place, float max) {
    const Shared<float> target = sums(place);
    if (state.empty) {
      state.denominator = 0;
      each_dimension([&](std::int64_t d) { target[d] = 0.0F; });
      m_has_sums |= 1U << static_cast<unsigned>(place);
    } else if (max != state.max) {
      const Real f = factor(state.max, max);
      state.denominator = state.denominator * f;
      each_dimension(
          [&](std::int64_t d) { target[d] = __fmul_rn(target[d], static_cast<float>(f)); });
    }
    state.empty = false;
    state.max = max;
  }

  __device__ void add_piece(std::int64_t first, std::int64_t count, OnlineState<Real>& state,
                            int place) const {
    DRIFTSCOPE_DYNAMIC_SHARED(float, scores, 0, kPiece);
    DRIFTSCOPE_DYNAMIC_SHARED(Real, weights, kScoreBytes, kPiece);
    for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
      const float score = scores[i];
      weights[i] = factor(score, state.max);
    }
    __syncthreads();
    for (std::int64_t i = 0; i < count; ++i) {
      const Real weight = weights[i];
      state.denominator = state.denominator + weight;
    }
    const Shared<float> target = sums(place);
    each_dimension([&](std::int64_t d) {
      float sum = target[d];
      for (std::int64_t i = 0; i < count; ++i) {
        const Real weight = weights[i];
        sum = __fmaf_rn(static_cast<float>(weight), m_query.value(first + i).at(d), sum);
      }
      target[d] = sum;
    });
  }

  __device__ void finish(const OnlineState<Real>& total) const {
    const Shared<float> source = sums(kTotal);
    each_dimension([&](std::int64_t d) {
      const float sum = source[d];
      const auto quotient = static_cast<float>(static_cast<Real>(sum) / total.denominator);
      m_query.y[d] = exact::with_canonical_nan(exact::rounded(m_call.output_dtype, quotient));
    });
  }

  const DeviceAttention& m_call;
  QueryOfBlock m_query;
  Group m_group;
  unsigned m_has_sums = 0;
};

template <class Real>
__global__ void online_attention(DeviceAttention a) {
  OnlineQuery<Real>(a).run();
}

template <class Real>
cudaError_t launch_online(const DeviceAttention& a, cudaStream_t stream) {
  const std::size_t shared_bytes = kScoreBytes + kWeightBytes<Real> +
                                   kPlaces * static_cast<std::size_t>(a.head_dim) * sizeof(float);
  constexpr std::size_t kMostShared = std::size_t{48} << 10U;
  if (shared_bytes > kMostShared) return cudaErrorInvalidValue;
  const auto blocks = static_cast<unsigned>(a.batch.rows * a.heads);
  return launch(online_attention<Real>, "online_attention",
                {dim3(blocks), dim3(kThreads), shared_bytes}, stream, a);
}

bool in_range(const DeviceAttention& a) {
  const bool heads = a.heads > 0 && a.kv_heads > 0 && a.heads % a.kv_heads == 0 && a.head_dim > 0;
  const bool cuts = a.tile > 0 && a.splits > 0;
  const bool ordered = a.kind == AttentionKind::eager || a.kind == AttentionKind::flash ||
                       a.split_combine != SplitCombine::arrival ||
                       (a.merge_orders != nullptr && a.merge_order_begin != nullptr);
  return heads && cuts && ordered && valid(a.score_plan) && a.batch.rows >= 0 &&
         a.batch.rows * a.heads <= 0x7fffffff;
}

}  // namespace

cudaError_t launch_attention(const DeviceAttention& a, cudaStream_t stream) {
  if (!in_range(a)) return cudaErrorInvalidValue;
  if (a.batch.rows == 0) return cudaSuccess;
  if (a.kind == AttentionKind::eager) return launch_eager_attention(a, stream);
  return a.softmax_dtype == Dtype::f64 ? launch_online<double>(a, stream)
                                       : launch_online<float>(a, stream);
}

}  // namespace driftscope::cuda
