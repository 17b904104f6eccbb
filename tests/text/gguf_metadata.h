// SPDX-License-Identifier: Apache-2.0
// The tokenizer keys of a GGUF file, read as the format's specification says and without the
// checks of the product's reader: only for files that are known to be good.
#pragma once

#include <filesystem>

#include "engine/text/gguf_tokenizer.h"

namespace driftscope {

[[nodiscard]] GgufVocabulary read_gguf_vocabulary(const std::filesystem::path& path);

}  // namespace driftscope
