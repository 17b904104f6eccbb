// SPDX-License-Identifier: Apache-2.0
// tokenize_strings DIRECTORY < strings.json > answers.json
// Strings as one JSON list; for each an object with its ids without and with the added special
// tokens, and the text that the former decode to.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/text/tokenizer.h"

namespace {

using driftscope::EncodedToken;
using driftscope::TokenId;
using nlohmann::json;

std::vector<TokenId> ids_of(const std::vector<EncodedToken>& tokens) {
  std::vector<TokenId> ids;
  ids.reserve(tokens.size());
  for (const EncodedToken& token : tokens) ids.push_back(token.id);
  return ids;
}

json values_of(const std::vector<TokenId>& ids) {
  json values = json::array();
  for (const TokenId id : ids) values.push_back(id.value);
  return values;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::fputs("usage: tokenize_strings DIRECTORY < strings.json > answers.json\n", stderr);
    return 2;
  }
  const auto tokenizer = driftscope::Tokenizer::open(arguments[1]);
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 4;
  }
  const json strings = json::parse(std::cin);
  json answers = json::array();
  for (const json& text : strings) {
    const auto& bytes = text.get_ref<const std::string&>();
    const auto plain = (*tokenizer)->encode(bytes, {.add_special_tokens = false});
    const auto whole = (*tokenizer)->encode(bytes, {});
    if (!plain || !whole) {
      answers.push_back({{"error", plain ? whole.error().message : plain.error().message}});
      continue;
    }
    const std::vector<TokenId> ids = ids_of(*plain);
    answers.push_back({{"ids", values_of(ids)},
                       {"whole", values_of(ids_of(*whole))},
                       {"text", (*tokenizer)->decode(ids, false)}});
  }
  std::cout << answers.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
  return 0;
}
