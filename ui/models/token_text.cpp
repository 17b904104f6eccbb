// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/token_text.h"

#include <fmt/format.h>

#include <cmath>

namespace driftscope::ui {
namespace {

struct Decoded {
  char32_t character = 0;
  std::size_t length = 0;  // 0: not valid UTF-8
};

// Rejects overlong forms, surrogates and values above U+10FFFF (RFC 3629).
Decoded decode_utf8(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes.size() < length) return {};
  char32_t value = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, length};
}

bool is_invisible(char32_t c) {
  return (c >= 0x7F && c < 0xA0) || c == 0xAD || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
         (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE0FFF);
}

QString escaped_character(char32_t c) {
  if (c == U'\n') return QStringLiteral("\\n");
  if (c == U'\t') return QStringLiteral("\\t");
  if (c == U'\r') return QStringLiteral("\\r");
  if (c == U'\\') return QStringLiteral("\\\\");
  if (c < 0x20) return QString::fromStdString(fmt::format("\\x{:02X}", static_cast<unsigned>(c)));
  if (is_invisible(c)) {
    return QString::fromStdString(fmt::format("\\u{:04X}", static_cast<unsigned>(c)));
  }
  return QString::fromUcs4(&c, 1);
}

}  // namespace

QString escaped_text(std::string_view bytes) {
  QString text;
  while (!bytes.empty()) {
    const Decoded decoded = decode_utf8(bytes);
    if (decoded.length == 0) {
      text += QString::fromStdString(
          fmt::format("\\x{:02X}", static_cast<unsigned>(static_cast<unsigned char>(bytes[0]))));
      bytes.remove_prefix(1);
      continue;
    }
    text += escaped_character(decoded.character);
    bytes.remove_prefix(decoded.length);
  }
  return text;
}

QString token_text(const Comparison& comparison, TokenId id) {
  const TokenPiece* piece = comparison.piece(id);
  if (piece == nullptr) return QStringLiteral("#%1").arg(id.value);
  return escaped_text(piece->bytes);
}

QString quoted_token(const Comparison& comparison, TokenId id) {
  if (comparison.piece(id) == nullptr) return token_text(comparison, id);
  return QStringLiteral("\u2018%1\u2019").arg(token_text(comparison, id));
}

QString number_text(double value) {
  if (std::isnan(value)) return QStringLiteral("NaN");
  if (std::isinf(value)) return value > 0 ? QStringLiteral("∞") : QStringLiteral("−∞");
  return QString::fromStdString(fmt::format("{}", value));
}

QString short_number(double value, int digits) {
  if (!std::isfinite(value)) return number_text(value);
  return QString::fromStdString(fmt::format("{:.{}g}", value, digits));
}

}  // namespace driftscope::ui
