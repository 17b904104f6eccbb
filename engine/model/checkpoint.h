// SPDX-License-Identifier: Apache-2.0
// A checkpoint on disk, opened at once and read lazily.
#pragma once

#include <cstddef>
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

// How the values of a tensor come to be that a file does not hold as plain elements in row-major
// order: codes in blocks, rows in another order, a matrix stored the other way round.
class TensorDecoder {
 public:
  virtual ~TensorDecoder() = default;
  // Elements [first, first + count) of the row-major tensor, each computed as the format defines
  // it, in f32. Safe from several threads; the same bits for every way of cutting the range.
  virtual void decode(std::int64_t first, std::int64_t count, float* values) const = 0;
  // The format's name as it is shown: "Q4_K", "GPTQ int4 group=128", "BF16, rows permuted".
  [[nodiscard]] virtual std::string format() const = 0;
  // Bytes that the file spends on the tensor, scales included.
  [[nodiscard]] virtual std::size_t stored_bytes() const = 0;
};

// Non-owning view of a tensor inside a mapped file.
struct TensorView {
  const void* data = nullptr;  // row-major elements of `dtype`; null where there is a decoder
  // The type that holds the values exactly: of the elements, or of what the decoder returns.
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;  // row-major
  std::string name;
  std::shared_ptr<const TensorDecoder> decoder = {};
  [[nodiscard]] bool present() const { return data != nullptr || decoder != nullptr; }
  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] std::size_t bytes() const;  // of the elements once they are plain
  // The same bytes of the same file (tied embeddings), so that one copy serves both.
  [[nodiscard]] bool same_storage(const TensorView& other) const {
    return data == other.data && decoder == other.decoder;
  }
  // Elements [first, first + count), widened to f32 exactly.
  void values(std::int64_t first, std::int64_t count, float* target) const;
  // All of them as `target_dtype`: the stored bits if the elements have that type already, else
  // widened exactly and rounded once, to nearest even.
  void convert(Dtype target_dtype, std::byte* target) const;
};

struct RopeScaling {
  // divisors: each frequency has its own (GGUF's rope_freqs.weight), held in short_divisors.
  enum class Kind : std::uint8_t { none, linear, llama3, yarn, longrope, divisors };
  Kind kind = Kind::none;
  double factor = 1.0;
  double low_frequency_factor = 1.0;   // llama3
  double high_frequency_factor = 4.0;  // llama3
  std::int64_t original_max_positions = 8192;
  double beta_fast = 32.0;  // yarn: turns over the original length where interpolation begins …
  double beta_slow = 1.0;   // … and where it is whole
  bool truncate = true;     // yarn: both edges rounded to whole dimensions
  // longrope: [rotary_dim / 2]; the long ones once a sequence exceeds original_max_positions.
  std::vector<double> short_divisors = {}, long_divisors = {};
  double attention_factor = 1.0;  // multiplies cos and sin (yarn, longrope)
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

enum class NormKind : std::uint8_t { rms, layer };  // layer: mean taken off, bias added
enum class Activation : std::uint8_t { silu, gelu_tanh, gelu_erf };

// The mixture of experts that takes the place of the feed-forward part in some layers.
struct ExpertDescription {
  // How the tensors are called: "block_sparse_moe.experts.N.w1" or "mlp.experts.N.gate_proj".
  // gpt_oss: all experts of a layer in one tensor, [expert, in, out], gate and up in alternate
  // columns.
  enum class Names : std::uint8_t { block_sparse_moe, mlp, gpt_oss };
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
  bool router_bias = false;
  bool biases = false;  // of the experts' three matrices
  // The weights are a softmax over the chosen logits, not over all of them.
  bool softmax_of_chosen = false;
  // gpt-oss: gate and up clamped (gate from above only), then
  // (up + 1) * gate * sigmoid(1.702 * gate). 0: plain SwiGLU.
  double swiglu_limit = 0.0;
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
  std::int64_t sliding_window = 0;  // tokens that a token sees, itself included; 0: no window
  std::vector<std::uint8_t> sliding_layers;  // [layers], 1: has the window; empty: every layer has
  NormKind norm = NormKind::rms;
  double rms_epsilon = 1e-5;  // of the norms, whatever their kind
  bool post_norms = false;    // a norm on what attention and feed-forward add (Gemma 2 and 3)
  Activation activation = Activation::silu;
  bool gated = true;               // false: down(activation(up(x))), there is no gate (GPT-2)
  double embedding_scale = 1.0;    // token embeddings are multiplied by it
  bool learned_positions = false;  // a row per position is added to the embedding; no rotation
  double attention_scale = 0.0;    // of q·k; 0: 1 / sqrt(head_dim)
  double attention_softcap = 0.0;  // scores become cap * tanh(score / cap); 0: none
  double final_softcap = 0.0;      // logits likewise
  bool attention_sinks = false;    // a learned score per head that takes weight and adds nothing
  std::int64_t rotary_dim = 0;     // leading dimensions of a head that are rotated; 0: all
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  // Layers with the window rotate by these where given (Gemma 3); else all by the ones above.
  std::optional<double> local_rope_theta;
  RopeScaling local_rope_scaling;
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;  // norm per head on q and k before RoPE (Qwen3, Gemma 3)
  ExpertDescription moe;
  Dtype stored_dtype = Dtype::f32;
  std::optional<TokenId> bos;
  std::vector<TokenId> eos;  // generation_config.json's if there, else config.json's
  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] std::int64_t window(std::int64_t layer) const;  // 0: none
  [[nodiscard]] bool rotates_locally(std::int64_t layer) const;
  [[nodiscard]] double query_scale() const;  // 1 / sqrt(head_dim) or attention_scale
  [[nodiscard]] std::int64_t rotated() const { return rotary_dim > 0 ? rotary_dim : head_dim; }
  // Inverse RoPE frequencies, [rotated() / 2], f64, with scaling applied (portable functions).
  // `local`: of the layers that rotate locally. `long_sequence`: longrope's second set.
  [[nodiscard]] std::vector<double> inverse_frequencies(bool local = false,
                                                        bool long_sequence = false) const;
};

