// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "engine/text/json_parts.h"
#include "engine/text/pre_tokenizer.h"

namespace driftscope {
namespace {

using nlohmann::json;

constexpr std::string_view kPreTokenizers =
    "Sequence, ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit and "
    "CharDelimiterSplit";

// GPT-2's pattern, which ByteLevel uses by itself.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Word characters of UTS #18: alphabetic, marks, decimal digits, connectors, joiners.
constexpr std::string_view kWordCharacters =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
// Punctuation goes by the tables of Unicode 8: not what is in the first list, which is newer.
constexpr std::string_view kPunctuation =
    R"((?![)"
    R"(\x{61D}\x{9FD}\x{A76}\x{C77}\x{C84}\x{1B4E}-\x{1B4F}\x{1B7D}-\x{1B7F}\x{2E43}-)"
    R"(\x{2E4F}\x{2E52}-\x{2E5D}\x{10D6E}\x{10EAD}\x{10ED0}\x{10F55}-\x{10F59}\x{10F86}-)"
    R"(\x{10F89}\x{113D4}-\x{113D5}\x{113D7}-\x{113D8}\x{1144B}-\x{1144F}\x{1145A}-)"
    R"(\x{1145B}\x{1145D}\x{11660}-\x{1166C}\x{116B9}\x{1183B}\x{11944}-\x{11946}\x{119E2})"
    R"(\x{11A3F}-\x{11A46}\x{11A9A}-\x{11A9C}\x{11A9E}-\x{11AA2}\x{11B00}-\x{11B09})"
    R"(\x{11BE1}\x{11C41}-\x{11C45}\x{11C70}-\x{11C71}\x{11EF7}-\x{11EF8}\x{11F43}-)"
    R"(\x{11F4F}\x{11FFF}\x{12FF1}-\x{12FF2}\x{16D6D}-\x{16D6F}\x{16E97}-\x{16E9A}\x{16FE2})"
    R"(\x{1E5FF}\x{1E95E}-\x{1E95F})"
    R"(])[!-\/:-@\[-`{-~\p{P}\x{166D}\x{111C9}])";

struct BehaviorRow {
  std::string_view name;
  SplitBehavior behavior;
};
constexpr std::array<BehaviorRow, 5> kBehaviors{
    {{"Removed", SplitBehavior::removed},
     {"Isolated", SplitBehavior::isolated},
     {"MergedWithPrevious", SplitBehavior::merged_with_previous},
     {"MergedWithNext", SplitBehavior::merged_with_next},
     {"Contiguous", SplitBehavior::contiguous}}};

SplitBehavior read_behavior(ConfigFields& fields, std::string_view fallback) {
  const std::string given = fields.text("behavior", fallback);
  for (const BehaviorRow& row : kBehaviors) {
    if (given == row.name) return row.behavior;
  }
  fields.refuse(
      "behavior must be Removed, Isolated, MergedWithPrevious, MergedWithNext or "
      "Contiguous; fix the tokenizer");
  return SplitBehavior::isolated;
}

}  // namespace

struct PreTokenizer::Reader {
  PreTokenizer& target;

  Result<void> add_split(std::string_view expression, SplitBehavior behavior, bool invert,
                         const std::string& name) {
    auto pattern = Pattern::regex(expression, name);
    if (!pattern) return tl::unexpected(std::move(pattern.error()));
    target.m_steps.push_back(
        {.pattern = std::move(*pattern), .behavior = behavior, .invert = invert});
    return {};
  }

  Result<void> read(const json& part, const std::string& name) {
    const std::string type = part_type(part);
    if (type == "Sequence") return read_sequence(part, name);
    // Bytes were to be the last step, and now another one follows.
    if (target.m_ends_in_bytes) {
      target.m_ends_in_bytes = false;
      target.m_steps.push_back({.kind = Step::Kind::alphabet});
    }
    ConfigFields fields(part, name);
    if (type == "ByteLevel") return read_byte_level(fields);
    if (type == "Split") return read_split(part, fields);
    if (type == "Metaspace") return read_metaspace(fields);
    return read_simple(part, type, fields);
  }

