// SPDX-License-Identifier: Apache-2.0
// Logits in files of tensors: safetensors, and the GGUF of llama.cpp's llama-results.
//
// llama-results writes KV path_model (text), in newer versions decode_steps (u32), and the tensors
// tokens (i32, [n]) and logits (f32). The extents of `logits` are declared as rows before
// vocabulary in GGML's order (first extent fastest), while the data lies row by row: position, then
// vocabulary. Rows: one per token; with decode_steps d > 0 then d rows that decode the tokens again
// in turn, n rows of the text computed once more, and one row after the first state was restored.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "analysis/import/logits/logit_formats.h"
#include "engine/model/gguf.h"
#include "engine/model/safetensors.h"
#include "kernels/base/display_text.h"

namespace driftscope::logits {
namespace {

struct TypeRow {
  std::string_view name;
  ElementType type;
};
constexpr std::array kTypes{TypeRow{"F16", ElementType::f16}, TypeRow{"BF16", ElementType::bf16},
                            TypeRow{"F32", ElementType::f32}, TypeRow{"F64", ElementType::f64},
                            TypeRow{"I32", ElementType::i32}, TypeRow{"I64", ElementType::i64},
                            TypeRow{"I16", ElementType::i16}, TypeRow{"I8", ElementType::i8},
                            TypeRow{"U8", ElementType::u8},   TypeRow{"U16", ElementType::u16},
                            TypeRow{"U32", ElementType::u32}, TypeRow{"U64", ElementType::u64}};

const SafetensorsEntry* find_entry(const std::vector<SafetensorsEntry>& entries,
                                   std::string_view name) {
  const auto found =
      std::find_if(entries.begin(), entries.end(),
                   [&](const SafetensorsEntry& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

const TypeRow* find_type(const SafetensorsEntry& entry) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const TypeRow& row) { return row.name == entry.dtype; });
  return found == kTypes.end() ? nullptr : found;
}

std::string_view data_of(const LogitSource& source, const SafetensorsEntry& entry) {
  return source.bytes.substr(entry.begin, entry.end - entry.begin);
}

std::string text_value(const GgufHeader& header, std::string_view key) {
  const auto found = header.values.find(key);
  if (found == header.values.end() || found->second.type != GgufType::string ||
      found->second.is_list || found->second.bytes.size() < 8) {
    return {};
  }
  return std::string(found->second.bytes.substr(8));
}

std::int64_t number_value(const GgufHeader& header, std::string_view key) {
  const auto found = header.values.find(key);
  if (found == header.values.end() || found->second.is_list) return 0;
  if (found->second.type != GgufType::u32 && found->second.type != GgufType::i32) return 0;
  std::uint32_t value = 0;
  std::memcpy(&value, found->second.bytes.data(), sizeof value);
  return value;
}

}  // namespace

bool is_safetensors(std::string_view bytes) {
  if (bytes.size() < kSafetensorsPrefixBytes + 2) return false;
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length >= 2 && length <= bytes.size() - kSafetensorsPrefixBytes &&
         bytes[kSafetensorsPrefixBytes] == '{';
}

Result<LogitFile> read_safetensors_logits(const LogitSource& source) {
  auto entries = parse_safetensors(source.bytes, source.name);
  if (!entries) return tl::unexpected<Error>(entries.error());
  const SafetensorsEntry* rows = find_entry(*entries, "logits");
  const SafetensorsEntry* normalised = rows == nullptr ? find_entry(*entries, "logprobs") : nullptr;
  if (normalised != nullptr) rows = normalised;
  const bool named = rows != nullptr;
  if (rows == nullptr && entries->size() == 1) rows = &entries->front();
  if (rows == nullptr) {
    return broken_file(source, fmt::format("has no tensor \"logits\" or \"logprobs\" among its {}; "
                                           "if it is a checkpoint: driftscope run --model",
                                           entries->size()));
  }
  const TypeRow* type = find_type(*rows);
  if (type == nullptr || !is_float_type(type->type)) {
    return broken_file(source, fmt::format("tensor {}: elements of type {} are not read as logits",
                                           escape_for_display(rows->name), rows->dtype));
  }
  const auto extents = matrix_extents(source, escape_for_display(rows->name), rows->shape);
  if (!extents) return tl::unexpected<Error>(extents.error());
  LogitFile file;
  file.values = normalised != nullptr ? "log_probability" : named ? "logit" : "not_stated";
  if (auto set = set_dense_rows(file, source, type->type, data_of(source, *rows), extents->first,
                                extents->second);
      !set) {
    return tl::unexpected<Error>(set.error());
  }
  for (const bool text : {false, true}) {
    const SafetensorsEntry* ids = find_entry(*entries, text ? "input_ids" : "tokens");
    if (ids == nullptr || !file.tokens.empty()) continue;
    const TypeRow* id_type = find_type(*ids);
    if (id_type == nullptr || is_float_type(id_type->type)) {
      return broken_file(source, "token ids are no integers");
    }
    if (auto set = set_tokens(file, source, read_ids(id_type->type, data_of(source, *ids)), text);
        !set) {
      return tl::unexpected<Error>(set.error());
    }
  }
  return file;
}

bool is_results_gguf(std::string_view bytes) { return bytes.starts_with("GGUF"); }

Result<LogitFile> read_results_gguf(const LogitSource& source) {
  auto header = parse_gguf(source.bytes, source.name);
  if (!header) return tl::unexpected<Error>(header.error());
  const auto tokens = header->tensors.find("tokens");
  const auto rows = header->tensors.find("logits");
  if (tokens == header->tensors.end() || rows == header->tensors.end()) {
    return broken_file(source,
                       "is a GGUF without the tensors tokens and logits, so not of llama-results; "
                       "if it is a checkpoint: driftscope run --model");
  }
  const GgufTensor& ids = tokens->second;
  const GgufTensor& values = rows->second;
  if (ids.shape.size() != 1 || values.shape.size() != 2 || ids.format == nullptr ||
      values.format == nullptr || values.format->name != "F32" || ids.format->name != "I32") {
    return broken_file(source, "tensors tokens and logits are not I32 [n] and F32 of two extents");
  }
  const std::int64_t count = ids.shape[0];
  const std::int64_t decode = number_value(*header, "decode_steps");
  const std::int64_t wanted = decode > 0 ? 2 * count + decode + 1 : count;
  // Declared [vocabulary][rows] although the rows lie one after the other; a version that declares
  // them rightly is told by the number of rows.
  std::int64_t vocabulary = 0;
  if (values.shape[1] == wanted) {
    vocabulary = values.shape[0];
  } else if (values.shape[0] == wanted) {
    vocabulary = values.shape[1];
  } else {
    return broken_file(source, fmt::format("logits of {} by {} do not fit {} tokens{}",
                                           values.shape[1], values.shape[0], count,
                                           decode > 0 ? fmt::format(" and {} decode steps", decode)
                                                      : std::string()));
  }
  LogitFile file;
  file.values = "logit";
  file.model = text_value(*header, "path_model");
  if (auto set = set_dense_rows(file, source, ElementType::f32,
                                source.bytes.substr(values.begin, values.end - values.begin),
                                wanted, vocabulary);
      !set) {
    return tl::unexpected<Error>(set.error());
  }
  const std::vector<std::int32_t> text =
      read_ids(ElementType::i32, source.bytes.substr(ids.begin, ids.end - ids.begin));
  for (const std::int32_t id : text) {
    if (id < 0 || id >= vocabulary) {
      return broken_file(
          source, fmt::format("token {} is outside of the vocabulary of {}", id, vocabulary));
    }
  }
  // Only the first pass over the text has a token that follows each place.
  file.tokens.assign(static_cast<std::size_t>(wanted), -1);
  std::copy(text.begin() + 1, text.end(), file.tokens.begin());
  if (decode > 0) {
    file.facts.emplace_back("decode_steps", std::to_string(decode));
    file.findings.push_back(
        {"decode_rows",
         fmt::format("rows {} to {} are {} decode steps, the text once more, and one "
                     "row after a state was restored",
                     count, wanted - 1, decode)});
  }
  return file;
}

}  // namespace driftscope::logits