struct ExpertTensors {
  TensorView gate, up;  // [expert intermediate, hidden]
  TensorView down;      // [hidden, expert intermediate]
  TensorView gate_bias = {}, up_bias = {}, down_bias = {};
};

// Norm weights are what the normalised value is multiplied by (Gemma's files hold one less).
struct LayerTensors {
  TensorView attention_norm;       // [hidden]
  TensorView attention_norm_bias;  // [hidden], NormKind::layer only; so ffn_norm_bias
  TensorView post_attention_norm;  // [hidden], post_norms only; so post_ffn_norm
  TensorView q, k, v;              // [heads * head_dim, hidden], [kv_heads * head_dim, hidden] x 2
  TensorView q_bias, k_bias, v_bias;
  TensorView q_norm, k_norm;  // [head_dim]
  TensorView o;               // [hidden, heads * head_dim]
  TensorView o_bias;
  TensorView sinks;                                   // [heads]
  TensorView ffn_norm, ffn_norm_bias, post_ffn_norm;  // [hidden]
  TensorView gate, up;  // [intermediate, hidden]; these and down are absent in layers with experts
  TensorView gate_bias, up_bias;
  TensorView down;  // [hidden, intermediate]
  TensorView down_bias;
  // Layers with experts only.
  TensorView router;                   // [experts, hidden]
  TensorView router_bias;              // [experts]
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

// How the files hold the weights where they do not as plain elements.
struct StoredQuantisation {
  std::string method;  // "AWQ int4, group 128, zero points"; empty: plain elements
  // What the method asks for besides the weights' values, a sentence each.
  std::vector<std::string> notes;
  std::vector<std::string> scale_files;  // names of the files that hold codes and scales, sorted
};

class ModelCheckpoint {
 public:
  virtual ~ModelCheckpoint() = default;
  // `path`: a directory with config.json and model.safetensors, or model.safetensors.index.json
  // with its shards; or a GGUF file. Errors: malformed, one line with file, field and offset.
  // Allocations made from a header never exceed the bytes of the file.
  [[nodiscard]] static Result<std::shared_ptr<const ModelCheckpoint>> open(
      const std::filesystem::path& path);

  [[nodiscard]] virtual const std::filesystem::path& path() const = 0;
  [[nodiscard]] virtual const ModelDescription& description() const = 0;
  [[nodiscard]] virtual const TensorView& embedding() const = 0;   // [vocabulary, hidden]
  [[nodiscard]] virtual const TensorView& final_norm() const = 0;  // [hidden]
  // [vocabulary, hidden]; the embedding where tied
  [[nodiscard]] virtual const TensorView& lm_head() const = 0;
  [[nodiscard]] virtual const LayerTensors& layer(std::int64_t index) const = 0;
  // Absent in most models: [hidden], NormKind::layer; [max_positions, hidden], learned_positions.
  [[nodiscard]] virtual const TensorView& final_norm_bias() const;
  [[nodiscard]] virtual const TensorView& position_embedding() const;
  // The number of tensors by how they are stored: "Q4_K 24, Q6_K 5, F32 11"; empty where each is
  // plain elements of one type.
  [[nodiscard]] virtual std::string weight_formats() const { return {}; }
  [[nodiscard]] virtual const StoredQuantisation& quantisation() const;  // plain unless overridden
  // Hashes every file (cached by size and mtime under XDG_CACHE_HOME); seconds on big files.
  [[nodiscard]] virtual Result<std::vector<CheckpointFile>> files() const = 0;
  // SHA-256 over the sorted lines "name size sha256\n" of the weight files and config.json, where
  // there is one.
  [[nodiscard]] virtual Result<std::string> combined_sha256() const = 0;
};

[[nodiscard]] Result<std::string> sha256_of_file(const std::filesystem::path& path);
[[nodiscard]] std::string sha256_of_bytes(std::string_view bytes);

}  // namespace driftscope
