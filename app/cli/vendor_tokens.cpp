// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/responses/response_lint.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

// Of 20 tokens whose id and text are both given, one may have another text (a special token).
constexpr std::size_t kOneIn = 20;

std::string text_of(const ResponseChannel& channel) {
  if (channel.has_text) return channel.text;
  std::string joined;
  for (const ResponseStep& step : channel.steps) {
    if (!step.special) joined += step.token.bytes;
  }
  return joined;
}

bool bytes_known(const TokenText& token) { return !token.lossy && !token.bytes.empty(); }

}  // namespace

std::string_view name_of(TokenMapping mapping) {
  switch (mapping) {
    case TokenMapping::ids:
      return "ids";
    case TokenMapping::bytes:
      return "bytes";
    case TokenMapping::boundaries:
      return "boundaries";
  }
  return "";
}

std::string unusable_numbers(const Response& response) {
  if (response.after_sampling) return "the probabilities are of what the samplers left";
  if (response.fake_certainty) return "every logprob is 0, a placeholder";
  if (response.scale == LogprobScale::logit) return "the fields hold logits, not logprobs";
  return {};
}

VendorVocabulary::VendorVocabulary(const Tokenizer* tokenizer, std::int64_t size)
    : m_tokenizer(tokenizer), m_size(size) {
  if (tokenizer == nullptr) return;
  const auto known = std::min(size, static_cast<std::int64_t>(tokenizer->vocabulary_size()));
  for (std::int64_t i = 0; i < known; ++i) {
    const TokenId id{static_cast<std::int32_t>(i)};
    std::string bytes = tokenizer->piece(id);
    // Two tokens of the same bytes (a byte and its letter): the later one is what a text gives.
    if (!bytes.empty()) m_by_bytes.insert_or_assign(std::move(bytes), id);
  }
}

std::optional<TokenId> VendorVocabulary::id_of(const TokenText& token, bool by_id) const {
  if (by_id && token.id)
    return *token.id >= 0 && *token.id < m_size
               ? std::optional(TokenId{static_cast<std::int32_t>(*token.id)})
               : std::nullopt;
  if (!bytes_known(token)) return std::nullopt;
  const auto found = m_by_bytes.find(token.bytes);
  return found == m_by_bytes.end() ? std::nullopt : std::optional(found->second);
}

void VendorVocabulary::add_values(const Response& response, const ResponseStep& step,
                                  std::size_t place, MappedAnswer& out) const {
  if (!unusable_numbers(response).empty()) return;
  const bool by_id = out.mapping == TokenMapping::ids;
  std::set<std::int32_t> seen;
  const auto add = [&](TokenId id, const Logprob& logprob) {
    if (!logprob.usable() || !std::isfinite(logprob.value)) return;
    const bool probability = response.scale == LogprobScale::probability;
    if (probability && logprob.value <= 0.0) return;
    if (!seen.insert(id.value).second) return;
    const double tolerance = print_tolerance(logprob);
    out.values.push_back({.step = place,
                          .token = id.value,
                          .logprob = probability ? std::log(logprob.value) : logprob.value,
                          .tolerance = probability ? tolerance / logprob.value : tolerance});
  };
  add(out.ids[place], step.logprob);
  for (const TokenAlternative& other : step.alternatives) {
    if (const auto id = id_of(other.token, by_id)) add(*id, other.logprob);
  }
}

// Where both are given, the ids' own pieces are the vendor's bytes.
bool VendorVocabulary::ids_fit(const ResponseChoice& choice) const {
  std::size_t compared = 0;
  std::size_t other = 0;
  for (std::size_t i = 0; i < choice.content.steps.size(); ++i) {
    const TokenText& token = choice.content.steps[i].token;
    const auto id = token.id ? *token.id : choice.token_ids[i];
    if (id < 0 || id >= m_size) return false;
    if (m_tokenizer == nullptr || !bytes_known(token) || choice.content.steps[i].special) continue;
    ++compared;
    if (m_tokenizer->piece(TokenId{static_cast<std::int32_t>(id)}) != token.bytes) ++other;
  }
  return other * kOneIn <= compared || (other <= 1 && compared > 1);
}

bool VendorVocabulary::by_ids(const ResponseChoice& choice, MappedAnswer& out) const {
  const auto& steps = choice.content.steps;
  const bool listed = choice.token_ids.size() == steps.size() && !steps.empty();
  const bool alone = steps.empty() && !choice.token_ids.empty();
  const bool each = !steps.empty() && std::all_of(steps.begin(), steps.end(), [](const auto& s) {
    return s.token.id.has_value();
  });
  if (!listed && !alone && !each) return false;
  if (!alone && !ids_fit(choice)) {
    out.notes.emplace_back("the ids do not belong to this model's vocabulary; the bytes are taken");
    return false;
  }
  if (alone) {
    for (const std::int64_t id : choice.token_ids) {
      if (id < 0 || id >= m_size) return false;
      out.ids.push_back({static_cast<std::int32_t>(id)});
    }
    return true;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::int64_t id = each ? *steps[i].token.id : choice.token_ids[i];
    out.ids.push_back({static_cast<std::int32_t>(id)});
  }
  return true;
}

bool VendorVocabulary::by_bytes(const ResponseChoice& choice, MappedAnswer& out) const {
  if (m_tokenizer == nullptr || choice.content.steps.empty()) return false;
  std::vector<TokenId> ids;
  for (const ResponseStep& step : choice.content.steps) {
    const auto id = step.text_of_group ? std::nullopt : id_of(step.token, false);
    if (!id) return false;
    ids.push_back(*id);
  }
  out.ids = std::move(ids);
  out.mapping = TokenMapping::bytes;
  return true;
}

