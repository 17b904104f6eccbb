// SPDX-License-Identifier: Apache-2.0
// Metadata of a GGUF file -> ModelDescription, by a table of architectures. What the file does not
// say (which layers slide, how attention is scaled, whether expert weights are renormalised) is as
// the runtime that the format belongs to has it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/model/checkpoint.h"
#include "engine/model/gguf_source.h"
#include "engine/model/tensor_table.h"

namespace driftscope {

struct GgufArchitecture {
  // Layers with the window where the file does not list them.
  enum class Window : std::uint8_t { every, even, all_but_sixth };
  std::string_view name;        // general.architecture; begins the keys
  std::string_view model_type;  // of the same model in Hugging Face layout
  std::string_view mixture;     // likewise, with experts; empty: it has none
  // Rows of q and k lie in the order for rotating neighbours (2i, 2i + 1).
  bool paired_rows = false;
  bool mixture_only = false;  // a file without experts is refused
  Window window = Window::every;
};

[[nodiscard]] const GgufArchitecture* find_gguf_architecture(std::string_view name);
[[nodiscard]] std::string supported_gguf_architectures();  // "llama, qwen2, …"

// Errors: malformed, naming the file, the key and the reason.
[[nodiscard]] Result<ModelDescription> describe_gguf(const GgufSource& source);

// The names of the tensors that such a file has, for bind_tensors().
[[nodiscard]] Naming gguf_naming(const ModelDescription& description, const GgufSource& source);
// Errors: malformed, where the file has a tensor that the description does not ask for: such a
// model computes something else.
[[nodiscard]] Result<void> check_all_used(const ModelDescription& description, const Naming& naming,
                                          const GgufSource& source);

}  // namespace driftscope
