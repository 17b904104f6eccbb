// SPDX-License-Identifier: Apache-2.0
// Undoes HDF5's shuffle, deflate and fletcher32 in buffers of known size. The library's own inflate
// grows its buffer as long as a chunk tells it to.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/capture/hdf5_handle.h"

namespace driftscope::hdf5 {

// `stored` as it stands in the file, `filters` in the order of writing, bit i of `skipped` set
// where filter i was not applied. The result has exactly `size` bytes, elements of `element_size`.
[[nodiscard]] std::vector<std::byte> decode_chunk(const Place& place, const std::string& path,
                                                  std::vector<std::byte> stored,
                                                  const std::vector<H5Z_filter_t>& filters,
                                                  unsigned skipped, std::size_t size,
                                                  std::size_t element_size);

}  // namespace driftscope::hdf5
