// SPDX-License-Identifier: Apache-2.0
// Internal to analysis/probe: what climb_ladder() is made of.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/probe/ladder.h"

namespace driftscope {

// "replica 0, 8 in flight".
[[nodiscard]] std::string name_of(const ProbeGroup& group);
// By stage, requests in flight and replica; with the classes of their answers.
[[nodiscard]] std::vector<ProbeGroup> group_exchanges(const std::vector<Exchange>& exchanges);
// From the answers to questions about the servers themselves.
[[nodiscard]] std::vector<ProbeVersion> versions_of(const std::vector<Exchange>& exchanges);
// Model, fingerprint, provider and revision of the weights that an answer names.
[[nodiscard]] std::string version_of(const Response& response);
// What was asked for in the first sample; empty where the server refused the field.
[[nodiscard]] std::optional<double> temperature_asked(const std::vector<Exchange>& exchanges);
// In words, how two answers of different classes part: by their texts, else by their numbers.
[[nodiscard]] std::string parting(const Response& a, const Response& b);

// Chance that classes line up with groups of these sizes, each group one class of its own, if the
// answers had nothing to do with the groups. At most 1.
[[nodiscard]] double chance_of_separation(const std::vector<std::int64_t>& sizes);
// Chance that all `odd` answers fall among the `together` and none among the `alone`.
[[nodiscard]] double chance_of_company(std::int64_t alone, std::int64_t together, std::int64_t odd);

// The chance if there were so many times as many answers that fall as these do.
using ChanceOfTimes = std::function<double(std::int64_t times)>;
// " N, if they go on like this": the --samples with which the chance falls to `most`. Empty where
// more than a hundredfold is needed.
[[nodiscard]] std::string more_samples(const ChanceOfTimes& chance, double most,
                                       const std::vector<ProbeGroup>& groups);

// Cause, sentence, what is not ruled out.
void find_cause(const std::vector<Exchange>& exchanges, ProbeReport& report);
void add_probe_findings(const std::vector<Exchange>& exchanges, ProbeReport& report);

}  // namespace driftscope
