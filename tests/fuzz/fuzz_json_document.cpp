// SPDX-License-Identifier: Apache-2.0
// Any bytes as JSON: refused with one line, or a document whose every value can be visited, and
// whose canonical form is JSON of the same canonical form.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "analysis/import/json_document.h"

namespace {

std::size_t visit(driftscope::JsonValue value) {
  std::size_t count = 1 + value.text().size() + value.raw().size();
  static_cast<void>(value.number());
  static_cast<void>(value.integer());
  static_cast<void>(value.boolean());
  std::size_t children = 0;
  for (auto it = value.begin(); it != value.end(); ++it) {
    count += it.key().size() + visit(*it);
    ++children;
  }
  if (children != value.size()) std::abort();
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  driftscope::JsonDocument document;
  std::size_t used = 0;
  if (const auto done = document.parse_first(text, used); !done) {
    if (done.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  if (used > size || visit(document.root()) == 0) std::abort();
  const std::string canonical = document.root().canonical();
  driftscope::JsonDocument again;
  if (!again.parse(canonical) || again.root().canonical() != canonical) std::abort();
  return 0;
}
