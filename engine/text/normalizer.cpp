// SPDX-License-Identifier: Apache-2.0
#include "engine/text/normalizer.h"

#include <fmt/format.h>

#include <array>

#include "engine/text/json_parts.h"

namespace driftscope {
namespace {

using nlohmann::json;

constexpr std::string_view kNormalizers =
    "Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt and "
    "Precompiled";

struct FormRow {
  std::string_view type;
  UnicodeForm form;
};
constexpr std::array<FormRow, 4> kForms{{{"NFC", UnicodeForm::nfc},
                                         {"NFD", UnicodeForm::nfd},
                                         {"NFKC", UnicodeForm::nfkc},
                                         {"NFKD", UnicodeForm::nfkd}}};

AlignedText prepend(AlignedText text, const std::string& content) {
  if (text.size() == 0) return text;  // the reference leaves empty text empty
  AlignedText result;
  result.reserve(text.size() + content.size());
  const std::uint32_t begin = text.span_of_byte(0).begin;
  result.append(content, {begin, begin});
  result.append_copy(text, 0, text.size());
  return result;
}

Result<AlignedText> replace(AlignedText text, const Pattern& pattern, const std::string& content) {
  const auto matches = pattern.find_all(text.text());
  if (!matches) return tl::unexpected(matches.error());
  if (matches->empty()) return text;
  AlignedText result;
  result.reserve(text.size() + matches->size() * content.size());
  std::size_t copied = 0;
  for (const PatternMatch& match : *matches) {
    result.append_copy(text, copied, match.begin);
    result.append(content, text.span(match.begin, match.end));
    copied = match.end;
  }
  result.append_copy(text, copied, text.size());
  return result;
}

}  // namespace

struct Normalizer::Reader {
  std::vector<Step>& steps;

  Result<void> read(const json& part, const std::string& name) {
    const std::string type = part_type(part);
    if (type == "Sequence") return read_sequence(part, name);
    for (const FormRow& row : kForms) {
      if (type != row.type) continue;
      steps.push_back({.kind = Step::Kind::unicode_form, .form = row.form});
      return {};
    }
    ConfigFields fields(part, name);
    if (type == "Prepend") {
      steps.push_back({.kind = Step::Kind::prepend, .content = fields.text("prepend", "")});
    } else if (type == "Replace") {
      auto pattern = read_pattern(part, name);
      if (!pattern) return tl::unexpected(std::move(pattern.error()));
      steps.push_back({.kind = Step::Kind::replace,
                       .content = fields.text("content", ""),
                       .pattern = std::move(*pattern)});
    } else if (type == "Lowercase") {
      steps.push_back({.kind = Step::Kind::lowercase});
    } else if (type == "StripAccents") {
      steps.push_back({.kind = Step::Kind::strip_accents});
    } else if (type == "Nmt") {
      steps.push_back({.kind = Step::Kind::nmt});
    } else if (type == "Precompiled") {
      return read_charsmap(fields);
    } else if (type == "Strip") {
      steps.push_back({.kind = Step::Kind::strip,
                       .left = fields.flag("strip_left", true),
                       .right = fields.flag("strip_right", true)});
    } else {
      return unsupported_type(part, name, kNormalizers);
    }
    if (!fields.good()) return fields.failure();
    return {};
  }

  Result<void> read_charsmap(ConfigFields& fields) {
    const std::string text = fields.text("precompiled_charsmap", "");
    if (text.empty()) fields.refuse("precompiled_charsmap is missing or empty; fix the tokenizer");
    if (!fields.good()) return fields.failure();
    const auto bytes = decode_base64(text);
    if (!bytes) {
      fields.refuse("precompiled_charsmap is not base64; fix the tokenizer");
      return fields.failure();
    }
    auto charsmap = CharsMap::read(*bytes, fields.name());
    if (!charsmap) return tl::unexpected(std::move(charsmap.error()));
    steps.push_back({.kind = Step::Kind::charsmap, .charsmap = std::move(*charsmap)});
    return {};
  }

  Result<void> read_sequence(const json& part, const std::string& name) {
    const json* items = sequence_items(part, "normalizers");
    if (items == nullptr) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: normalizers is not a list; fix the tokenizer", name));
    }
    for (std::size_t i = 0; i < items->size(); ++i) {
      auto done = read((*items)[i], fmt::format("{}.normalizers[{}]", name, i));
      if (!done) return done;
    }
    return {};
  }
};

Result<Normalizer> Normalizer::read(const json& description, const std::string& name) {
  Normalizer normalizer;
  if (description.is_null()) return normalizer;
  Reader reader{normalizer.m_steps};
  if (auto done = reader.read(description, name); !done) {
    return tl::unexpected(std::move(done.error()));
  }
  return normalizer;
}

Result<Normalizer> Normalizer::sentencepiece(std::string_view charsmap,
                                             bool remove_extra_whitespaces,
                                             const std::string& name) {
  Normalizer normalizer;
  if (!charsmap.empty()) {
    auto map = CharsMap::read(charsmap, name);
    if (!map) return tl::unexpected(std::move(map.error()));
    normalizer.m_steps.push_back(
        {.kind = Step::Kind::charsmap_longest, .charsmap = std::move(*map)});
  }
  if (remove_extra_whitespaces) {
    normalizer.m_steps.push_back({.kind = Step::Kind::collapse_spaces});
  }
  return normalizer;
}

void Normalizer::append(Normalizer next) {
  for (Step& step : next.m_steps) m_steps.push_back(std::move(step));
}

Result<AlignedText> Normalizer::apply_step(const Step& step, AlignedText text) {
  switch (step.kind) {
    case Step::Kind::prepend:
      return prepend(std::move(text), step.content);
    case Step::Kind::replace:
      return replace(std::move(text), *step.pattern, step.content);
    case Step::Kind::unicode_form:
      return to_unicode_form(std::move(text), step.form);
    case Step::Kind::lowercase:
      return to_lowercase(std::move(text));
    case Step::Kind::strip:
      return strip_white_space(std::move(text), step.left, step.right);
    case Step::Kind::strip_accents:
      return strip_accents(std::move(text));
    case Step::Kind::charsmap:
      return step.charsmap->apply_to_graphemes(text);
    case Step::Kind::charsmap_longest:
      return step.charsmap->apply_longest(text);
    case Step::Kind::collapse_spaces:
      return collapse_spaces(std::move(text));
    case Step::Kind::nmt:
      return nmt_clean(std::move(text));
  }
  return text;
}

Result<AlignedText> Normalizer::apply(AlignedText text) const {
  for (const Step& step : m_steps) {
    auto next = apply_step(step, std::move(text));
    if (!next) return next;
    text = std::move(*next);
  }
  return text;
}

}  // namespace driftscope
