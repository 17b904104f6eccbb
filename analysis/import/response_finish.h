// SPDX-License-Identifier: Apache-2.0
// What all formats have in common once a response is whole. Internal to analysis/import.
#pragma once

#include "analysis/import/response.h"

namespace driftscope {

// Tool arguments as canonical JSON; steps of a list that runs over reasoning and content to the
// channel they belong to; marks at the end as such; ids without logprobs as steps. May be called
// again on the same response.
void finish_response(Response& response);

}  // namespace driftscope
