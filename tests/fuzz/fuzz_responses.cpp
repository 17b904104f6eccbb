// SPDX-License-Identifier: Apache-2.0
// Any bytes as a saved response, bare or in a container: refused with one line, or answers that
// can be graded, described and compared.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "analysis/import/response_file.h"
#include "analysis/responses/response_compare.h"
#include "analysis/responses/response_lint.h"

namespace {

struct Container {
  std::string_view before;
  std::string_view after;
};
constexpr std::array kContainers{
    Container{"", ""},
    Container{"[", "]"},
    Container{"data: ", "\n\n"},
    Container{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
    Container{"{\"response\":", "}"},
    Container{"{\"custom_id\":\"q\",\"response\":{\"body\":", "}}"},
    Container{"{\"log\":{\"entries\":[", "]}}"},
    Container{"\xFF\xFE", ""}};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  // A first byte below ten is no text: it chooses the container.
  if (size > 0 && data[0] < kContainers.size()) {
    const Container& container = kContainers[data[0]];
    text = std::string(container.before) + text.substr(1) + std::string(container.after);
  }
  auto responses = driftscope::read_responses(text, "input");
  if (!responses) {
    if (responses.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  for (driftscope::Response& response : *responses) {
    driftscope::grade_response(response);
    static_cast<void>(driftscope::lint_response(response));
    if (!std::is_sorted(response.choices.begin(), response.choices.end(),
                        [](const auto& a, const auto& b) { return a.index < b.index; })) {
      std::abort();
    }
  }
  if (responses->size() > 1 && !responses->front().choices.empty() &&
      !responses->back().choices.empty()) {
    static_cast<void>(driftscope::compare_responses(responses->front(), 0, responses->back(), 0));
  }
  return 0;
}
