// SPDX-License-Identifier: Apache-2.0
#include "tests/text/tiny_tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/model/temporary_directory.h"

namespace driftscope {
namespace {

// The alphabet as GPT-2's published code builds it: printable Latin-1 bytes are themselves, the
// rest are U+0100 on. All are below U+0800, so two bytes of UTF-8 suffice.
std::string alphabet_letter(int byte) {
  int code_point = byte;
  const auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  if (!printable(byte)) {
    code_point = 256;
    for (int b = 0; b < byte; ++b) code_point += printable(b) ? 0 : 1;
  }
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

}  // namespace

nlohmann::json bpe_json(const std::vector<std::string>& tokens,
                        const std::vector<std::string>& merges) {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary[tokens[id]] = id;
  return {{"added_tokens", nlohmann::json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", nullptr},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

nlohmann::json byte_level_json(const std::vector<std::string>& merges) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(alphabet_letter(byte));
  for (const std::string& merge : merges) {
    const std::size_t space = merge.find(' ');
    tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  nlohmann::json document = bpe_json(tokens, merges);
  document["pre_tokenizer"] = {{"type", "ByteLevel"},
                               {"add_prefix_space", false},
                               {"trim_offsets", true},
                               {"use_regex", true}};
  document["decoder"] = {{"type", "ByteLevel"}};
  return document;
}

Result<std::shared_ptr<const Tokenizer>> open_text(std::string_view document) {
  const TemporaryDirectory directory;
  directory.write("tokenizer.json", document);
  return Tokenizer::open(directory.path());
}

Result<std::shared_ptr<const Tokenizer>> open_json(const nlohmann::json& document) {
  return open_text(document.dump());
}

std::shared_ptr<const Tokenizer> must_open(const nlohmann::json& document) {
  auto opened = open_json(document);
  if (opened) return *opened;
  ADD_FAILURE() << opened.error().message;
  return *open_json(bpe_json({"?"}, {}));
}

std::vector<int> ids_of(const Tokenizer& tokenizer, std::string_view text,
                        const EncodeOptions& options) {
  const auto tokens = tokenizer.encode(text, options);
  if (!tokens) {
    ADD_FAILURE() << tokens.error().message;
    return {};
  }
  std::vector<int> ids;
  for (const EncodedToken& token : *tokens) ids.push_back(token.id.value);
  return ids;
}

std::string spans_of(const Tokenizer& tokenizer, std::string_view text,
                     const EncodeOptions& options) {
  const auto tokens = tokenizer.encode(text, options);
  if (!tokens) return tokens.error().message;
  std::string result;
  for (const EncodedToken& token : *tokens) {
    if (!result.empty()) result += ' ';
    result += fmt::format("{}[{},{})", token.id.value, token.begin, token.end);
  }
  return result;
}

}  // namespace driftscope
