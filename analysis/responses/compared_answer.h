// SPDX-License-Identifier: Apache-2.0
// Which part of an answer is compared: the numbers of steps in a ResponseComparison count these.
#pragma once

#include <string>
#include <vector>

#include "analysis/import/response.h"

namespace driftscope {

// The content; of a refusal without any content the refusal.
[[nodiscard]] const ResponseChannel& compared_channel(const ResponseChoice& choice);
// Its tokens without end marks, which some servers list and others do not.
[[nodiscard]] std::vector<ResponseStep> visible_steps(const ResponseChannel& channel);
// The same where they are, valid as long as the channel.
[[nodiscard]] std::vector<const ResponseStep*> places_of_visible_steps(
    const ResponseChannel& channel);
// Its text as sent, else what its tokens stand for.
[[nodiscard]] std::string channel_text(const ResponseChannel& channel);

}  // namespace driftscope
