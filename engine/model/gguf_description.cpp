// SPDX-License-Identifier: Apache-2.0
#include "engine/model/gguf_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/model/gguf_fields.h"
#include "engine/model/gguf_rope.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Names = ExpertDescription::Names;
using Window = GgufArchitecture::Window;

constexpr std::array<GgufArchitecture, 10> kArchitectures{{
    {.name = "llama", .model_type = "llama", .mixture = "mixtral", .paired_rows = true},
    {.name = "qwen2", .model_type = "qwen2", .mixture = ""},
    {.name = "qwen3", .model_type = "qwen3", .mixture = ""},
    {.name = "qwen2moe", .model_type = "", .mixture = "qwen2_moe", .mixture_only = true},
    {.name = "qwen3moe", .model_type = "", .mixture = "qwen3_moe", .mixture_only = true},
    {.name = "gemma2", .model_type = "gemma2", .mixture = "", .window = Window::even},
    {.name = "gemma3", .model_type = "gemma3_text", .mixture = "", .window = Window::all_but_sixth},
    {.name = "phi3", .model_type = "phi3", .mixture = ""},
    {.name = "gpt2", .model_type = "gpt2", .mixture = ""},
    {.name = "gpt-oss",
     .model_type = "",
     .mixture = "gpt_oss",
     .mixture_only = true,
     .window = Window::even},
}};

// What the runtime assumes where a gemma2 file leaves the key out.
constexpr std::int64_t kGemma2Window = 4096;
constexpr double kGemma2AttentionCap = 50.0;
constexpr double kGemma2FinalCap = 30.0;
constexpr double kGemma3LocalTheta = 10000.0;
constexpr double kGptOssLimit = 7.0;
// The models whose attention is scaled by hidden / heads, told by their depth.
constexpr std::int64_t kGemma2LargestLayers = 46;
constexpr std::int64_t kGemma3LargestLayers = 62;
constexpr std::int64_t kHighestWidth = std::int64_t{1} << 31;

// Lives during describe_gguf() only.
class Reader {
 public:
  explicit Reader(const GgufSource& source)
      : m_source(source), m_fields(source.header(), source.name()) {}
  Result<ModelDescription> run();

 private:
  [[nodiscard]] std::string key(std::string_view suffix) const {
    return fmt::format("{}.{}", m_architecture->name, suffix);
  }
  [[nodiscard]] bool has_tensor(std::string_view name) const { return m_source.contains(name); }
  [[nodiscard]] bool is(std::string_view name) const { return m_architecture->name == name; }
  [[nodiscard]] bool is_gemma() const { return is("gemma2") || is("gemma3"); }
  void read_architecture();
  void read_shape();
  void read_head();
  void read_parts();
  void read_experts();
  void read_expert_widths(ExpertDescription& moe);
  void read_gemma();
  void read_window();
  void read_listed_layers();
  void read_token_ids();
  void read_stored_dtype();

  const GgufSource& m_source;
  GgufFields m_fields;
  const GgufArchitecture* m_architecture = nullptr;
  ModelDescription m_description;
};

Result<ModelDescription> Reader::run() {
  read_architecture();
  if (!m_fields.good()) return m_fields.failure();
  for (const auto step : {&Reader::read_shape, &Reader::read_head, &Reader::read_parts,
                          &Reader::read_experts, &Reader::read_gemma, &Reader::read_window}) {
    (this->*step)();
    if (!m_fields.good()) return m_fields.failure();
  }
  if (!m_description.learned_positions) {
    if (auto done = read_gguf_rope(m_source, m_fields, *m_architecture, m_description); !done) {
      return tl::unexpected(std::move(done.error()));
    }
  }
  read_token_ids();
  read_stored_dtype();
  if (!m_fields.good()) return m_fields.failure();
  return std::move(m_description);
}

void Reader::read_architecture() {
  const std::string name(m_fields.text("general.architecture"));
  if (!m_fields.good()) return;
  m_architecture = find_gguf_architecture(name);
  if (m_architecture != nullptr) return;
  m_fields.refuse(fmt::format("general.architecture \"{}\" is not supported; supported are {}",
                              escape_for_display(name.substr(0, 100)),
                              supported_gguf_architectures()));
}

void Reader::read_shape() {
  ModelDescription& d = m_description;
  d.hidden = m_fields.count(key("embedding_length"));
  d.layers = m_fields.count(key("block_count"));
  d.heads = m_fields.count(key("attention.head_count"));
  d.kv_heads = m_fields.count(key("attention.head_count_kv"), d.heads);
  d.intermediate = m_fields.count(key("feed_forward_length"));
  d.max_positions = m_fields.count(key("context_length"));
  d.norm = is("gpt2") ? NormKind::layer : NormKind::rms;
  d.rms_epsilon =
      m_fields.positive(key(d.norm == NormKind::layer ? "attention.layer_norm_epsilon"
                                                      : "attention.layer_norm_rms_epsilon"));
  if (!m_fields.good()) return;
  // Each layer has several tensors: nothing is allocated for more layers than there can be.
  if (static_cast<std::uint64_t>(d.layers) > m_source.size()) {
    return m_fields.refuse(fmt::format("metadata {} {} cannot be, the file has {} tensors",
                                       key("block_count"), d.layers, m_source.size()));
  }
  const auto embedding = m_source.find("token_embd.weight");
  if (!embedding) return m_fields.adopt(embedding.error());
  const std::int64_t rows = embedding->shape.size() == 2 ? embedding->shape.front() : 1;
  d.vocabulary = m_fields.count(key("vocab_size"), rows);
}

