// SPDX-License-Identifier: Apache-2.0
// Taking credentials out of what is written.
#pragma once

#include <string>
#include <vector>

namespace driftscope {

// Every occurrence of a credential becomes "[key]": as it is, in the spellings of JSON, URLs and
// HTML also where single characters are spelled so, as hexadecimal digits, in base64 wherever it
// stands in a longer text, whatever the case of its letters. What a server makes of a key by
// turning, cutting or enciphering it is not recognised.
void redact_text(std::string& text, const std::vector<std::string>& secrets);

}  // namespace driftscope
