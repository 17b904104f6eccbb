// SPDX-License-Identifier: Apache-2.0
#include "analysis/capture/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace driftscope {
namespace {

std::string_view remedy(int error) {
  switch (error) {
    case ENOENT:
      return "the folder does not exist; make it first";
    case EACCES:
    case EPERM:
      return "permission denied; choose a folder that you may write to";
    case EROFS:
      return "the file system is read-only; write elsewhere";
    case EISDIR:
      return "it is a folder; name a file";
    case ENOSPC:
    case EDQUOT:
      return "the disk is full; free space or write elsewhere";
    default:
      return std::strerror(error);
  }
}

}  // namespace

PartFile::PartFile(std::filesystem::path target, std::filesystem::path part, int descriptor)
    : m_target(std::move(target)), m_part(std::move(part)), m_descriptor(descriptor) {}

PartFile::PartFile(PartFile&& other) noexcept
    : m_target(std::move(other.m_target)),
      m_part(std::move(other.m_part)),
      m_descriptor(std::exchange(other.m_descriptor, -1)) {}

PartFile& PartFile::operator=(PartFile&& other) noexcept {
  std::swap(m_target, other.m_target);
  std::swap(m_part, other.m_part);
  std::swap(m_descriptor, other.m_descriptor);
  return *this;
}

PartFile::~PartFile() {
  if (m_descriptor >= 0) ::close(m_descriptor);
}

Result<PartFile> PartFile::claim(const std::filesystem::path& target) {
  std::error_code ignored;
  if (std::filesystem::is_directory(target, ignored)) {
    return fail(ErrorKind::output,
                fmt::format("{}: cannot write: {}", target.string(), remedy(EISDIR)));
  }
  const std::filesystem::path part = target.string() + ".part";
  const int descriptor = ::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return fail(ErrorKind::output,
                fmt::format("{}: cannot write: {}", part.string(), remedy(errno)));
  }
  PartFile file(target, part, descriptor);
  // HDF5 gives up its own lock once SWMR has started; this one says that a writer lives. It belongs
  // to the open file description, so readers in this process do not drop it by closing.
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(descriptor, F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES)) {
    return fail(
        ErrorKind::output,
        fmt::format("{}: another run is writing it; wait for its end or choose another name",
                    part.string()));
  }
  return file;
}

Result<void> PartFile::publish() {
  if (::rename(m_part.c_str(), m_target.c_str()) != 0) {
    return fail(ErrorKind::output, fmt::format("{}: cannot rename to {}: {}", m_part.string(),
                                               m_target.string(), remedy(errno)));
  }
  return {};
}

void PartFile::remove() {
  std::error_code ignored;
  std::filesystem::remove(m_part, ignored);
}

}  // namespace driftscope
