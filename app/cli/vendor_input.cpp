// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_input.h"

#include <utility>

#include "app/cli/experiment.h"

namespace driftscope::cli {

Result<VendorInput> VendorInput::open(const std::string& path) {
  VendorInput input;
  input.m_name = path == "-" ? "standard input" : path;
  if (path == "-") {
    auto read = read_text_file(path);
    if (!read) return tl::unexpected(read.error());
    input.m_text = std::move(*read);
    return input;
  }
  auto opened = MappedFile::open(path);
  if (!opened) return tl::unexpected(opened.error());
  input.m_mapped = std::move(*opened);
  return input;
}

}  // namespace driftscope::cli
