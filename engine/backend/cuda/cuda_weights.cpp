// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_weights.h"

#include <fmt/format.h>

#include <utility>

namespace driftscope {

// Builds a CudaWeights; lives during load() only. Keeps the first error.
class CudaWeightLoader {
 public:
  CudaWeightLoader(CudaWeights& target, CudaSession& session)
      : m_target(target), m_session(session) {}

  Result<void> load(const HostWeights& host) {
    m_what = "the embedding";
    m_target.m_embedding = matrix(host.embedding(), {});
    m_what = "the LM head";
    m_target.m_lm_head = host.lm_head().data == host.embedding().data ? m_target.m_embedding
                                                                      : matrix(host.lm_head(), {});
    m_target.m_final_norm = vector(host.final_norm());
    const std::int64_t layers = host.checkpoint().description().layers;
    for (std::int64_t i = 0; i < layers && m_done; ++i) {
      m_what = fmt::format("the weights of layer {} of {}", i, layers);
      m_target.m_layers.push_back(layer(host.layer(i)));
    }
    m_session.call(m_session.table().synchronize);
    if (auto status = m_session.status(); m_done && !status) m_done = status;
    return m_done;
  }

 private:
  DeviceLayer layer(const HostLayer& host) {
    DeviceLayer result;
    result.attention_norm = vector(host.attention_norm);
    result.ffn_norm = vector(host.ffn_norm);
    result.q_norm = vector(host.q_norm);
    result.k_norm = vector(host.k_norm);
    result.qkv = linear(host.qkv);
    result.q = part(host.q, host.qkv, result.qkv);
    result.k = part(host.k, host.qkv, result.qkv);
    result.v = part(host.v, host.qkv, result.qkv);
    result.o = linear(host.o);
    result.gate_up = linear(host.gate_up);
    result.gate = part(host.gate, host.gate_up, result.gate_up);
    result.up = part(host.up, host.gate_up, result.gate_up);
    result.down = linear(host.down);
    result.moe.router = linear(host.moe.router);
    for (const HostExpert& one : host.moe.experts) result.moe.experts.push_back(expert(one));
    result.moe.shared = expert(host.moe.shared);
    result.moe.shared_weight = linear(host.moe.shared_weight);
    return result;
  }

  DeviceExpert expert(const HostExpert& host) {
    DeviceExpert result;
    result.gate_up = linear(host.gate_up);
    result.gate = part(host.gate, host.gate_up, result.gate_up);
    result.up = part(host.up, host.gate_up, result.gate_up);
    result.down = linear(host.down);
    return result;
  }

  // A matrix that lies inside a stacked one on the host does so here.
  DeviceMatrix part(const Linear& host, const Linear& stacked, const DeviceMatrix& device) {
    if (stacked.weight.data == nullptr || device.data == nullptr) return linear(host);
    const auto offset =
        static_cast<const char*>(host.weight.data) - static_cast<const char*>(stacked.weight.data);
    DeviceMatrix result{.data = static_cast<const char*>(device.data) + offset,
                        .dtype = host.weight.dtype,
                        .rows = host.weight.rows,
                        .columns = host.weight.columns,
                        .bias = vector(host.bias)};
    if (device.quantised.present()) {
      result.quantised = device.quantised.from_row(offset / device.quantised.code_stride);
    }
    return result;
  }

  DeviceMatrix linear(const Linear& host) {
    return host.weight.data == nullptr ? DeviceMatrix{} : matrix(host.weight, host.bias);
  }

  DeviceMatrix matrix(const WeightView& host, const std::vector<float>& bias) {
    if (host.quantised.present()) return codes(host, bias);
    const std::size_t bytes =
        static_cast<std::size_t>(host.rows * host.columns) * dtype_size(host.dtype);
    return {.data = upload(host.data, bytes),
            .dtype = host.dtype,
            .rows = host.rows,
            .columns = host.columns,
            .bias = vector(bias)};
  }

  DeviceMatrix codes(const WeightView& host, const std::vector<float>& bias) {
    QuantisedView view = host.quantised;
    const auto bytes = static_cast<std::size_t>(host.rows * view.code_stride);
    const auto scales = static_cast<std::size_t>(host.rows * view.scale_stride);
    view.codes = static_cast<const std::uint8_t*>(upload(view.codes, bytes));
    view.scales = static_cast<const float*>(upload(view.scales, scales * sizeof(float)));
    if (view.zeros != nullptr) {
      view.zeros = static_cast<const std::uint8_t*>(upload(view.zeros, scales));
    }
    return {.data = view.codes,
            .dtype = host.dtype,
            .rows = host.rows,
            .columns = host.columns,
            .bias = vector(bias),
            .quantised = view};
  }

  const float* vector(const std::vector<float>& host) {
    if (host.empty()) return nullptr;
    return static_cast<const float*>(upload(host.data(), host.size() * sizeof(float)));
  }

  const void* upload(const void* source, std::size_t bytes) {
    if (!m_done) return nullptr;
    auto memory = m_session.copy_of(m_what, source, bytes);
    if (!memory) {
      m_done = tl::unexpected(memory.error());
      return nullptr;
    }
    m_target.m_memory.push_back(*std::move(memory));
    return m_target.m_memory.back().data();
  }

  CudaWeights& m_target;
  CudaSession& m_session;
  std::string m_what;
  Result<void> m_done;
};

Result<std::shared_ptr<const CudaWeights>> CudaWeights::load(
    const std::shared_ptr<CudaSession>& session,
    const std::shared_ptr<const ModelCheckpoint>& checkpoint, WeightOptions options) {
  options.storage = WeightStorage::mapped;  // the host's copy is only on its way
  const auto host = HostWeights::load(checkpoint, options);
  if (!host) return tl::unexpected(host.error());
  auto weights = std::make_shared<CudaWeights>();
  weights->m_checkpoint = checkpoint;
  weights->m_quantisation_note = (*host)->quantisation_note();
  if (auto done = CudaWeightLoader(*weights, *session).load(**host); !done) {
    return tl::unexpected(done.error());
  }
  return std::shared_ptr<const CudaWeights>(std::move(weights));
}

std::string CudaWeights::storage_note() const {
  std::size_t bytes = 0;
  for (const DeviceMemory& memory : m_memory) bytes += memory.bytes();
  return fmt::format("weights in device memory, {} MiB{}{}",
                     (bytes + (std::size_t{1} << 19U)) >> 20U,
                     m_quantisation_note.empty() ? "" : "; ", m_quantisation_note);
}

}  // namespace driftscope