void Reader::read_head() {
  ModelDescription& d = m_description;
  const bool divides = d.hidden % d.heads == 0;
  d.head_dim = m_fields.count(key("attention.key_length"),
                              divides ? std::optional(d.hidden / d.heads) : std::nullopt);
  const std::int64_t value = m_fields.count(key("attention.value_length"), d.head_dim);
  if (!m_fields.good()) return;
  if (value != d.head_dim) {
    return m_fields.refuse(
        fmt::format("keys of {} and values of {} dimensions per head are not "
                    "supported",
                    d.head_dim, value));
  }
  if (d.heads % d.kv_heads != 0 || d.head_dim % 2 != 0 || d.heads * d.head_dim > kHighestWidth) {
    m_fields.refuse(
        fmt::format("{} heads of {} dimensions on {} key/value heads cannot be; "
                    "convert the model again",
                    d.heads, d.head_dim, d.kv_heads));
  }
}

// Optional tensors are there or not; the first layer speaks for all.
void Reader::read_parts() {
  ModelDescription& d = m_description;
  d.tied_embeddings = !has_tensor("output.weight");
  d.qkv_bias = has_tensor("blk.0.attn_q.bias") || has_tensor("blk.0.attn_qkv.bias");
  d.output_bias = has_tensor("blk.0.attn_output.bias");
  d.mlp_bias = has_tensor("blk.0.ffn_up.bias");
  d.qk_norm = has_tensor("blk.0.attn_q_norm.weight");
  if (is("gpt2")) {
    d.gated = false;
    d.activation = Activation::gelu_tanh;
    d.learned_positions = true;
  }
  d.attention_sinks = is("gpt-oss");
}

void Reader::read_experts() {
  ModelDescription& d = m_description;
  const bool may = !m_architecture->mixture.empty();
  const std::int64_t experts = m_fields.whole(key("expert_count"), 0);
  if (!m_fields.good()) return;
  if ((experts > 0 && !may) || (experts == 0 && m_architecture->mixture_only)) {
    return m_fields.refuse(fmt::format("metadata {} is {}: such {} models are not supported",
                                       key("expert_count"), experts, m_architecture->name));
  }
  d.model_type = std::string(experts > 0 ? m_architecture->mixture : m_architecture->model_type);
  if (experts == 0) return;
  ExpertDescription moe;
  moe.experts = experts;
  moe.chosen = m_fields.count(key("expert_used_count"));
  if (m_fields.good() && moe.chosen > experts) {
    return m_fields.refuse(fmt::format("metadata {} is {}, more than {} experts",
                                       key("expert_used_count"), moe.chosen, experts));
  }
  if (!m_fields.good()) return;
  moe.names = is("llama") ? Names::block_sparse_moe : is("gpt-oss") ? Names::gpt_oss : Names::mlp;
  moe.renormalise = m_fields.flag(key("expert_weights_norm"), is("llama") || is("qwen3moe"));
  read_expert_widths(moe);
  for (std::int64_t layer = 0; layer < d.layers; ++layer) {
    if (!has_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", layer))) {
      moe.dense_layers.push_back(layer);
    }
  }
  moe.router_bias = has_tensor("blk.0.ffn_gate_inp.bias");
  moe.biases = has_tensor("blk.0.ffn_down_exps.bias");
  if (is("gpt-oss")) {
    moe.softmax_of_chosen = true;
    moe.swiglu_limit = kGptOssLimit;
  }
  d.moe = std::move(moe);
}

void Reader::read_expert_widths(ExpertDescription& moe) {
  const std::int64_t all = m_description.intermediate;
  const bool own_width = !is("llama");
  moe.intermediate = m_fields.count(key("expert_feed_forward_length"),
                                    own_width ? std::max<std::int64_t>(1, all / moe.chosen) : all);
  if (has_tensor("blk.0.ffn_gate_shexp.weight")) {
    moe.shared_intermediate = m_fields.count(key("expert_shared_feed_forward_length"), all);
  }
  constexpr std::int64_t kSoftmax = 1;
  constexpr std::int64_t kSoftmaxOfChosen = 3;
  const std::int64_t usual = is("gpt-oss") ? kSoftmaxOfChosen : kSoftmax;
  const std::int64_t gating = m_fields.whole(key("expert_gating_func"), usual);
  if (m_fields.good() && gating != usual && gating != 0) {
    m_fields.refuse(fmt::format("metadata {} {} is not supported for {}", key("expert_gating_func"),
                                gating, m_architecture->name));
  }
}

