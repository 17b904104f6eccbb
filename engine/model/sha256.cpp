// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <vector>

#include "engine/model/checkpoint.h"
#include "engine/model/files.h"
#include "engine/model/hash_cache.h"

namespace driftscope {
namespace {

constexpr std::size_t kReadBytes = std::size_t{4} << 20U;

class Sha256 {
 public:
  Sha256() : m_context(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    m_good = m_context != nullptr && EVP_DigestInit_ex(m_context.get(), EVP_sha256(), nullptr) == 1;
  }
  void add(std::string_view bytes) {
    m_good = m_good && EVP_DigestUpdate(m_context.get(), bytes.data(), bytes.size()) == 1;
  }
  // Lower-case hexadecimal; empty when the library failed (out of memory, or SHA-256 forbidden).
  [[nodiscard]] std::string finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int length = 0;
    m_good = m_good && EVP_DigestFinal_ex(m_context.get(), digest.data(), &length) == 1;
    if (!m_good) return {};
    std::string text;
    for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> m_context;
  bool m_good = false;
};

Result<std::string> hash_contents(const std::filesystem::path& path) {
  auto file = RegularFile::open(path);
  if (!file) return tl::unexpected(std::move(file.error()));
  Sha256 hash;
  std::vector<char> buffer(std::min(kReadBytes, file->bytes() + 1));
  for (;;) {
    auto got = file->read_some(buffer.data(), buffer.size());
    if (!got) return tl::unexpected(std::move(got.error()));
    if (*got == 0) break;
    hash.add({buffer.data(), *got});
  }
  std::string text = hash.finish();
  if (text.empty()) {
    return fail(ErrorKind::engine, "OpenSSL: SHA-256 is not available; repair its installation");
  }
  return text;
}

}  // namespace

std::string sha256_of_bytes(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  const HashCache cache(path, std::time(nullptr));
  if (auto known = cache.find()) return *known;
  auto computed = hash_contents(path);
  if (computed) cache.store(*computed);
  return computed;
}

}  // namespace driftscope
