// SPDX-License-Identifier: Apache-2.0
// How often the tests of populations find a change where there is none, and where there is one.
#pragma once

#include <cstdint>

namespace driftscope::bench {

// Prints the tables. `experiments`: of each row.
void print_test_rates(std::int64_t experiments, std::uint64_t seed);

}  // namespace driftscope::bench
