// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file: refused with one line, or every value and tensor lies inside, and the
// tensors of supported types can be decoded.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/model/gguf.h"

namespace {

void decode_some(const driftscope::GgufTensor& tensor, std::string_view file) {
  if (!tensor.format->supported()) return;
  const driftscope::TensorView view = driftscope::view_of_elements(
      *tensor.format, file.substr(tensor.begin, tensor.end - tensor.begin), tensor.shape, "t");
  std::array<float, 300> values{};
  const auto count = std::min<std::int64_t>(view.elements(), values.size());
  view.values(0, count, values.data());
  view.values(view.elements() - count, count, values.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header = driftscope::parse_gguf(file, "fuzz.gguf");
  if (!header) {
    if (header.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  for (const auto& [key, value] : header->values) {
    if (value.offset + value.bytes.size() > size) std::abort();
    if (value.type == driftscope::GgufType::string) {
      static_cast<void>(driftscope::gguf_strings(value));
    }
  }
  for (const auto& [name, tensor] : header->tensors) {
    if (tensor.begin > tensor.end || tensor.end > size) std::abort();
    decode_some(tensor, file);
  }
  return 0;
}
