// SPDX-License-Identifier: Apache-2.0
// The row-parallel matmuls of CudaMatmuls where NCCL adds: each rank's share runs on a GPU of its
// own, so that what is added comes from as many GPUs. Everything else adds nothing between ranks
// and gives the same bits on any GPU; it stays on the first one.
#include <fmt/format.h>

#include <cassert>
#include <type_traits>
#include <utility>

#include "engine/backend/cuda/cuda_matmuls.h"
#include "engine/config/knob.h"

namespace driftscope {

// What a rank's GPU has beside the first one's.
struct CudaMatmuls::Peer {
  Peer(std::shared_ptr<CudaSession> of, const RunConfig& config)
      : session(of), matmuls(std::move(of), config, nullptr) {}

  // The matrix in this GPU's memory, whole; copied when it is first asked for.
  Result<const DeviceMatrix*> replica(CudaSession& first, const DeviceMatrix& source) {
    const auto [known, added] = matrices.try_emplace(source.data, source);
    if (!added) return &known->second;
    DeviceMatrix& matrix = known->second;
    matrix.bias = nullptr;
    Result<void> done;
    const auto take = [&](const auto*& data, std::size_t bytes) {
      if (!done || data == nullptr) return;
      auto copied = session->allocate("a rank's weights", bytes);
      if (!copied) {
        done = tl::unexpected(copied.error());
        return;
      }
      session->call(session->table().copy_between, copied->data(), first.context(),
                    static_cast<const void*>(data), bytes);
      data = static_cast<std::remove_reference_t<decltype(data)>>(copied->data());
      memory.push_back(*std::move(copied));
    };
    const auto rows = static_cast<std::size_t>(matrix.rows);
    if (matrix.quantised.present()) {
      const auto scales = rows * static_cast<std::size_t>(matrix.quantised.scale_stride);
      take(matrix.quantised.codes, rows * static_cast<std::size_t>(matrix.quantised.code_stride));
      take(matrix.quantised.scales, scales * sizeof(float));
      take(matrix.quantised.zeros, scales);
    } else {
      take(matrix.data, rows * static_cast<std::size_t>(matrix.columns) * dtype_size(matrix.dtype));
    }
    if (!done) return tl::unexpected(done.error());
    return &matrix;
  }

  std::shared_ptr<CudaSession> session;
  CudaMatmuls matmuls;
  DeviceList x{"inputs of a rank"};
  std::map<const void*, DeviceMatrix> matrices;  // by where the first GPU has them
  std::vector<DeviceMemory> memory;
  int generation = 0;
};

CudaMatmuls::CudaMatmuls(std::shared_ptr<CudaSession> session, const RunConfig& config,
                         std::shared_ptr<CudaRankGroup> group)
    : m_session(std::move(session)),
      m_config(config),
      m_group(std::move(group)),
      m_all_reduce_text(fmt::format("all_reduce {}{} ranks={} dtype={}",
                                    get_knob(config, *find_knob("all_reduce")),
                                    m_group ? " " + m_group->note() : "", config.tensor_parallel,
                                    dtype_name(config.reduce_dtype))) {
  if (m_group) add_peers();
}

void CudaMatmuls::add_peers() {
  for (const auto& session : m_group->sessions().subspan(1)) {
    m_peers.push_back(std::make_unique<Peer>(session, m_config));
  }
}

CudaMatmuls::~CudaMatmuls() = default;

Result<void> CudaMatmuls::run_peer(std::size_t rank, CudaProjection projection,
                                   const RankShare& share, std::vector<CudaSumBuffers>& buffers) {
  Peer& peer = *m_peers[rank - 1];
  const auto matrix = peer.replica(*m_session, *projection.weight);
  if (!matrix) return tl::unexpected(matrix.error());
  const auto bytes =
      static_cast<std::size_t>(projection.m * projection.weight->columns) * sizeof(float);
  if (auto done = peer.x.reserve(*peer.session, bytes, peer.generation); !done) return done;
  peer.session->call(peer.session->table().copy_between, static_cast<void*>(peer.x.as<float>()),
                     m_session->context(), static_cast<const void*>(projection.x), bytes);
  projection.weight = *matrix;
  projection.x = peer.x.as<float>();
  return peer.matmuls.sum_share(rank, projection, share, buffers, peer.generation);
}

// A rank's part, in this GPU's memory.
Result<void> CudaMatmuls::sum_share(std::size_t rank, const CudaProjection& projection,
                                    const RankShare& share, std::vector<CudaSumBuffers>& buffers,
                                    int& generation) {
  const auto elements = static_cast<std::size_t>(projection.m * share.shape.n);
  Scratch& scratch = m_scratch[projection.stream];
  if (auto done = scratch.partial.reserve(*m_session, elements * sizeof(float), generation);
      !done) {
    return done;
  }
  if (auto done =
          scratch.narrowed.reserve(*m_session, elements * sizeof(std::uint16_t), generation);
      !done) {
    return done;
  }
  DeviceMatmul own = terms_of(request_of(projection),
                              static_cast<std::int64_t>(rank) * share.shape.k, share.shape.k);
  own.bias = nullptr;
  own.output_dtype = Dtype::f32;
  own.y = scratch.partial.as<float>();
  buffers.push_back({own.y, scratch.narrowed.as<void>()});
  return multiply(own, share.plan, projection.stream, generation);
}

Result<void> CudaMatmuls::reduce_by_nccl(const CudaProjection& projection, const RankShare& share,
                                         int& generation) {
  assert(projection.stream == 0);  // the one that NCCL's work is ordered on
  std::vector<CudaSumBuffers> buffers;
  if (auto done = sum_share(0, projection, share, buffers, generation); !done) return done;
  for (std::size_t rank = 1; rank <= m_peers.size(); ++rank) {
    if (auto done = run_peer(rank, projection, share, buffers); !done) return done;
  }
  std::vector<float*> parts;
  std::vector<void*> narrowed;
  for (const CudaSumBuffers& rank : buffers) {
    parts.push_back(rank.part);
    narrowed.push_back(rank.narrowed);
  }
  const auto summed = m_group->sum({.parts = parts.data(),
                                    .narrowed = narrowed.data(),
                                    .count = projection.m * share.shape.n,
                                    .dtype = m_config.reduce_dtype});
  if (!summed) return summed;
  finish_sum(projection, parts[0], 1);
  return {};
}

}  // namespace driftscope