Result<void> VendorVocabulary::by_text(const ResponseChoice& choice, MappedAnswer& out) const {
  const std::string text = text_of(choice.content);
  if (text.empty()) return fail(ErrorKind::inconclusive, "the answer has neither tokens nor text");
  if (m_tokenizer == nullptr) {
    return fail(ErrorKind::inconclusive,
                "the answer has no token ids, and the model has no tokenizer to match its text");
  }
  auto encoded =
      m_tokenizer->encode(text, {.add_special_tokens = false, .parse_special_tokens = false});
  if (!encoded) return tl::unexpected(encoded.error());
  out.mapping = TokenMapping::boundaries;
  for (const EncodedToken& token : *encoded) out.ids.push_back(token.id);
  return {};
}

Result<MappedAnswer> VendorVocabulary::map(const Answer& answer) const {
  const ResponseChoice& choice = answer.response->choices[answer.choice];
  MappedAnswer out;
  if ((choice.reasoning.has_text && !choice.reasoning.text.empty()) && choice.token_ids.empty()) {
    return fail(ErrorKind::inconclusive,
                "the answer has reasoning in front of it, and how both stood in the model's "
                "sequence is not known without its token ids");
  }
  if (!by_ids(choice, out) && !by_bytes(choice, out)) {
    if (auto done = by_text(choice, out); !done) return tl::unexpected(done.error());
  }
  const auto& steps = choice.content.steps;
  if (out.mapping != TokenMapping::boundaries) {
    for (std::size_t i = 0; i < steps.size(); ++i) add_values(*answer.response, steps[i], i, out);
    return out;
  }
  // Tokens of both sides that begin and end at the same bytes.
  auto encoded = m_tokenizer->encode(text_of(choice.content),
                                     {.add_special_tokens = false, .parse_special_tokens = false});
  if (!encoded) return tl::unexpected(encoded.error());
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> places;
  for (std::size_t i = 0; i < encoded->size(); ++i) {
    places.try_emplace({(*encoded)[i].begin, (*encoded)[i].end}, i);
  }
  std::size_t at = 0;
  std::size_t matched = 0;
  std::vector<std::pair<std::size_t, const ResponseStep*>> pairs;
  for (const ResponseStep& step : steps) {
    if (step.special) continue;
    const std::size_t end = at + step.token.bytes.size();
    const auto found = places.find({at, end});
    if (found != places.end() && end > at) pairs.emplace_back(found->second, &step);
    at = end;
  }
  for (const auto& [place, step] : pairs) {
    add_values(*answer.response, *step, place, out);
    ++matched;
  }
  out.notes.push_back(
      steps.empty()
          ? std::string("the answer lists no tokens; its text was tokenised anew")
          : fmt::format("the text was tokenised anew: {} of the vendor's {} tokens begin and end "
                        "alike; the others' logprobs are left out",
                        matched, steps.size()));
  return out;
}

// Of a token that is not named the alternatives' ids may hold the prompt's.
bool VendorVocabulary::is_token(const ResponseStep& step, TokenId id) const {
  if (step.token.id) return *step.token.id == id.value;
  if (bytes_known(step.token))
    return m_tokenizer != nullptr && m_tokenizer->piece(id) == step.token.bytes;
  return std::any_of(
      step.alternatives.begin(), step.alternatives.end(),
      [&](const TokenAlternative& other) { return other.token.id == std::int64_t{id.value}; });
}

Result<std::vector<VendorValue>> VendorVocabulary::map_prompt(
    const Response& response, std::span<const TokenId> prompt) const {
  const auto& steps = response.prompt_steps;
  if (response.scale != LogprobScale::log_probability)
    return fail(ErrorKind::inconclusive, "the fields hold no logprobs");
  if (steps.size() != prompt.size()) {
    return fail(ErrorKind::inconclusive,
                fmt::format("they are of {} tokens and the prompt given has {}", steps.size(),
                            prompt.size()));
  }
  MappedAnswer out;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const ResponseStep& step = steps[i];
    // Some servers print null for the first token, not even which it is.
    const bool untold = i == 0 && !step.token.id && step.token.bytes.empty();
    if (!untold && !is_token(step, prompt[i])) {
      return fail(ErrorKind::inconclusive,
                  fmt::format("token {} is not that of the prompt given ({})", i, prompt[i].value));
    }
    if (i > 0) out.ids.push_back(prompt[i]);
  }
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const bool by_id = steps[i].token.id || !bytes_known(steps[i].token);
    out.mapping = by_id ? TokenMapping::ids : TokenMapping::bytes;
    add_values(response, steps[i], i - 1, out);
  }
  for (VendorValue& value : out.values) value.raw = true;
  return std::move(out.values);
}

std::optional<std::size_t> other_prompt(const Response& response, const std::vector<TokenId>& ids) {
  const std::vector<std::int64_t>& listed = response.prompt_ids;
  if (listed.empty()) return std::nullopt;
  const auto [of_file, of_prompt] =
      std::mismatch(listed.begin(), listed.end(), ids.begin(), ids.end(),
                    [](std::int64_t a, TokenId b) { return a == b.value; });
  if (of_file == listed.end() && of_prompt == ids.end()) return std::nullopt;
  return static_cast<std::size_t>(of_file - listed.begin());
}

}  // namespace driftscope::cli
