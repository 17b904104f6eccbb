// SPDX-License-Identifier: Apache-2.0
// The group /comparison: one column per metric, with the attributes by which a NeXus viewer plots
// it.
#pragma once

#include "analysis/capture/hdf5_read.h"
#include "analysis/capture/hdf5_write.h"
#include "analysis/compare/comparison.h"

namespace driftscope {

// Creates the columns, empty. Throws hdf5::Hdf5Failure.
void create_comparison_columns(const hdf5::Place& place, hid_t file);
// Fills them from the steps of `comparison`. Throws hdf5::Hdf5Failure.
void write_comparison_columns(const hdf5::Place& place, hid_t file, const Comparison& comparison);
// Checks the columns that a closed capture holds; returns how many. Throws hdf5::Hdf5Failure.
[[nodiscard]] std::int64_t verify_comparison_columns(const hdf5::SafeFile& file);

}  // namespace driftscope
