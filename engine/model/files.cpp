// SPDX-License-Identifier: Apache-2.0
#include "engine/model/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

std::string system_message(int error) { return std::generic_category().message(error); }

std::string file_sort(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

std::string display_path(const std::filesystem::path& path) {
  return escape_for_display(path.string());
}

Result<RegularFile> RegularFile::open(const std::filesystem::path& path) {
  RegularFile file;
  file.m_name = display_path(path);
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  file.m_descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file.m_descriptor < 0) {
    return fail(ErrorKind::malformed, fmt::format("{}: cannot open it ({}); check the path and "
                                                  "its permissions",
                                                  file.m_name, system_message(errno)));
  }
  struct stat status {};
  if (::fstat(file.m_descriptor, &status) != 0) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: cannot read its size ({}); check the file system", file.m_name,
                            system_message(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorKind::malformed, fmt::format("{}: is {}, not a regular file; give a file",
                                                  file.m_name, file_sort(status.st_mode)));
  }
  file.m_bytes = static_cast<std::size_t>(status.st_size);
  file.m_hard_links = static_cast<std::size_t>(status.st_nlink);
  return file;
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : m_name(std::move(other.m_name)),
      m_descriptor(std::exchange(other.m_descriptor, -1)),
      m_bytes(other.m_bytes),
      m_hard_links(other.m_hard_links) {}

RegularFile& RegularFile::operator=(RegularFile&& other) noexcept {
  std::swap(m_name, other.m_name);
  std::swap(m_descriptor, other.m_descriptor);
  std::swap(m_bytes, other.m_bytes);
  std::swap(m_hard_links, other.m_hard_links);
  return *this;
}

RegularFile::~RegularFile() {
  if (m_descriptor >= 0) ::close(m_descriptor);
}

Result<std::size_t> RegularFile::read_some(char* target, std::size_t capacity) const {
  for (;;) {
    const ssize_t got = ::read(m_descriptor, target, capacity);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    return fail(ErrorKind::malformed, fmt::format("{}: cannot read it ({}); check the disk", m_name,
                                                  system_message(errno)));
  }
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  auto file = RegularFile::open(path);
  if (!file) return tl::unexpected(std::move(file.error()));
  MappedFile mapped;
  mapped.m_hard_links = file->hard_links();
  if (file->bytes() == 0) return mapped;  // mmap refuses a length of 0
  void* address = ::mmap(nullptr, file->bytes(), PROT_READ, MAP_PRIVATE, file->descriptor(), 0);
  if (address == MAP_FAILED) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: cannot map {} bytes ({}); free address space or raise ulimit -v",
                            display_path(path), file->bytes(), system_message(errno)));
  }
  mapped.m_data = static_cast<const char*>(address);
  mapped.m_size = file->bytes();
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : m_data(std::exchange(other.m_data, nullptr)),
      m_size(std::exchange(other.m_size, 0)),
      m_hard_links(other.m_hard_links) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(m_data, other.m_data);
  std::swap(m_size, other.m_size);
  std::swap(m_hard_links, other.m_hard_links);
  return *this;
}

MappedFile::~MappedFile() { release(); }

void MappedFile::forget(std::string_view part) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<std::size_t>(part.data() - m_data);
  const std::size_t first = (begin + page - 1) / page * page;
  // The last page of the file is whole even where the file ends inside of it.
  const std::size_t end = begin + part.size();
  const std::size_t last = end == m_size ? end : end / page * page;
  if (first >= last) return;
  (void)::madvise(const_cast<char*>(m_data) + first, last - first, MADV_DONTNEED);
}

void MappedFile::release() noexcept {
  if (m_data == nullptr) return;
  // munmap takes a non-const pointer but does not write through it.
  ::munmap(const_cast<char*>(m_data), m_size);
  m_data = nullptr;
}

Result<std::string> read_whole_file(const std::filesystem::path& path, std::size_t max_bytes) {
  auto file = RegularFile::open(path);
  if (!file) return tl::unexpected(std::move(file.error()));
  if (file->bytes() > max_bytes) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: {} bytes, more than the {} that such a file may have; "
                            "give the right file",
                            display_path(path), file->bytes(), max_bytes));
  }
  std::string text(file->bytes(), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    auto got = file->read_some(text.data() + filled, text.size() - filled);
    if (!got) return tl::unexpected(std::move(got.error()));
    if (*got == 0) break;  // the file shrank meanwhile
    filled += *got;
  }
  text.resize(filled);
  return text;
}

}  // namespace driftscope
