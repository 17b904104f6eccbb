// SPDX-License-Identifier: Apache-2.0
#include "tests/device/device_checks.h"

#include <bit>
#include <chrono>
#include <stdexcept>

#include "engine/backend/cuda/cuda_backend.h"
#include "tests/device/model_parity.h"
#include "tests/device/random_checkpoint.h"

namespace driftscope::parity {
namespace {

using Clock = std::chrono::steady_clock;
using Bits = std::vector<std::uint32_t>;

void check(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

std::unique_ptr<Backend> open(const std::shared_ptr<const CudaModule>& module,
                              const std::shared_ptr<const ModelCheckpoint>& checkpoint,
                              const std::string& settings) {
  auto backend = CudaResources(module).open(checkpoint, config_of(settings + " backend=cuda"));
  if (!backend) throw std::runtime_error(backend.error().message);
  return *std::move(backend);
}

// Logits of one sequence's decode steps beside `neighbours` others.
Bits decode_bits(Backend& backend, int neighbours) {
  std::vector<std::unique_ptr<KvCache>> caches;
  std::vector<std::vector<TokenId>> next(static_cast<std::size_t>(neighbours) + 1);
  for (std::size_t i = 0; i < next.size(); ++i) caches.push_back(*backend.create_cache(16));
  Bits bits;
  for (int step = 0; step < 5; ++step) {
    std::vector<BatchSequence> sequences;
    for (std::size_t i = 0; i < next.size(); ++i) {
      next[i] = {TokenId{(step * 7 + static_cast<int>(i) * 3) % 50}};
      sequences.push_back({caches[i].get(), next[i], i == 0 ? 1 : 0, false});
    }
    check(backend.forward({.phase = Phase::decode, .sequences = sequences}, {}));
    const auto logits = backend.logits(0, 1);
    if (!logits) throw std::runtime_error(logits.error().message);
    for (const float value : *logits) bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

SelfTest compare(std::string name, const Bits& a, const Bits& b, bool wanted_equal) {
  const bool equal = a == b;
  return {.name = std::move(name),
          .passed = equal == wanted_equal,
          .detail = equal ? "the same bits" : "different bits"};
}

// ---- benches ----

RandomModel half_billion() {
  return {.type = "qwen2",
          .hidden = 896,
          .layers = 24,
          .heads = 14,
          .kv_heads = 2,
          .head_dim = 64,
          .intermediate = 4864,
          .vocabulary = 151936,
          .tied = true};
}

double weight_bytes(const ModelCheckpoint& checkpoint) {
  double bytes = static_cast<double>(checkpoint.lm_head().bytes());
  for (std::int64_t i = 0; i < checkpoint.description().layers; ++i) {
    const LayerTensors& layer = checkpoint.layer(i);
    for (const TensorView* tensor :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      bytes += static_cast<double>(tensor->bytes());
    }
  }
  return bytes;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Bytes read and written per second by copies on the device.
double copy_bandwidth(const std::shared_ptr<const CudaModule>& module) {
  auto session = CudaSession::open(module, 1);
  if (!session) throw std::runtime_error(session.error().message);
  constexpr std::size_t kBytes = std::size_t{1} << 30U;
  auto from = (*session)->allocate("a bench buffer", kBytes);
  auto to = (*session)->allocate("a bench buffer", kBytes);
  if (!from || !to) throw std::runtime_error("no memory for the bandwidth bench");
  const auto round = [&](int copies) {
    const auto start = Clock::now();
    for (int i = 0; i < copies; ++i) {
      (*session)->call((*session)->table().copy, to->data(), static_cast<const void*>(from->data()),
                       kBytes);
    }
    (*session)->call((*session)->table().synchronize);
    return 2.0 * static_cast<double>(kBytes) * copies / seconds_since(start);
  };
  round(2);
  const double rate = round(20);
  check((*session)->status());
  return rate;
}

struct Speed {
  double prefill = 0.0;  // tokens per second
  double decode = 0.0;
};

Speed measure(Backend& backend, int rows, double seconds) {
  auto cache = *backend.create_cache(4096);
  std::vector<TokenId> prompt;
  for (int i = 0; i < rows; ++i) prompt.push_back(TokenId{i * 31 % 1000});
  const std::vector<BatchSequence> whole{{cache.get(), prompt, 1, false}};
  const auto timed = [&](const std::vector<BatchSequence>& sequences, Phase phase, double budget) {
    double spent = 0.0;
    int calls = 0;
    for (int i = 0; i < 3 || (spent < budget && i < 2000); ++i) {
      if (cache->length() > 2048) cache->truncate(static_cast<std::int64_t>(rows));
      if (phase == Phase::prefill) cache->truncate(0);
      const auto start = Clock::now();
      check(backend.forward({.phase = phase, .sequences = sequences}, {}));
      if (!backend.logits(0, 1)) throw std::runtime_error("no logits");
      if (i < 2) continue;  // memory, libraries and graphs are set up
      spent += seconds_since(start);
      ++calls;
    }
    return static_cast<double>(calls) / spent;
  };
  Speed speed;
  speed.prefill = timed(whole, Phase::prefill, seconds / 2) * rows;
  const std::vector<TokenId> one{TokenId{5}};
  const std::vector<BatchSequence> step{{cache.get(), one, 1, false}};
  speed.decode = timed(step, Phase::decode, seconds / 2);
  return speed;
}

}  // namespace

std::vector<SelfTest> run_self_tests(const std::shared_ptr<const CudaModule>& module) {
  const auto checkpoint = random_checkpoint({});
  const auto bits = [&](const std::string& settings, int neighbours) {
    return decode_bits(*open(module, checkpoint, settings), neighbours);
  };
  const Bits alone = bits("", 0);
  return {compare("a rerun changes nothing", alone, bits("", 0), true),
          compare("neighbours change nothing under invariant", alone, bits("", 7), true),
          compare("neighbours change bits under shape_dependent",
                  bits("matmul_policy=shape_dependent", 0),
                  bits("matmul_policy=shape_dependent", 7), false),
          compare("a CUDA graph changes nothing", alone, bits("cuda_graph=true", 0), true),
          compare("four streams change nothing", alone, bits("cuda_streams=4", 0), true)};
}

std::vector<BenchLine> run_benches(const std::shared_ptr<const CudaModule>& module,
                                   double seconds) {
  std::vector<BenchLine> lines;
  const double bandwidth = copy_bandwidth(module);
  lines.push_back({"copy bandwidth", bandwidth * 1e-9, "GB/s", 0.0, ""});
  const auto checkpoint = random_checkpoint(half_billion());
  const double bytes = weight_bytes(*checkpoint);
  for (const std::string settings :
       {"activation_dtype=bf16", "activation_dtype=bf16 cuda_graph=true",
        "activation_dtype=bf16 matmul_policy=shape_dependent",
        "activation_dtype=bf16 matmul_policy=vendor",
        "activation_dtype=bf16 matmul_policy=vendor cuda_graph=true"}) {
    try {
      const Speed speed = measure(*open(module, checkpoint, settings), 256, seconds / 5.0);
      lines.push_back(
          {"decode, " + settings, speed.decode, "tokens/s", speed.decode * bytes / bandwidth, ""});
      lines.push_back({"prefill of 256, " + settings, speed.prefill, "tokens/s", 0.0, ""});
    } catch (const std::exception& error) {
      lines.push_back({"decode, " + settings, 0.0, "tokens/s", 0.0, error.what()});
    }
  }
  return lines;
}

}  // namespace driftscope::parity
