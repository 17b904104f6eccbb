// SPDX-License-Identifier: Apache-2.0
// Logits of every position, as other programs save them: what is known of the file, and its rows on
// demand. Everything that a file does not say stays unknown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

// Limits of every reader, before memory is taken.
inline constexpr std::int64_t kMostLogitRows = std::int64_t{1} << 28;
inline constexpr std::int64_t kMostLogitColumns = std::int64_t{1} << 24;

// How the elements lie in the file; all little-endian.
enum class ElementType : std::uint8_t { f16, bf16, f32, f64, i32, i64, u8, u16, u32, u64, i8, i16 };
[[nodiscard]] std::string_view element_name(ElementType type);
[[nodiscard]] std::size_t element_bytes(ElementType type);
// Widens, or for f64 rounds to nearest, `target.size()` numbers. Precondition: a float type, and
// `bytes` holds that many.
void read_numbers(ElementType type, std::string_view bytes, std::span<float> target);
// Empty where one does not fit 32 bits. Precondition: an integer type.
[[nodiscard]] std::vector<std::int32_t> read_ids(ElementType type, std::string_view bytes);
[[nodiscard]] bool is_float_type(ElementType type);

struct LogitFinding {
  std::string id;
  std::string text;
};

// Rows [rows, vocabulary]. Lives as long as the bytes that it was read from.
struct LogitFile {
  std::string format;                 // row of the table of formats
  std::string element;                // of the stored numbers: "f32", "bf16", "u16 codes", …
  std::string values = "not_stated";  // or "logit", "log_probability"
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
  // The token that each row is scored with, [rows]; -1: not known. Empty: the file has none.
  std::vector<std::int32_t> tokens;
  bool scored = true;  // rows of a given text; false: `tokens` are what the model went on with
  std::vector<std::int32_t> prompt;
  std::string model;
  std::vector<std::pair<std::string, std::string>> facts;  // for the envelope: "context", "512"
  std::vector<LogitFinding> findings;
  // Fills one row. Errors: malformed (compressed or chunked data can turn out damaged).
  std::function<Result<void>(std::int64_t row, std::span<float> target)> read;
};

// What a reader gets.
struct LogitSource {
  std::string_view bytes;      // the whole file, mapped
  std::string name;            // for messages, made printable
  std::filesystem::path path;  // for libraries that open by name; empty where there is none
};

// "NAME: WHAT", malformed.
[[nodiscard]] tl::unexpected<Error> broken_file(const LogitSource& source, std::string_view what);

// A matrix whose rows lie one after the other. Errors: malformed, where the bytes do not hold it.
[[nodiscard]] Result<void> set_dense_rows(LogitFile& file, const LogitSource& source,
                                          ElementType type, std::string_view bytes,
                                          std::int64_t rows, std::int64_t vocabulary);
// The two extents of a matrix of logits; a leading extent of 1 (a batch of one) is dropped. Errors:
// malformed, naming the shape and what is wanted.
[[nodiscard]] Result<std::pair<std::int64_t, std::int64_t>> matrix_extents(
    const LogitSource& source, std::string_view what, const std::vector<std::uint64_t>& shape);
// One id per row, or one id per place of a text (then row i is scored with id i + 1 and the last
// row with none). Errors: malformed, for any other count or an id outside of the vocabulary.
[[nodiscard]] Result<void> set_tokens(LogitFile& file, const LogitSource& source,
                                      std::vector<std::int32_t> ids, bool places_of_text);

}  // namespace driftscope
