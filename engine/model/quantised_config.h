// SPDX-License-Identifier: Apache-2.0
// quantization_config of a Hugging Face checkpoint: which method holds the weights, and its
// parameters.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

enum class QuantisedMethod : std::uint8_t { none, gptq, awq, fp8, compressed_tensors, mxfp4 };

struct QuantisedConfig {
  QuantisedMethod method = QuantisedMethod::none;
  unsigned bits = 0;            // gptq: 2, 3, 4, 8; awq: 4
  std::int64_t group_size = 0;  // inputs that share a scale; 0: all of a row, or not said
  bool symmetric = false;
  bool zeros_required =
      false;  // compressed-tensors: no group is symmetric, so zero points must be there
  bool reordered = false;  // gptq: desc_act, inputs quantised in order of their activations' size
  // gptq: the stored zero point is one less than the one that counts ("gptq" as opposed to
  // "gptq_v2").
  bool stored_zero_is_one_less = false;
  std::int64_t block_rows = 0, block_columns = 0;  // fp8: weight_block_size; 0: not by blocks
  std::vector<unsigned> packed_bits = {};          // compressed-tensors: of its groups
  std::int64_t ignored = 0;                        // modules (or patterns) that are listed as plain
  // How the method wants activations quantised ("fp8, scale of each tensor taken at run time");
  // empty: not at all.
  std::string activations = {};
  std::string kv_cache = {};  // likewise
  std::string text = {};      // "GPTQ int4, group 128, symmetric"; empty: not quantised
};

// `config`: the whole of config.json; `name` begins messages. Errors: malformed, naming the key;
// a method or a variant that cannot be read is refused by name with the list of what can.
[[nodiscard]] Result<QuantisedConfig> read_quantised_config(const nlohmann::json& config,
                                                            const std::string& name);

}  // namespace driftscope
