// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/kld_file.h"

#include <fmt/format.h>

#include <bit>
#include <cassert>
#include <cstring>
#include <string>

#include "kernels/base/display_text.h"

// Values are taken as they lie in the file.
static_assert(std::endian::native == std::endian::little);

namespace driftscope {
namespace {

constexpr std::string_view kMagic = "_logits_";
constexpr std::size_t kHeaderBytes = 20;
constexpr std::int64_t kMostContext = 1 << 24;
constexpr std::int64_t kMostVocabulary = 1 << 24;

template <class T>
T value_at(std::string_view bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::size_t record_bytes(std::int64_t vocabulary) {
  return 8 + 2 * static_cast<std::size_t>((vocabulary + 1) / 2 * 2);
}

tl::unexpected<Error> broken(std::string_view name, const std::string& what) {
  return fail(ErrorKind::malformed, fmt::format("{}: {}", escape_for_display(name), what));
}

}  // namespace

bool is_kld_file(std::string_view bytes) { return bytes.starts_with(kMagic); }

Result<KldFile> read_kld_file(std::string_view bytes, std::string_view name) {
  if (!is_kld_file(bytes)) return broken(name, "does not begin with \"_logits_\"");
  if (bytes.size() < kHeaderBytes) return broken(name, "ends within its header");
  KldFile file;
  file.context = value_at<std::int32_t>(bytes, 8);
  file.vocabulary = value_at<std::int32_t>(bytes, 12);
  file.chunks = value_at<std::int32_t>(bytes, 16);
  if (file.context < 4 || file.context > kMostContext) {
    return broken(name, fmt::format("offset 8: a context of {} cannot be", file.context));
  }
  if (file.vocabulary < 2 || file.vocabulary > kMostVocabulary) {
    return broken(name, fmt::format("offset 12: a vocabulary of {} cannot be", file.vocabulary));
  }
  if (file.chunks < 1) {
    return broken(name, fmt::format("offset 16: {} chunks cannot be", file.chunks));
  }
  const auto tokens =
      static_cast<std::uint64_t>(file.chunks) * static_cast<std::uint64_t>(file.context);
  const std::uint64_t left = bytes.size() - kHeaderBytes;
  if (tokens > left / 4) return broken(name, "ends within its tokens");
  const std::uint64_t records = left - tokens * 4;
  const std::uint64_t expected =
      static_cast<std::uint64_t>(file.rows()) * record_bytes(file.vocabulary);
  if (records != expected) {
    return broken(name,
                  fmt::format("{} bytes of records where {} are due for {} chunks; the run that "
                              "wrote it was cut off, or the file is of another version",
                              records, expected, file.chunks));
  }
  file.tokens.resize(tokens);
  std::memcpy(file.tokens.data(), bytes.data() + kHeaderBytes, tokens * 4);
  for (const std::int32_t token : file.tokens) {
    if (token < 0 || token >= file.vocabulary) {
      return broken(
          name, fmt::format("token {} is outside of the vocabulary of {}", token, file.vocabulary));
    }
  }
  file.records = bytes.substr(kHeaderBytes + tokens * 4);
  return file;
}

std::int32_t KldFile::scored_token(std::int64_t row) const {
  const std::int64_t chunk = row / rows_of_chunk();
  const std::int64_t place = context / 2 + row % rows_of_chunk() + 1;
  return tokens[static_cast<std::size_t>(chunk * context + place)];
}

float KldFile::floor_of(std::int64_t row) const {
  return value_at<float>(records, static_cast<std::size_t>(row) * record_bytes(vocabulary) + 4);
}

void KldFile::log_probabilities(std::int64_t row, std::span<float> target) const {
  assert(static_cast<std::int64_t>(target.size()) == vocabulary);
  const std::size_t offset = static_cast<std::size_t>(row) * record_bytes(vocabulary);
  const auto scale = value_at<float>(records, offset);
  const auto minimum = value_at<float>(records, offset + 4);
  for (std::size_t i = 0; i < target.size(); ++i) {
    target[i] =
        scale * static_cast<float>(value_at<std::uint16_t>(records, offset + 8 + 2 * i)) + minimum;
  }
}

}  // namespace driftscope
