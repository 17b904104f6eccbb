// SPDX-License-Identifier: Apache-2.0
#include "tests/model/gguf_builder.h"

#include <cstring>

#include "tests/model/checkpoint_builder.h"

namespace driftscope {

std::string u32_text(std::uint32_t value) { return u64_bytes(value).substr(0, 4); }

std::string f32_text(float value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return bytes;
}

std::string gguf_text(std::string_view text) { return u64_bytes(text.size()) + std::string(text); }

void GgufBuilder::add_texts(std::string_view key, const std::vector<std::string>& values) {
  std::string list = u32_text(8) + u64_bytes(values.size());
  for (const std::string& value : values) list += gguf_text(value);
  add(key, 9, list);
}

void GgufBuilder::add_f32s(std::string_view key, const std::vector<float>& values) {
  std::string list = u32_text(6) + u64_bytes(values.size());
  for (const float value : values) list += f32_text(value);
  add(key, 9, list);
}

std::string gguf_info(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                      std::uint32_t type, std::uint64_t offset) {
  std::string info = gguf_text(name) + u32_text(static_cast<std::uint32_t>(dimensions.size()));
  for (const std::uint64_t size : dimensions) info += u64_bytes(size);
  return info + u32_text(type) + u64_bytes(offset);
}

std::string GgufBuilder::bytes() const {
  std::string data;
  std::string descriptions;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const BuiltGgufTensor& tensor = tensors[i];
    const std::uint64_t offset = i == 1 && offset_of_second != 0 ? offset_of_second : data.size();
    descriptions += gguf_info(tensor.name, tensor.dimensions, tensor.type, offset);
    std::uint64_t elements = 1;
    for (const std::uint64_t size : tensor.dimensions) elements *= size;
    data += tensor.bytes.empty() ? std::string(4 * elements, '\0') : tensor.bytes;
    data.append((alignment - data.size() % alignment) % alignment, '\0');
  }
  if (!infos.empty()) {
    descriptions.clear();
    for (const std::string& info : infos) descriptions += info;
  }
  const std::size_t count = infos.empty() ? tensors.size() : infos.size();
  std::string file = magic + u32_text(version) + u64_bytes(count + extra_tensors) +
                     u64_bytes(pairs.size() + extra_pairs);
  for (const std::string& pair : pairs) file += pair;
  file += descriptions;
  file.append((alignment - file.size() % alignment) % alignment, '\0');
  return file + data + tail;
}

GgufBuilder small_llama() {
  GgufBuilder file;
  file.add_text("general.architecture", "llama");
  file.add_u32("llama.embedding_length", 8);
  file.add_u32("llama.block_count", 2);
  file.add_u32("llama.attention.head_count", 2);
  file.add_u32("llama.attention.head_count_kv", 1);
  file.add_u32("llama.feed_forward_length", 12);
  file.add_u32("llama.context_length", 64);
  file.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  int next = 0;
  const auto tensor = [&](const std::string& name, std::vector<std::uint64_t> dimensions) {
    std::uint64_t elements = 1;
    for (const std::uint64_t size : dimensions) elements *= size;
    std::string bytes;
    for (std::uint64_t i = 0; i < elements; ++i) {
      bytes += f32_text(static_cast<float>(++next) / 1024.0F);
    }
    file.tensors.push_back({name, std::move(dimensions), 0, std::move(bytes)});
  };
  tensor("token_embd.weight", {8, 16});
  tensor("output_norm.weight", {8});
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    tensor(layer + "attn_norm.weight", {8});
    tensor(layer + "ffn_norm.weight", {8});
    tensor(layer + "attn_q.weight", {8, 8});
    tensor(layer + "attn_k.weight", {8, 4});
    tensor(layer + "attn_v.weight", {8, 4});
    tensor(layer + "attn_output.weight", {8, 8});
    tensor(layer + "ffn_gate.weight", {8, 12});
    tensor(layer + "ffn_up.weight", {8, 12});
    tensor(layer + "ffn_down.weight", {12, 8});
  }
  return file;
}

}  // namespace driftscope