void Reader::read_gemma() {
  ModelDescription& d = m_description;
  if (!is_gemma()) return;
  d.post_norms = true;
  d.activation = Activation::gelu_tanh;
  d.embedding_scale = std::sqrt(static_cast<double>(d.hidden));
  const bool largest = d.layers == (is("gemma2") ? kGemma2LargestLayers : kGemma3LargestLayers);
  const double width = largest ? static_cast<double>(d.hidden) / static_cast<double>(d.heads)
                               : static_cast<double>(d.head_dim);
  d.attention_scale = 1.0 / std::sqrt(width);
  const auto cap = [this](std::string_view suffix, double absent) {
    return absent > 0.0 || m_fields.has(key(suffix)) ? m_fields.positive(key(suffix), absent) : 0.0;
  };
  d.attention_softcap = cap("attn_logit_softcapping", is("gemma2") ? kGemma2AttentionCap : 0.0);
  d.final_softcap = cap("final_logit_softcapping", is("gemma2") ? kGemma2FinalCap : 0.0);
  if (is("gemma3")) {
    d.local_rope_theta = m_fields.positive(key("rope.freq_base_swa"), kGemma3LocalTheta);
  }
}

void Reader::read_window() {
  ModelDescription& d = m_description;
  d.sliding_window =
      m_fields.whole(key("attention.sliding_window"), is("gemma2") ? kGemma2Window : 0);
  if (!m_fields.good() || d.sliding_window == 0) return;
  if (m_fields.has(key("attention.sliding_window_pattern"))) return read_listed_layers();
  if (m_architecture->window == Window::every) return;
  const bool even = m_architecture->window == Window::even;
  for (std::int64_t layer = 0; layer < d.layers; ++layer) {
    d.sliding_layers.push_back(even ? layer % 2 == 0 : layer % 6 != 5);
  }
}

// A flag per layer, or a number n: each n-th layer sees everything.
void Reader::read_listed_layers() {
  ModelDescription& d = m_description;
  const std::string name = key("attention.sliding_window_pattern");
  std::vector<std::int64_t> flags;
  if (m_fields.find(name)->is_list) {
    flags = m_fields.integers(name);
  } else {
    const std::int64_t period = m_fields.whole(name);
    for (std::int64_t layer = 0; m_fields.good() && layer < d.layers; ++layer) {
      flags.push_back(period == 0 || layer % period != period - 1 ? 1 : 0);
    }
  }
  if (!m_fields.good()) return;
  if (flags.size() != static_cast<std::size_t>(d.layers)) {
    return m_fields.refuse(
        fmt::format("metadata {} has {} entries for {} layers", name, flags.size(), d.layers));
  }
  for (const std::int64_t flag : flags) d.sliding_layers.push_back(flag != 0 ? 1 : 0);
}

void Reader::read_token_ids() {
  ModelDescription& d = m_description;
  const auto read = [&](std::string_view suffix) -> std::optional<TokenId> {
    const std::string name = fmt::format("tokenizer.ggml.{}_token_id", suffix);
    const auto id = m_fields.id(name);
    if (!id) return std::nullopt;
    if (*id >= d.vocabulary) {
      m_fields.refuse(fmt::format("metadata {} is {}; it must be a token id from 0 to {}", name,
                                  *id, d.vocabulary - 1));
      return std::nullopt;
    }
    return TokenId{static_cast<std::int32_t>(*id)};
  };
  d.bos = read("bos");
  for (const std::string_view suffix : {"eos", "eot", "eom"}) {
    const auto id = read(suffix);
    if (id && std::find(d.eos.begin(), d.eos.end(), *id) == d.eos.end()) d.eos.push_back(*id);
  }
}

// The type that all matrices have; f32 where they differ, which holds the values of every one.
void Reader::read_stored_dtype() {
  std::optional<Dtype> common;
  for (const std::string_view name : m_source.tensor_names()) {
    const auto view = m_source.find(std::string(name));
    if (!view || view->shape.size() < 2) continue;
    if (common && *common != view->dtype) {
      m_description.stored_dtype = Dtype::f32;
      return;
    }
    common = view->dtype;
  }
  m_description.stored_dtype = common.value_or(Dtype::f32);
}

}  // namespace

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  const auto* found =
      std::find_if(kArchitectures.begin(), kArchitectures.end(),
                   [name](const GgufArchitecture& row) { return row.name == name; });
  return found == kArchitectures.end() ? nullptr : found;
}

std::string supported_gguf_architectures() {
  std::string list;
  for (const GgufArchitecture& row : kArchitectures) {
    if (!list.empty()) list += ", ";
    list += row.name;
  }
  return list;
}

Result<ModelDescription> describe_gguf(const GgufSource& source) { return Reader(source).run(); }

}  // namespace driftscope