  Result<void> read_sequence(const json& part, const std::string& name) {
    const json* items = sequence_items(part, "pretokenizers");
    if (items == nullptr) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: pretokenizers is not a list; fix the tokenizer", name));
    }
    for (std::size_t i = 0; i < items->size(); ++i) {
      auto done = read((*items)[i], fmt::format("{}.pretokenizers[{}]", name, i));
      if (!done) return done;
    }
    return {};
  }

  Result<void> read_byte_level(ConfigFields& fields) {
    const bool prefix_space = fields.flag("add_prefix_space", true);
    const bool use_regex = fields.flag("use_regex", true);
    if (target.m_is_byte_level) fields.refuse("ByteLevel twice; fix the tokenizer");
    if (!fields.good()) return fields.failure();
    if (prefix_space) target.m_steps.push_back({.kind = Step::Kind::prefix_space});
    target.m_ends_in_bytes = true;
    target.m_is_byte_level = true;
    if (!use_regex) return {};
    return add_split(kByteLevelPattern, SplitBehavior::isolated, false, fields.name());
  }

  Result<void> read_split(const json& part, ConfigFields& fields) {
    const SplitBehavior behavior = read_behavior(fields, "");
    const bool invert = fields.flag("invert", false);
    if (!fields.good()) return fields.failure();
    auto pattern = read_pattern(part, fields.name());
    if (!pattern) return tl::unexpected(std::move(pattern.error()));
    target.m_steps.push_back(
        {.pattern = std::move(*pattern), .behavior = behavior, .invert = invert});
    return {};
  }

  Result<void> read_metaspace(ConfigFields& fields) {
    Step step{.kind = Step::Kind::metaspace};
    step.replacement = fields.text("replacement", "\xE2\x96\x81");
    // Older files have add_prefix_space in place of prepend_scheme.
    const bool prefix_space = fields.flag("add_prefix_space", true);
    const std::string scheme = fields.text("prepend_scheme", prefix_space ? "always" : "never");
    if (scheme == "first") {
      step.prepend = Step::Prepend::first;
    } else if (scheme == "never") {
      step.prepend = Step::Prepend::never;
    } else if (scheme != "always") {
      fields.refuse("prepend_scheme must be always, first or never; fix the tokenizer");
    }
    if (step.replacement.empty()) fields.refuse("replacement is empty; fix the tokenizer");
    const bool split = fields.flag("split", true);
    if (!fields.good()) return fields.failure();
    Step split_step{.pattern = Pattern::plain(step.replacement),
                    .behavior = SplitBehavior::merged_with_next};
    target.m_steps.push_back(std::move(step));
    if (split) target.m_steps.push_back(std::move(split_step));
    return {};
  }

  Result<void> read_simple(const json& part, const std::string& type, ConfigFields& fields) {
    const std::string& name = fields.name();
    if (type == "Digits") {
      const bool individual = fields.flag("individual_digits", false);
      if (!fields.good()) return fields.failure();
      return add_split(R"(\p{N})", individual ? SplitBehavior::isolated : SplitBehavior::contiguous,
                       false, name);
    }
    if (type == "Punctuation") {
      const SplitBehavior behavior = read_behavior(fields, "Isolated");
      if (!fields.good()) return fields.failure();
      return add_split(kPunctuation, behavior, false, name);
    }
    if (type == "Whitespace") {
      return add_split(fmt::format(R"([{0}]+|[^{0}\s]+)", kWordCharacters), SplitBehavior::removed,
                       true, name);
    }
    if (type == "WhitespaceSplit") {
      return add_split(R"(\s)", SplitBehavior::removed, false, name);
    }
    if (type == "CharDelimiterSplit") {
      std::string delimiter = fields.text("delimiter", "");
      if (delimiter.empty()) fields.refuse("delimiter is missing; fix the tokenizer");
      if (!fields.good()) return fields.failure();
      target.m_steps.push_back(
          {.pattern = Pattern::plain(std::move(delimiter)), .behavior = SplitBehavior::removed});
      return {};
    }
    return unsupported_type(part, name, kPreTokenizers);
  }
};

Result<PreTokenizer> PreTokenizer::read(const json& description, const std::string& name) {
  PreTokenizer result;
  if (description.is_null()) return result;
  Reader reader{result};
  if (auto done = reader.read(description, name); !done) {
    return tl::unexpected(std::move(done.error()));
  }
  return result;
}

}  // namespace driftscope
