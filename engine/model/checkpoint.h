// SPDX-License-Identifier: Apache-2.0
// A checkpoint on disk, opened at once and read lazily.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/result.h"
#include "kernels/base/types.h"
#include "kernels/plan/dtype.h"

namespace driftscope {

// Non-owning view of a tensor inside a mapped file.
struct TensorView {
  const void* data = nullptr;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;  // row-major
  std::string name;
  [[nodiscard]] bool present() const { return data != nullptr; }
  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] std::size_t bytes() const;
};

struct RopeScaling {
  enum class Kind : std::uint8_t { none, linear, llama3 };
  Kind kind = Kind::none;
  double factor = 1.0;
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  std::int64_t original_max_positions = 8192;
};

// The mixture of experts that takes the place of the feed-forward part in some layers.
struct ExpertDescription {
  // How the tensors are called: "block_sparse_moe.experts.N.w1" or "mlp.experts.N.gate_proj".
  enum class Names : std::uint8_t { block_sparse_moe, mlp };
  std::int64_t experts = 0;              // 0: every layer is dense
  std::int64_t chosen = 0;               // per token, 1 ... experts
  std::int64_t intermediate = 0;         // width of an expert
  std::int64_t shared_intermediate = 0;  // of the shared expert; 0: there is none
  // The weights of the chosen experts are divided by their sum.
  bool renormalise = false;
  Names names = Names::mlp;
  // Layer l has experts if l + 1 is a multiple of `step` and l is not listed.
  std::int64_t step = 1;
  std::vector<std::int64_t> dense_layers;  // rising
  [[nodiscard]] bool in_layer(std::int64_t layer) const;
};

// What config.json says, checked for consistency. Both spellings (rope_theta / rope_parameters,
// torch_dtype / dtype) are read.
struct ModelDescription {
  std::string model_type;  // a row of architectures(): "llama", "qwen3_moe", …
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;
  std::int64_t sliding_window = 0;  // 0: none
  double rms_epsilon = 1e-5;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;  // RMSNorm per head on q and k before RoPE (Qwen3)
  ExpertDescription moe;
  Dtype stored_dtype = Dtype::f32;
  std::optional<TokenId> bos;
  std::vector<TokenId> eos;  // generation_config.json's if there, else config.json's
  [[nodiscard]] std::int64_t parameters() const;
  // Inverse RoPE frequencies, [head_dim / 2], f64, with scaling applied (portable functions).
  [[nodiscard]] std::vector<double> inverse_frequencies() const;
};

struct ExpertTensors {
  TensorView gate, up;  // [expert intermediate, hidden]
  TensorView down;      // [hidden, expert intermediate]
};

struct LayerTensors {
  TensorView attention_norm;  // [hidden]
  TensorView q, k, v;         // [heads * head_dim, hidden], [kv_heads * head_dim, hidden] x 2
  TensorView q_bias, k_bias, v_bias;
  TensorView q_norm, k_norm;  // [head_dim]
  TensorView o;               // [hidden, heads * head_dim]
  TensorView o_bias;
  TensorView ffn_norm;  // [hidden]
  TensorView gate, up;  // [intermediate, hidden]; these and down are absent in layers with experts
  TensorView gate_bias, up_bias;
  TensorView down;  // [hidden, intermediate]
  TensorView down_bias;
  // Layers with experts only.
  TensorView router;                   // [experts, hidden]
  std::vector<ExpertTensors> experts;  // [experts]
  TensorView shared_gate, shared_up;   // [shared intermediate, hidden]
  TensorView shared_down;              // [hidden, shared intermediate]
  TensorView shared_weight;            // [1, hidden]: its sigmoid scales the shared expert
};

struct CheckpointFile {
  std::filesystem::path path;
  std::uintmax_t bytes = 0;
  std::string sha256;  // lower-case hexadecimal
};

class ModelCheckpoint {
 public:
  virtual ~ModelCheckpoint() = default;
  // `path`: a directory with config.json and model.safetensors, or model.safetensors.index.json
  // with its shards. Errors: malformed, one line with file, field and offset. Allocations made
  // from a header never exceed the bytes of the file.
  [[nodiscard]] static Result<std::shared_ptr<const ModelCheckpoint>> open(
      const std::filesystem::path& path);

  [[nodiscard]] virtual const std::filesystem::path& path() const = 0;
  [[nodiscard]] virtual const ModelDescription& description() const = 0;
  [[nodiscard]] virtual const TensorView& embedding() const = 0;   // [vocabulary, hidden]
  [[nodiscard]] virtual const TensorView& final_norm() const = 0;  // [hidden]
  // [vocabulary, hidden]; the embedding where tied
  [[nodiscard]] virtual const TensorView& lm_head() const = 0;
  [[nodiscard]] virtual const LayerTensors& layer(std::int64_t index) const = 0;
  // Hashes every file (cached by size and mtime under XDG_CACHE_HOME); seconds on big files.
  [[nodiscard]] virtual Result<std::vector<CheckpointFile>> files() const = 0;
  // SHA-256 over the sorted lines "name size sha256\n" of the weight files and config.json.
  [[nodiscard]] virtual Result<std::string> combined_sha256() const = 0;
};

[[nodiscard]] Result<std::string> sha256_of_file(const std::filesystem::path& path);
[[nodiscard]] std::string sha256_of_bytes(std::string_view bytes);

}  // namespace driftscope
