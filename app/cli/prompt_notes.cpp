// SPDX-License-Identifier: Apache-2.0
#include "app/cli/prompt_notes.h"

#include <fmt/format.h>

#include <filesystem>

#include "kernels/base/display_text.h"

namespace driftscope::cli {

void note_prompt_naming_a_file(const PromptOptions& options, const Console& console) {
  if (!options.text || options.text->empty()) return;
  // A text too long for a path, or with a zero in it, names none.
  constexpr std::size_t kLongestPath = 4096;
  if (options.text->size() > kLongestPath || options.text->find('\0') != std::string::npos) return;
  std::error_code code;
  if (!std::filesystem::is_regular_file(*options.text, code)) return;
  console.note(
      fmt::format("--prompt {0}: is taken as the text itself, though a file of that name is "
                  "there; --prompt-file {0} reads the file",
                  escape_for_display(*options.text)));
}

}  // namespace driftscope::cli
