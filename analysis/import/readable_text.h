// SPDX-License-Identifier: Apache-2.0
// From the bytes of a saved file to text that can be read: what an editor, a shell or a proxy put
// around a response is taken off; what no reader here can open is refused with its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/result.h"

namespace driftscope {

// UTF-16 (with a mark, or recognisable without) becomes UTF-8 in `storage`; a mark of UTF-8 is
// skipped; the fences of a Markdown block are taken off; the marks of "curl -v" at the starts of
// lines too. The result views `bytes` or `storage`. `name` begins the messages. Errors: malformed:
// compressed files, archives, images of memory (pickle, Parquet, HDF5 …), UTF-32.
[[nodiscard]] Result<std::string_view> readable_text(std::string_view bytes, std::string_view name,
                                                     std::string& storage);

// Why a text that is no JSON is none, where that can be told: a page of HTML, the print of a
// Python object, a text that ends early. Empty: nothing is known.
[[nodiscard]] std::string why_no_json(std::string_view text);

// The body of "Transfer-Encoding: chunked" as it went over the wire, joined. Empty: it is not so.
[[nodiscard]] std::optional<std::string> join_chunks(std::string_view text);

// Standard or URL alphabet, padding optional, white space skipped. Empty: it is no base64.
[[nodiscard]] std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace driftscope
