// SPDX-License-Identifier: Apache-2.0
// A capture as text, for goldens: every field and every row, floats as their bits.
#pragma once

#include <string>

#include "analysis/capture/capture.h"

namespace driftscope::testing {

[[nodiscard]] std::string capture_text(const CaptureReader& reader);

}  // namespace driftscope::testing
