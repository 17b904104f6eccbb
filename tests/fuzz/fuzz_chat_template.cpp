// SPDX-License-Identifier: Apache-2.0
// Any bytes as a chat template, rendered with a fixed conversation: refused with one line, or a
// text within the limits. Seeds: tests/text/chat_templates/*.jinja
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/text/jinja/template.h"

namespace {

using Json = nlohmann::ordered_json;

const Json& conversation() {
  static const Json context = Json::parse(R"({
      "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true,
      "messages": [{"role": "system", "content": "S\u00e9"},
                   {"role": "user", "content": " hi \n"},
                   {"role": "assistant", "content": "<think>a</think>b",
                    "tool_calls": [{"id": "abcdefghi", "function": {"name": "f", "arguments": {"x": 1.5}}}]},
                   {"role": "tool", "content": "7"}],
      "tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {}}}}]})");
  return context;
}

void check_error(const driftscope::Error& error) {
  if (error.message.find('\n') != std::string::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using driftscope::jinja::Template;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto parsed = Template::parse(source, "fuzz.jinja");
  if (!parsed) {
    check_error(parsed.error());
    return 0;
  }
  constexpr std::size_t kMostBytes = std::size_t{1} << 20U;
  const auto rendered =
      parsed->render(conversation(), {}, {.steps = 200'000, .output_bytes = kMostBytes});
  if (!rendered) {
    check_error(rendered.error());
  } else if (rendered->text.size() > kMostBytes) {
    std::abort();
  }
  return 0;
}
