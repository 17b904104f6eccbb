// SPDX-License-Identifier: Apache-2.0
#include "app/cli/npy.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace driftscope::cli {
namespace {

tl::unexpected<Error> cannot_write(const std::string& path) {
  return fail(ErrorKind::output,
              fmt::format("{}: cannot write ({}); check the path and the free space", path,
                          std::strerror(errno)));
}

}  // namespace

Result<NpyWriter> NpyWriter::create(const std::string& path, std::int64_t rows,
                                    std::int64_t columns) {
  NpyWriter writer;
  writer.m_path = path;
  writer.m_file.reset(std::fopen((path + ".part").c_str(), "wb"));
  if (!writer.m_file) return cannot_write(path);
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  // Magic, version, length and header together are a multiple of 64 bytes, ending in a newline.
  constexpr std::size_t kPrefix = 10;
  header.append(63 - (kPrefix + header.size()) % 64, ' ');
  header += '\n';
  std::string prefix("\x93NUMPY\x01\x00", 8);
  prefix += static_cast<char>(header.size() & 0xffU);
  prefix += static_cast<char>(header.size() >> 8U);
  prefix += header;
  if (std::fwrite(prefix.data(), 1, prefix.size(), writer.m_file.get()) != prefix.size()) {
    return cannot_write(path);
  }
  return writer;
}

Result<void> NpyWriter::append(std::span<const float> row) {
  if (std::fwrite(row.data(), sizeof(float), row.size(), m_file.get()) != row.size()) {
    return cannot_write(m_path);
  }
  return {};
}

Result<void> NpyWriter::finish() {
  if (std::fclose(m_file.release()) != 0) return cannot_write(m_path);
  if (std::rename((m_path + ".part").c_str(), m_path.c_str()) != 0) return cannot_write(m_path);
  return {};
}

}  // namespace driftscope::cli
