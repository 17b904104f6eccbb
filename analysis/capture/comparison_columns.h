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
// Reads them, the entries without rankings. Throws hdf5::Hdf5Failure.
[[nodiscard]] std::vector<StepMetrics> read_comparison_columns(const hdf5::SafeFile& file);
// Checks all columns that a closed capture holds. Throws hdf5::Hdf5Failure.
void verify_comparison_columns(const hdf5::SafeFile& file);

}  // namespace driftscope
