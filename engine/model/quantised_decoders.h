// SPDX-License-Identifier: Apache-2.0
// How each quantised layout gives its values. In every one of them the value is
//
//   w[out, in] = (code - zero) * scale
//
// with the difference of two small integers taken exactly, the scale widened to f32 exactly (from
// F16, BF16, F32 or E8M0), and one multiplication in f32, rounded to nearest even. F16, BF16 and
// E8M0 scales leave nothing to round; an F32 scale does.
//
//   GPTQ    X.qweight I32 [in * bits / 32, out]: column `out` is a stream of bits-wide codes in
//           rising `in`, lowest bits first, going on from one word to the next below it.
//           X.qzeros I32 [groups, out * bits / 32]: likewise along a row, in rising `out`; the zero
//           is the stored number + 1 in format "gptq", the stored number in "gptq_v2".
//           X.scales [groups, out]. The group of an input is X.g_idx[in], or in / group_size where
//           there is no g_idx.
//   AWQ     X.qweight I32 [in, out / 8], X.qzeros I32 [in / group_size, out / 8]: eight 4-bit codes
//           a word, bits 4i to 4i+3 belong to column 8c + (0, 2, 4, 6, 1, 3, 5, 7)[i] (the "gemm"
//           version). X.scales [in / group_size, out].
//   FP8     X.weight F8_E4M3 or F8_E5M2 [out, in] with X.weight_scale (one, or [out, 1]) or
//           X.weight_scale_inv (one for each block of weight_block_size; it multiplies, whatever
//           its name says). code is the 8-bit float widened exactly, zero is 0.
//   INT8    compressed-tensors: X.weight I8 [out, in], X.weight_scale one, [out, 1] or
//           [out, groups], X.weight_zero_point I8 of the same shape or absent.
//   packed  compressed-tensors: X.weight_packed I32 [out, ceil(in / (32 / bits))], 32 / bits codes
//   a
//           word, lowest bits first, the code is the field less 2^(bits - 1). X.weight_shape
//           [2] is out, in. X.weight_scale as INT8; X.weight_zero_point absent or I32
//           [ceil(out / (32 / bits)), groups], packed along `out` in the same way; X.weight_g_idx
//           as in GPTQ, all -1 meaning that there is none.
//   MXFP4   X_blocks U8 [expert, out, in / 32, 16], X_scales U8 [expert, out, in / 32]: two 4-bit
//           floats (OCP E2M1) a byte, the lower half first; scale 2^(stored - 127). Shown as X
//           [expert, in, out].
#pragma once

#include <optional>
#include <string>

#include "engine/model/quantised_config.h"
#include "engine/model/tensor_source.h"

namespace driftscope {

// A view of `name` ("X.weight"; MXFP4: "X") decoded from what `stored` holds, or nothing where the
// tensor is not stored in that layout. The view's decoder points into `stored`. Errors: malformed,
// naming file, tensor and rule; every index that the decoder will use has been checked.
using QuantisedView = Result<std::optional<TensorView>>;
[[nodiscard]] QuantisedView gptq_view(const TensorSource& stored, const QuantisedConfig& config,
                                      const std::string& name);
[[nodiscard]] QuantisedView awq_view(const TensorSource& stored, const QuantisedConfig& config,
                                     const std::string& name);
// F8_E4M3, F8_E5M2 and I8 elements with scales beside them.
[[nodiscard]] QuantisedView scaled_view(const TensorSource& stored, const QuantisedConfig& config,
                                        const std::string& name);
[[nodiscard]] QuantisedView packed_view(const TensorSource& stored, const QuantisedConfig& config,
                                        const std::string& name);
[[nodiscard]] QuantisedView mxfp4_view(const TensorSource& stored, const std::string& name);

}  // namespace driftscope
