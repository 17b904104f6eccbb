// SPDX-License-Identifier: Apache-2.0
#include "engine/text/decoder.h"

#include <fmt/format.h>

#include "engine/text/byte_alphabet.h"
#include "engine/text/byte_token.h"
#include "engine/text/json_parts.h"

namespace driftscope {
namespace {

using nlohmann::json;

constexpr std::string_view kDecoders =
    "Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip and Metaspace";

Result<std::string> replace_all(const Pattern& pattern, const std::string& text,
                                std::string_view content) {
  const auto matches = pattern.find_all(text);
  if (!matches) return tl::unexpected(matches.error());
  std::string result;
  std::size_t copied = 0;
  for (const PatternMatch& match : *matches) {
    result.append(text, copied, match.begin - copied);
    result += content;
    copied = match.end;
  }
  result.append(text, copied);
  return result;
}

std::string strip(std::string_view text, std::string_view content, std::size_t start,
                  std::size_t stop) {
  for (std::size_t i = 0; i < start && text.starts_with(content); ++i) {
    text.remove_prefix(content.size());
  }
  for (std::size_t i = 0; i < stop && text.ends_with(content); ++i) {
    text.remove_suffix(content.size());
  }
  return std::string(text);
}

}  // namespace

struct Decoder::Reader {
  Decoder& target;
  bool fused = false;

  Result<void> read(const json& part, const std::string& name) {
    const std::string type = part_type(part);
    if (type == "Sequence") return read_sequence(part, name);
    if (type == "Fuse") {
      fused = true;
      return {};
    }
    ConfigFields fields(part, name);
    Step step{.kind = Step::Kind::byte_level};
    if (type == "ByteFallback") {
      step.kind = Step::Kind::byte_fallback;
    } else if (type == "Replace") {
      step.kind = Step::Kind::replace;
      step.content = fields.text("content", "");
      auto pattern = read_pattern(part, name);
      if (!pattern) return tl::unexpected(std::move(pattern.error()));
      step.pattern = std::move(*pattern);
    } else if (type == "Strip") {
      step.kind = Step::Kind::strip;
      step.content = fields.text("content", " ");
      step.start = static_cast<std::size_t>(fields.whole("start", 0));
      step.stop = static_cast<std::size_t>(fields.whole("stop", 0));
      if (step.content.empty()) fields.refuse("content is empty; fix the tokenizer");
    } else if (type == "Metaspace") {
      step.kind = Step::Kind::metaspace;
      step.content = fields.text("replacement", "\xE2\x96\x81");
      const bool prefix_space = fields.flag("add_prefix_space", true);
      step.drop_first = fields.text("prepend_scheme", prefix_space ? "always" : "never") != "never";
      if (step.content.empty()) fields.refuse("replacement is empty; fix the tokenizer");
    } else if (type != "ByteLevel") {
      return unsupported_type(part, name, kDecoders);
    }
    if (!fields.good()) return fields.failure();
    (fused ? target.m_joined_steps : target.m_token_steps).push_back(std::move(step));
    return {};
  }

  Result<void> read_sequence(const json& part, const std::string& name) {
    const json* items = sequence_items(part, "decoders");
    if (items == nullptr) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: decoders is not a list; fix the tokenizer", name));
    }
    for (std::size_t i = 0; i < items->size(); ++i) {
      auto done = read((*items)[i], fmt::format("{}.decoders[{}]", name, i));
      if (!done) return done;
    }
    return {};
  }
};

Result<Decoder> Decoder::read(const json& description, const std::string& name) {
  Decoder decoder;
  if (description.is_null()) return decoder;
  Reader reader{decoder};
  if (auto done = reader.read(description, name); !done) {
    return tl::unexpected(std::move(done.error()));
  }
  return decoder;
}

Result<std::string> Decoder::apply_step(const Step& step, std::string text, bool is_first,
                                        bool is_added) {
  switch (step.kind) {
    case Step::Kind::replace:
      return replace_all(*step.pattern, text, step.content);
    case Step::Kind::byte_fallback:
      if (const auto byte = byte_of_token(text)) {
        return std::string(1, static_cast<char>(*byte));
      }
      return text;
    case Step::Kind::byte_level:
      return is_added ? text : alphabet_to_bytes(text).value_or(text);
    case Step::Kind::metaspace:
      return replace_all(Pattern::plain(step.content), text,
                         is_first && step.drop_first ? "" : " ");
    case Step::Kind::strip:
      return strip(text, step.content, step.start, step.stop);
  }
  return text;
}

Result<std::string> Decoder::decode_token(std::string_view token, bool is_first,
                                          bool is_added) const {
  Result<std::string> text = std::string(token);
  for (const Step& step : m_token_steps) {
    if (!text) break;
    text = apply_step(step, std::move(*text), is_first, is_added);
  }
  return text;
}

Result<std::string> Decoder::finish(std::string joined) const {
  Result<std::string> text = std::move(joined);
  for (const Step& step : m_joined_steps) {
    if (!text) break;
    text = apply_step(step, std::move(*text), true, false);
  }
  return text;
}

}  // namespace driftscope
