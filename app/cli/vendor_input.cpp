// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_input.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "app/cli/experiment.h"

namespace driftscope::cli {
namespace {

// 64 MiB: an answer of 100,000 tokens with 20 alternatives each takes about that.
constexpr std::size_t kReadWhole = std::size_t{64} << 20;

}  // namespace

Result<VendorInput> VendorInput::open(const std::string& path) {
  VendorInput input;
  input.m_name = path == "-" ? "standard input" : path;
  if (path == "-") {
    auto read = read_text_file(path);
    if (!read) return tl::unexpected(read.error());
    input.m_text = std::move(*read);
    return input;
  }
  auto file = RegularFile::open(path);
  if (!file) return tl::unexpected(file.error());
  if (file->bytes() <= kReadWhole) {
    auto text = read_whole_file(path, kReadWhole);
    if (!text) return tl::unexpected(text.error());
    input.m_text = std::move(*text);
    return input;
  }
  auto mapped = MappedFile::open(path);
  if (!mapped) return tl::unexpected(mapped.error());
  input.m_mapped = std::move(*mapped);
  input.m_file = std::move(*file);
  return input;
}

namespace {

// Up to so many bytes from that place; fewer at the end of the file or after an error.
std::size_t read_at(int descriptor, std::size_t place, char* target, std::size_t wanted) {
  std::size_t filled = 0;
  while (filled < wanted) {
    const ssize_t got =
        ::pread(descriptor, target + filled, wanted - filled, static_cast<off_t>(place + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

}  // namespace

std::string_view VendorInput::fetch(std::string_view part, std::string& buffer) const {
  if (!m_file) return part;
  buffer.resize(part.size());
  const auto place = static_cast<std::size_t>(part.data() - m_mapped->bytes().data());
  const std::size_t got = read_at(m_file->descriptor(), place, buffer.data(), buffer.size());
  // A file that was cut since: what is there, as a broken line.
  return std::string_view(buffer).substr(0, got);
}

std::function<std::size_t(char*, std::size_t)> VendorInput::reader() const {
  if (!m_file) return {};
  return [this, place = std::size_t{0}](char* target, std::size_t capacity) mutable {
    const std::size_t got = read_at(m_file->descriptor(), place, target, capacity);
    place += got;
    return got;
  };
}

}  // namespace driftscope::cli
