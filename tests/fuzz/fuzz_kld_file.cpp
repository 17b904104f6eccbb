// SPDX-License-Identifier: Apache-2.0
// Any bytes as a llama.cpp logit file: refused with one line, or a file that is compared with
// itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "analysis/import/kld_file.h"
#include "analysis/responses/kld_statistics.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!driftscope::is_kld_file(bytes)) return 0;
  const auto file = driftscope::read_kld_file(bytes, "input");
  if (!file) {
    if (file.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  static_cast<void>(driftscope::compare_kld_files(*file, *file));
  return 0;
}
