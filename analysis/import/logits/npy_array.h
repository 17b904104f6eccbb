// SPDX-License-Identifier: Apache-2.0
// One array in NumPy's format: "\x93NUMPY", version, length of the header, the header as a Python
// dictionary (descr, fortran_order, shape), the elements.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/import/logits/logit_file.h"

namespace driftscope {

struct NpyArray {
  ElementType type = ElementType::f32;
  std::string descr;  // as in the file: "<f4"
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
  std::string_view data;  // exactly the elements
};

// `what` names the array in messages. Errors: malformed.
[[nodiscard]] Result<NpyArray> parse_npy(std::string_view bytes, const LogitSource& source,
                                         std::string_view what);
// Logits of an array, which must stay where it is. Two-byte elements without a float type ("<u2",
// "|V2", "<V2", as libraries without bf16 save it) are bf16: no other program stores logits so.
[[nodiscard]] Result<void> set_npy_rows(LogitFile& file, const LogitSource& source,
                                        const NpyArray& array, std::string_view what);

}  // namespace driftscope
