// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/chunk_filters.h"

#include <zlib.h>

namespace driftscope::hdf5 {
namespace {

constexpr std::size_t kChecksumBytes = 4;

// At most `limit` bytes; more than that, or a stream that does not end, is refused.
std::vector<std::byte> inflate_bounded(const Place& place, const std::string& path,
                                       std::vector<std::byte>& packed, std::size_t limit) {
  std::vector<std::byte> unpacked(limit);
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw_rule(place, path, "zlib does not start");
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
  stream.avail_out = static_cast<uInt>(unpacked.size());
  const int status = inflate(&stream, Z_FINISH);
  const std::size_t produced = stream.total_out;
  inflateEnd(&stream);
  if (status != Z_STREAM_END) {
    throw_rule(place, path, "a chunk does not decompress to its size; the file is damaged");
  }
  unpacked.resize(produced);
  return unpacked;
}

// Shuffled data holds all first bytes of the elements, then all second ones …; a remainder that
// fills no element stands at the end as it is.
std::vector<std::byte> unshuffle(const std::vector<std::byte>& shuffled, std::size_t element_size) {
  std::vector<std::byte> plain(shuffled);
  const std::size_t elements = shuffled.size() / element_size;
  for (std::size_t byte = 0; byte < element_size; ++byte) {
    for (std::size_t i = 0; i < elements; ++i) {
      plain[i * element_size + byte] = shuffled[byte * elements + i];
    }
  }
  return plain;
}

}  // namespace

std::vector<std::byte> decode_chunk(const Place& place, const std::string& path,
                                    std::vector<std::byte> stored,
                                    const std::vector<H5Z_filter_t>& filters, unsigned skipped,
                                    std::size_t size, std::size_t element_size) {
  for (std::size_t i = filters.size(); i-- > 0;) {
    if ((skipped >> i & 1U) != 0) continue;
    switch (filters[i]) {
      case H5Z_FILTER_FLETCHER32:  // our own check value covers the rows
        if (stored.size() < kChecksumBytes) throw_rule(place, path, "a chunk is too short");
        stored.resize(stored.size() - kChecksumBytes);
        break;
      case H5Z_FILTER_DEFLATE:
        stored = inflate_bounded(place, path, stored, size + kChecksumBytes);
        break;
      case H5Z_FILTER_SHUFFLE:
        stored = unshuffle(stored, element_size);
        break;
      default:
        throw_rule(place, path, "an unknown filter");
    }
  }
  if (stored.size() != size) {
    throw_rule(place, path, "a chunk has not the size that its shape asks for");
  }
  return stored;
}

}  // namespace driftscope::hdf5
