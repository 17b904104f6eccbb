// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/readable_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "analysis/import/response_headers.h"
#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  std::string_view what;
};
constexpr std::array kSignatures{
    Signature{"\x1F\x8B"sv, "is compressed with gzip; unpack it first (gunzip)"},
    Signature{"\x28\xB5\x2F\xFD"sv, "is compressed with zstd; unpack it first (unzstd)"},
    Signature{"BZh"sv, "is compressed with bzip2; unpack it first (bunzip2)"},
    Signature{"\xFD"
              "7zXZ"sv,
              "is compressed with xz; unpack it first (unxz)"},
    Signature{"PK\x03\x04"sv, "is a zip archive; unpack it first (unzip)"},
    Signature{"\x89HDF\r\n"sv, "is an HDF5 file, no saved response"},
    Signature{"PAR1"sv, "is a Parquet file; write its column of responses as JSON Lines"},
    Signature{"\x80\x03"sv, "is a Python pickle; save the response as JSON"},
    Signature{"\x80\x04\x95"sv, "is a Python pickle; save the response as JSON"},
    Signature{"\x80\x05\x95"sv, "is a Python pickle; save the response as JSON"},
    Signature{"SQLite format 3"sv, "is a SQLite database; write its responses as JSON Lines"},
    Signature{"GGUF"sv, "is a GGUF file, no saved response"},
    Signature{"\x93NUMPY"sv, "is a NumPy array, no saved response"},
    Signature{"\xFF\xFE\x00\x00"sv, "is UTF-32; save it as UTF-8"},
    Signature{"\x00\x00\xFE\xFF"sv, "is UTF-32; save it as UTF-8"},
};

std::string utf8_of_utf16(std::string_view bytes, bool big_endian) {
  std::string out;
  out.reserve(bytes.size());
  const auto unit = [&](std::size_t at) {
    const auto first = static_cast<unsigned char>(bytes[at]);
    const auto second = static_cast<unsigned char>(bytes[at + 1]);
    return static_cast<char32_t>(big_endian ? first << 8 | second : second << 8 | first);
  };
  constexpr char32_t kReplacement = 0xFFFD;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    char32_t code = unit(at);
    if (code >= 0xD800 && code < 0xDC00 && at + 3 < bytes.size()) {
      const char32_t low = unit(at + 2);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        at += 2;
      }
    }
    append_utf8(out, code >= 0xD800 && code < 0xE000 ? kReplacement : code);
  }
  return out;
}

// Every other byte of the front is zero: Latin letters in two bytes each.
std::optional<bool> utf16_without_mark(std::string_view bytes) {
  if (bytes.size() < 8) return std::nullopt;
  const auto zeros = [&](std::size_t first) {
    return bytes[first] == 0 && bytes[first + 2] == 0 && bytes[first + 4] == 0 &&
           bytes[first - first % 2] + bytes[first - first % 2 + 1] != 0;
  };
  if (zeros(1) && bytes[0] != 0 && bytes[2] != 0) return false;
  if (zeros(0) && bytes[1] != 0 && bytes[3] != 0) return true;
  return std::nullopt;
}

// ```json … ```, with any words before the first fence.
std::string_view without_fences(std::string_view text) {
  const std::string_view all = trimmed(text);
  if (!all.starts_with("```")) return text;
  const std::size_t line = all.find('\n');
  if (line == std::string_view::npos) return text;
  const std::string_view rest = all.substr(line + 1);
  return rest.substr(0, std::min(rest.rfind("```"), rest.size()));
}

bool is_trace(std::string_view text) {
  const std::string_view all = trimmed(text);
  return (all.starts_with("* ") || all.starts_with("> ") || all.starts_with("< HTTP/")) &&
         all.find("\n< HTTP/") != std::string_view::npos;
}

// Of "curl -v": what was received keeps its lines, notes and what was sent go.
std::string received_part(std::string_view text) {
  std::string out;
  bool in_headers = false;
  std::size_t at = 0;
  while (at < text.size()) {
    std::string_view line = next_line(text, at);
    if (line.starts_with("< ") || line == "<") {
      in_headers = true;
      out.append(line.substr(std::min<std::size_t>(2, line.size()))).append("\n");
      continue;
    }
    const bool note = line.starts_with("* ") || line.starts_with("> ") || line == ">" ||
                      line.starts_with("{ [") || line.starts_with("} [");
    if (note || (in_headers && line.empty())) continue;
    out.append(line).append("\n");
  }
  return out;
}

}  // namespace

Result<std::string_view> readable_text(std::string_view bytes, std::string_view name,
                                       std::string& storage) {
  for (const Signature& row : kSignatures) {
    if (!bytes.starts_with(row.bytes)) continue;
    return fail(ErrorKind::malformed, fmt::format("{}: {}", escape_for_display(name), row.what));
  }
  std::string_view text = bytes;
  if (bytes.starts_with("\xFF\xFE"sv) || bytes.starts_with("\xFE\xFF"sv)) {
    storage = utf8_of_utf16(bytes.substr(2), bytes.starts_with('\xFE'));
    text = storage;
  } else if (const auto big_endian = utf16_without_mark(bytes); big_endian) {
    storage = utf8_of_utf16(bytes, *big_endian);
    text = storage;
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text = without_fences(text);
  if (is_trace(text)) {
    storage = received_part(text);
    text = storage;
  }
  return text;
}

std::string why_no_json(std::string_view text) {
  const std::string_view all = trimmed(text);
  std::string front(all.substr(0, 15));
  for (char& c : front) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (front.starts_with("<!doctype") || front.starts_with("<html")) {
    return "is a page of HTML, no response: a proxy or a login answered";
  }
  if (front.starts_with("<?xml")) return "is XML, no response";
  const std::size_t parenthesis = all.find('(');
  const bool constructor =
      parenthesis != std::string_view::npos && parenthesis > 0 && parenthesis < 60 &&
      std::isalpha(static_cast<unsigned char>(all[0])) != 0 &&
      all.substr(0, parenthesis).find_first_of(" \n:\"") == std::string_view::npos &&
      all.find('=') != std::string_view::npos;
  if (constructor || front.starts_with("{'") || front.starts_with("[{'")) {
    return "is the print of a Python object, no JSON; save it with json.dumps() or "
           "model_dump_json()";
  }
  return {};
}

std::optional<std::string> join_chunks(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view line = trimmed(next_line(text, at));
    const std::string_view digits = line.substr(0, line.find(';'));
    std::size_t size = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
    if (digits.empty() || result.ec != std::errc{} || result.ptr != digits.data() + digits.size()) {
      return std::nullopt;
    }
    if (size == 0) return out;
    out.append(text.substr(at, size));
    if (size > text.size() - at) return out;  // the dump ends inside a chunk
    at += size;
    if (at < text.size()) (void)next_line(text, at);
  }
  return out;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+' || c == '-') return 62;
    return c == '/' || c == '_' ? 63 : -1;
  };
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
  bool padded = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') continue;
    if (c == '=') {
      padded = true;
      continue;
    }
    const int value = digit(c);
    if (value < 0 || padded) return std::nullopt;
    bits = (bits << 6U | static_cast<std::uint32_t>(value)) & 0xFFFFFFU;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>((bits >> static_cast<unsigned>(held)) & 0xFFU);
  }
  return held == 6 ? std::nullopt : std::optional(std::move(out));
}

}  // namespace driftscope
