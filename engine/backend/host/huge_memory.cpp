// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/huge_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace driftscope {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20U;
constexpr std::size_t kBlock = std::size_t{64} << 20U;
constexpr std::size_t kAlignment = 64;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::optional<std::uint64_t> number_in_file(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

}  // namespace

HugeArena::~HugeArena() { release(); }

HugeArena::HugeArena(HugeArena&& other) noexcept
    : m_blocks(std::exchange(other.m_blocks, {})),
      m_used_in_last(std::exchange(other.m_used_in_last, 0)),
      m_handed_out(std::exchange(other.m_handed_out, 0)),
      m_huge_pages_asked(other.m_huge_pages_asked) {}

HugeArena& HugeArena::operator=(HugeArena&& other) noexcept {
  if (this != &other) {
    release();
    m_blocks = std::exchange(other.m_blocks, {});
    m_used_in_last = std::exchange(other.m_used_in_last, 0);
    m_handed_out = std::exchange(other.m_handed_out, 0);
    m_huge_pages_asked = other.m_huge_pages_asked;
  }
  return *this;
}

void HugeArena::release() {
  for (const Block& block : m_blocks) munmap(block.data, block.bytes);
  m_blocks.clear();
}

Result<void> HugeArena::add_block(std::size_t bytes) {
  const std::size_t size = round_up(std::max(bytes, kBlock), kHugePage);
  // One huge page more, so that an aligned range lies inside; the ends are given back.
  void* raw =
      mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) {
    return fail(ErrorKind::engine,
                fmt::format("cannot allocate {} MiB for weights: {}; free memory or use a smaller "
                            "model",
                            size >> 20U, std::strerror(errno)));
  }
  auto* start = static_cast<std::byte*>(raw);
  const auto address = reinterpret_cast<std::uintptr_t>(raw);
  const std::size_t before = round_up(address, kHugePage) - address;
  if (before > 0) munmap(start, before);
  if (before < kHugePage) munmap(start + before + size, kHugePage - before);
  if (madvise(start + before, size, MADV_HUGEPAGE) != 0) m_huge_pages_asked = false;
  m_blocks.push_back({.data = start + before, .bytes = size});
  m_used_in_last = 0;
  return {};
}

Result<void*> HugeArena::allocate(std::size_t bytes) {
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  if (m_blocks.empty() || m_blocks.back().bytes - m_used_in_last < size) {
    if (auto added = add_block(size); !added) return tl::unexpected(added.error());
  }
  void* result = static_cast<std::byte*>(m_blocks.back().data) + m_used_in_last;
  m_used_in_last += size;
  m_handed_out += size;
  return result;
}

std::uint64_t available_memory() {
  std::uint64_t available = std::numeric_limits<std::uint64_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  std::uint64_t kibibytes = 0;
  std::string unit;
  while (meminfo >> key >> kibibytes) {
    if (key == "MemAvailable:") available = kibibytes * 1024;
    std::getline(meminfo, unit);
  }
  const auto limit = number_in_file("/sys/fs/cgroup/memory.max");
  const auto used = number_in_file("/sys/fs/cgroup/memory.current");
  if (limit && used) available = std::min(available, *limit > *used ? *limit - *used : 0);
  return available;
}

}  // namespace driftscope
