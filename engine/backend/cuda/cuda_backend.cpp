// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "engine/backend/cuda/cuda_forward_pass.h"
#include "engine/backend/cuda/cuda_kv_cache.h"
#include "engine/backend/decoder_features.h"
#include "engine/backend/host/projector.h"

namespace driftscope {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::shared_ptr<CudaSession> session, std::shared_ptr<const CudaWeights> weights,
              const RunConfig& config, std::shared_ptr<CudaRankGroup> group)
      : m_session(session),
        m_weights(weights),
        m_kv_dtype(config.kv_dtype),
        m_kv_page(config.attention_page),
        m_pass(std::move(session), std::move(weights), config, std::move(group)) {}

  [[nodiscard]] const ModelDescription& model() const override {
    return m_weights->checkpoint().description();
  }
  [[nodiscard]] Result<std::unique_ptr<KvCache>> create_cache(
      std::int64_t expected_tokens) override {
    auto cache = CudaKvCache::create(m_session,
                                     {.layers = model().layers,
                                      .kv_heads = model().kv_heads,
                                      .head_dim = model().head_dim,
                                      .dtype = m_kv_dtype,
                                      .page = m_kv_page},
                                     expected_tokens);
    if (!cache) return tl::unexpected(cache.error());
    return *std::move(cache);
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
  std::shared_ptr<CudaSession> m_session;
  std::shared_ptr<const CudaWeights> m_weights;
  KvDtype m_kv_dtype;
  std::int64_t m_kv_page;
  CudaForwardPass m_pass;
};

Result<void> refuse(const std::string& text) { return fail(ErrorKind::engine, text); }

// What each knob allows by itself, and this backend not together or not with this model.
Result<void> check_combination(const RunConfig& config, const ModelDescription& model) {
  const bool vendor = config.matmul_policy == PlanPolicy::vendor;
  if (vendor && config.quantisation != Quantisation::none) {
    return refuse(
        "knob matmul_policy: vendor multiplies weights in f32, f16 and bf16 only; give --set "
        "matmul_policy=invariant or quantisation=none");
  }
  if (vendor && config.tensor_parallel > 1) {
    return refuse(
        "knob matmul_policy: vendor runs on one rank only; give --set matmul_policy=invariant or "
        "tensor_parallel=1");
  }
  if (model.moe.experts > 0 && config.cuda_graph) {
    return refuse(
        "knob cuda_graph: in a mixture of experts the routes decide which kernels run, so no graph "
        "can hold a call; give --set cuda_graph=false");
  }
  if (config.all_reduce == AllReduce::nccl && config.tensor_parallel > 1 && config.cuda_graph) {
    return refuse(
        "knob cuda_graph: no graph holds NCCL's sums in this version; give --set cuda_graph=false "
        "or "
        "all_reduce=ring");
  }
  return check_ranks(config, model);
}

bool same_wishes(const WeightOptions& a, const WeightOptions& b) {
  return a.weights == b.weights && a.lm_head == b.lm_head && a.stacked == b.stacked &&
         a.quantisation == b.quantisation && a.quantise_lm_head == b.quantise_lm_head;
}

}  // namespace

Result<std::shared_ptr<CudaSession>> CudaResources::session(int streams) {
  if (!m_module) {
    auto module = CudaModule::load();
    if (!module) return tl::unexpected(module.error());
    m_module = std::make_shared<const CudaModule>(*std::move(module));
  }
  std::weak_ptr<CudaSession>& known = m_sessions[streams];
  if (auto session = known.lock()) return session;
  auto session = CudaSession::open(m_module, streams);
  if (session) known = *session;
  return session;
}

Result<std::shared_ptr<CudaRankGroup>> CudaResources::group(
    const std::shared_ptr<CudaSession>& session, const RunConfig& config) {
  if (config.all_reduce != AllReduce::nccl || config.tensor_parallel == 1) return nullptr;
  std::weak_ptr<CudaRankGroup>& known = m_groups[{config.cuda_streams, config.tensor_parallel}];
  if (auto group = known.lock()) return group;
  auto group = CudaRankGroup::open(m_module, session, static_cast<int>(config.tensor_parallel));
  if (group) known = *group;
  return group;
}

Result<std::shared_ptr<const CudaWeights>> CudaResources::weights(
    const std::shared_ptr<CudaSession>& session,
    const std::shared_ptr<const ModelCheckpoint>& checkpoint, const RunConfig& config) {
  WeightOptions options;
  options.weights = config.weight_dtype;
  options.lm_head = config.lm_head_dtype;
  options.stacked = config.fused_qkv || config.fused_gate_up;
  options.quantisation = quant_spec(config);
  options.quantise_lm_head = options.quantisation && config.quantise_lm_head;
  std::erase_if(m_loaded, [](const Loaded& entry) { return entry.loaded.expired(); });
  for (const Loaded& entry : m_loaded) {
    if (entry.checkpoint.lock() == checkpoint && same_wishes(entry.options, options)) {
      if (auto loaded = entry.loaded.lock()) return loaded;
    }
  }
  auto loaded = CudaWeights::load(session, checkpoint, options);
  if (loaded) m_loaded.push_back({checkpoint, options, *loaded});
  return loaded;
}

Result<std::unique_ptr<Backend>> CudaResources::open(
    const std::shared_ptr<const ModelCheckpoint>& checkpoint, const RunConfig& config) {
  const std::lock_guard lock(m_mutex);
  if (const auto beyond = features_beyond_llama(checkpoint->description()); !beyond.empty()) {
    return fail(ErrorKind::engine,
                fmt::format("knob backend: cuda: this {} model has {}, which runs on the host only "
                            "in this version; give --set backend=host",
                            checkpoint->description().model_type, fmt::join(beyond, ", ")));
  }
  if (auto fits = check_combination(config, checkpoint->description()); !fits) {
    return tl::unexpected(fits.error());
  }
  auto session = this->session(static_cast<int>(config.cuda_streams));
  if (!session) {
    Error error = session.error();
    error.message =
        fmt::format("knob backend: cuda: {}; or give --set backend=host", error.message);
    return tl::unexpected(std::move(error));
  }
  auto ranks = group(*session, config);
  if (!ranks) return tl::unexpected(ranks.error());
  auto loaded = weights(*session, checkpoint, config);
  if (!loaded) return tl::unexpected(loaded.error());
  return std::make_unique<CudaBackend>(*std::move(session), *std::move(loaded), config,
                                       *std::move(ranks));
}

}  // namespace driftscope
