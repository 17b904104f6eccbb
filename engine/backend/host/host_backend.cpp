// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/host_backend.h"

#include <fmt/format.h>

#include <utility>

#include "engine/backend/host/forward_pass.h"
#include "engine/backend/host/host_kv_cache.h"
#include "engine/backend/host/matmul_kernel_check.h"

namespace driftscope {
namespace {

class HostBackend final : public Backend {
 public:
  HostBackend(std::shared_ptr<const HostWeights> weights, const RunConfig& config, Isa isa,
              std::shared_ptr<ThreadPool> pool)
      : m_weights(std::move(weights)),
        m_pool(std::move(pool)),
        m_kv_dtype(config.kv_dtype),
        m_kv_page(config.attention_page),
        m_pass(*m_weights, config, isa, *m_pool) {}

  [[nodiscard]] const ModelDescription& model() const override {
    return m_weights->checkpoint().description();
  }
  [[nodiscard]] Result<std::unique_ptr<KvCache>> create_cache(
      std::int64_t expected_tokens) override {
    m_pass.expect_positions(expected_tokens);
    return std::make_unique<HostKvCache>(KvShape{.layers = model().layers,
                                                 .kv_heads = model().kv_heads,
                                                 .head_dim = model().head_dim,
                                                 .dtype = m_kv_dtype,
                                                 .page = m_kv_page},
                                         expected_tokens);
  }
  [[nodiscard]] Result<void> forward(const Batch& batch, const std::stop_token& stop) override {
    return m_pass.run(batch, stop);
  }
  [[nodiscard]] std::int64_t output_rows() const override { return m_pass.output_rows(); }
  [[nodiscard]] Result<std::span<const float>> logits(std::int64_t first,
                                                      std::int64_t count) override {
    return m_pass.logits(first, count);
  }
  [[nodiscard]] std::span<const TensorTap> taps(std::int64_t output_row) override {
    return m_pass.taps(output_row);
  }
  [[nodiscard]] RouteRow routes(std::int64_t output_row) override {
    return m_pass.routes(output_row);
  }
  [[nodiscard]] std::vector<std::string> plans() const override { return m_pass.plans(); }
  [[nodiscard]] std::string storage_note() const override { return m_weights->storage_note(); }

 private:
  std::shared_ptr<const HostWeights> m_weights;
  std::shared_ptr<ThreadPool> m_pool;
  KvDtype m_kv_dtype;
  std::int64_t m_kv_page;
  ForwardPass m_pass;
};

Result<Isa> resolve_isa(IsaChoice choice) {
  Isa isa = Isa::scalar;
  switch (choice) {
    case IsaChoice::automatic:
      return detect_isa();
    case IsaChoice::scalar:
      isa = Isa::scalar;
      break;
    case IsaChoice::avx2:
      isa = Isa::avx2;
      break;
    case IsaChoice::avx512:
      isa = Isa::avx512;
      break;
  }
  if (isa_supported(isa)) return isa;
  return fail(ErrorKind::engine,
              fmt::format("isa {}: this CPU does not have it; use --set isa=auto", isa_name(isa)));
}

}  // namespace

std::shared_ptr<ThreadPool> HostResources::pool(int threads) {
  const std::lock_guard lock(m_mutex);
  std::weak_ptr<ThreadPool>& known = m_pools[threads];
  std::shared_ptr<ThreadPool> pool = known.lock();
  if (!pool) {
    pool = std::make_shared<ThreadPool>(threads);
    known = pool;
  }
  return pool;
}

Result<std::unique_ptr<Backend>> HostResources::open(
    const std::shared_ptr<const ModelCheckpoint>& checkpoint, const RunConfig& config) {
  const auto isa = resolve_isa(config.isa);
  if (!isa) return tl::unexpected(isa.error());
  if (auto shared = check_ranks(config, checkpoint->description()); !shared) {
    return tl::unexpected(shared.error());
  }
  const int threads = config.threads > 0 ? static_cast<int>(config.threads) : available_cores();
  const std::shared_ptr<ThreadPool> workers = pool(threads);
  auto weights = m_weights.get(checkpoint, {.weights = config.weight_dtype,
                                            .lm_head = config.lm_head_dtype,
                                            .stacked = config.fused_qkv || config.fused_gate_up,
                                            .quantisation = quant_spec(config),
                                            .quantise_lm_head = config.quantise_lm_head,
                                            .storage = m_storage,
                                            .parallel = workers.get()});
  if (!weights) return tl::unexpected(weights.error());
  if (auto kernel = check_matmul_kernel(config, **weights); !kernel) {
    return tl::unexpected(kernel.error());
  }
  return std::make_unique<HostBackend>(*std::move(weights), config, *isa, workers);
}

}  // namespace driftscope
