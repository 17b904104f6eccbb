// SPDX-License-Identifier: Apache-2.0
// The event stream of `driftscope probe --events`: JSON Lines.
//   {"event":"started","version":1,"command":"probe","endpoints":["https://host/v1"],"total":46}
//   {"event":"progress","phase":"asking","done":3,"total":46}
//   {"event":"exchange","stage":"alone","replica":0,"concurrency":1,"index":3,"status":200,
//    "attempts":1,"seconds":0.8,"error":""}
//   {"event":"finding",…}            as in `run --events`
//   {"event":"done","exit_code":0,"report":{…}}   the document of `probe --json`
//   {"event":"error",…}              as in `run --events`
// Schema: probe_event.schema.json.
#pragma once

#include <string>
#include <vector>

#include "analysis/probe/ladder.h"

namespace driftscope {

// Without the end of the line.
[[nodiscard]] std::string probe_started_event(const std::vector<std::string>& endpoints,
                                              std::int64_t total);
[[nodiscard]] std::string exchange_event(const Exchange& exchange);
[[nodiscard]] std::string probe_done_event(const ProbeReport& report, int exit_code);

}  // namespace driftscope
