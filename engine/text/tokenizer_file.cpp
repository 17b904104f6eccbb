// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tokenizer_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/model/strict_json.h"
#include "engine/text/model_reader.h"

namespace driftscope {
namespace {

using nlohmann::json;

template <class Part>
Result<void> read_part(const json& document, const char* key, const std::string& name,
                       Part& target) {
  const auto found = document.find(key);
  auto part =
      Part::read(found == document.end() ? json() : *found, fmt::format("{}: {}", name, key));
  if (!part) return tl::unexpected(std::move(part.error()));
  target = std::move(*part);
  return {};
}

}  // namespace

Result<TokenizerParts> read_tokenizer(std::string_view text, const std::string& name) {
  const auto document = parse_strict_json(text, name);
  if (!document) return tl::unexpected(document.error());
  const auto model = document->is_object() ? document->find("model") : document->end();
  if (model == document->end() || !model->is_object()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: model is missing; give a tokenizer.json", name));
  }
  TokenizerParts parts;
  auto done = read_part(*document, "normalizer", name, parts.normalizer);
  if (done) done = read_part(*document, "pre_tokenizer", name, parts.pre_tokenizer);
  if (done) done = read_part(*document, "post_processor", name, parts.post_processor);
  if (done) done = read_part(*document, "decoder", name, parts.decoder);
  if (done) done = read_model(*model, name + ": model", parts);
  const auto added = document->find("added_tokens");
  if (done && added != document->end()) {
    done = read_added_tokens(*added, name + ": added_tokens", parts);
  }
  if (!done) return tl::unexpected(std::move(done.error()));
  return parts;
}

}  // namespace driftscope
