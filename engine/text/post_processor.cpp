// SPDX-License-Identifier: Apache-2.0
#include "engine/text/post_processor.h"

#include <fmt/format.h>

#include "engine/text/json_parts.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using nlohmann::json;

constexpr std::string_view kPostProcessors =
    "Sequence, TemplateProcessing, ByteLevel, RobertaProcessing and BertProcessing";
constexpr std::int64_t kMaxId = 2147483646;

tl::unexpected<Error> malformed(const std::string& name, std::string_view what) {
  return fail(ErrorKind::malformed, fmt::format("{}: {}; fix the tokenizer", name, what));
}

bool is_id(const json& value) { return integer_in(value, kMaxId).has_value(); }

// The ids of a special token that a template names.
Result<std::vector<std::int32_t>> special_ids(const json& part, const json& reference,
                                              const std::string& name) {
  const auto id = reference.is_object() ? reference.find("id") : reference.end();
  if (id == reference.end() || !id->is_string()) return malformed(name, "a SpecialToken has no id");
  const auto tokens = part.find("special_tokens");
  const auto& key = id->get_ref<const std::string&>();
  if (tokens == part.end() || !tokens->is_object() || !tokens->contains(key)) {
    return malformed(name, fmt::format("special_tokens has no {}", escape_for_display(key)));
  }
  const json& token = (*tokens)[key];
  const auto ids = token.is_object() ? token.find("ids") : token.end();
  if (ids == token.end() || !ids->is_array()) {
    return malformed(name, fmt::format("special token {} has no ids", escape_for_display(key)));
  }
  std::vector<std::int32_t> result;
  for (const json& value : *ids) {
    if (!is_id(value)) return malformed(name, fmt::format("{} is not an id", show_value(value)));
    result.push_back(value.get<std::int32_t>());
  }
  return result;
}

// Ids around the sequence, from the inside out.
struct Wrapping {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;
};

Result<Wrapping> read_template(const json& part, const std::string& name) {
  const json* items = sequence_items(part, "single");
  if (items == nullptr) return malformed(name, "single is not a list");
  Wrapping wrapping;
  bool sequence_seen = false;
  for (const json& item : *items) {
    if (!item.is_object() || item.size() != 1) return malformed(name, "single has a wrong entry");
    const auto entry = item.begin();
    const std::string& kind = entry.key();
    const json& value = entry.value();
    if (kind == "Sequence") {
      const bool is_a = value.is_object() && value.value("id", json()) == "A";
      if (!is_a || sequence_seen) return malformed(name, "single must have the sequence A once");
      sequence_seen = true;
    } else if (kind == "SpecialToken") {
      auto ids = special_ids(part, value, name);
      if (!ids) return tl::unexpected(std::move(ids.error()));
      auto& side = sequence_seen ? wrapping.after : wrapping.before;
      side.insert(side.end(), ids->begin(), ids->end());
    } else {
      return malformed(name, "single has a wrong entry");
    }
  }
  if (!sequence_seen) return malformed(name, "single must have the sequence A once");
  return wrapping;
}

// "cls": ["<s>", 0] and "sep": ["</s>", 2].
Result<Wrapping> read_cls_sep(const json& part, const std::string& name) {
  Wrapping wrapping;
  for (const auto& [key, side] :
       {std::pair("cls", &wrapping.before), std::pair("sep", &wrapping.after)}) {
    const auto pair = part.find(key);
    if (pair == part.end() || !pair->is_array() || pair->size() != 2 || !is_id((*pair)[1])) {
      return malformed(name, fmt::format("{} must be [token, id]", key));
    }
    side->push_back((*pair)[1].get<std::int32_t>());
  }
  return wrapping;
}

Result<void> read_into(PostProcessor& target, const json& part, const std::string& name) {
  const std::string type = part_type(part);
  if (type == "Sequence") {
    const json* items = sequence_items(part, "processors");
    if (items == nullptr) return malformed(name, "processors is not a list");
    for (std::size_t i = 0; i < items->size(); ++i) {
      auto done = read_into(target, (*items)[i], fmt::format("{}.processors[{}]", name, i));
      if (!done) return done;
    }
    return {};
  }
  // ByteLevel only trims offsets; here a token's offsets cover all of its bytes.
  if (type == "ByteLevel") return {};
  Result<Wrapping> wrapping;
  if (type == "TemplateProcessing") {
    wrapping = read_template(part, name);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    wrapping = read_cls_sep(part, name);
  } else {
    return unsupported_type(part, name, kPostProcessors);
  }
  if (!wrapping) return tl::unexpected(std::move(wrapping.error()));
  target.before.insert(target.before.begin(), wrapping->before.begin(), wrapping->before.end());
  target.after.insert(target.after.end(), wrapping->after.begin(), wrapping->after.end());
  return {};
}

}  // namespace

Result<PostProcessor> PostProcessor::read(const json& description, const std::string& name) {
  PostProcessor result;
  if (description.is_null()) return result;
  if (auto done = read_into(result, description, name); !done) {
    return tl::unexpected(std::move(done.error()));
  }
  return result;
}

}  // namespace driftscope
