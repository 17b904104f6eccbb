// SPDX-License-Identifier: Apache-2.0
// The formats of logit files: one row each. To add one: a reader in a file beside this one, its row
// in logit_formats.cpp, a test with bytes made by hand.
#pragma once

#include <span>
#include <string_view>

#include "analysis/import/logits/logit_file.h"

namespace driftscope {

struct LogitFormat {
  std::string_view name;
  std::string_view summary;
  bool (*sniff)(std::string_view bytes);
  Result<LogitFile> (*read)(const LogitSource& source);
};
[[nodiscard]] std::span<const LogitFormat> logit_formats();
// The first row that knows the bytes, or null.
[[nodiscard]] const LogitFormat* find_logit_format(std::string_view bytes);
// Errors: malformed, "NAME: what", also where no format knows the bytes.
[[nodiscard]] Result<LogitFile> read_logit_file(const LogitSource& source);

namespace logits {
bool is_npy(std::string_view bytes);
Result<LogitFile> read_npy(const LogitSource& source);
bool is_npz(std::string_view bytes);
Result<LogitFile> read_npz(const LogitSource& source);
bool is_safetensors(std::string_view bytes);
Result<LogitFile> read_safetensors_logits(const LogitSource& source);
bool is_results_gguf(std::string_view bytes);
Result<LogitFile> read_results_gguf(const LogitSource& source);
bool is_kld(std::string_view bytes);
Result<LogitFile> read_kld(const LogitSource& source);
bool is_hdf5(std::string_view bytes);
Result<LogitFile> read_own_hdf5(const LogitSource& source);
}  // namespace logits

}  // namespace driftscope
