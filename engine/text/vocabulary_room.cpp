// SPDX-License-Identifier: Apache-2.0
#include "engine/text/vocabulary_room.h"

#include <fmt/format.h>

#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::int64_t kFreeGaps = 65536;

}  // namespace

tl::unexpected<Error> malformed_part(const std::string& name, std::string_view what) {
  return fail(ErrorKind::malformed, fmt::format("{}: {}; fix the tokenizer", name, what));
}

std::string shown_token(std::string_view token) {
  return '"' + escape_for_display(token.substr(0, 80)) + '"';
}

Result<void> make_room(const std::string& name, std::int64_t id, std::size_t known,
                       std::vector<TokenEntry>& tokens) {
  if (id >= 4 * static_cast<std::int64_t>(known) + kFreeGaps) {
    return malformed_part(name, fmt::format("id {} leaves too many ids without a token", id));
  }
  if (static_cast<std::size_t>(id) >= tokens.size()) {
    tokens.resize(static_cast<std::size_t>(id) + 1);
  }
  return {};
}

}  // namespace driftscope
