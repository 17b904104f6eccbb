// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/token_edges.h"

#include <algorithm>
#include <string>

namespace driftscope {
namespace {

using Places = std::vector<std::size_t>;  // rising

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::size_t kLongestCharacter = 4;
// Of a long stretch of lost bytes; more is as good as not known.
constexpr std::size_t kMostPlaces = 512;

bool beyond_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80U; }

// Places behind `least` to `most` bytes beyond ASCII.
void pass_lost(std::string_view text, std::size_t at, std::size_t least, std::size_t most,
               Places& out) {
  for (std::size_t passed = 0; passed <= most; ++passed) {
    if (passed >= least) out.push_back(at + passed);
    if (at + passed >= text.size() || !beyond_ascii(text[at + passed])) return;
  }
}

void make_set(Places& places) {
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
}

// Where a token whose bytes were lost may end that begins at `at`.
Places ends_of_lossy(std::string_view token, std::string_view text, std::size_t at) {
  Places places{at};
  if (token.empty()) {
    places.clear();
    pass_lost(text, at, 0, kLongestCharacter, places);
    return places;
  }
  while (!token.empty() && !places.empty()) {
    std::size_t lost = 0;
    while (token.starts_with(kReplacement)) {
      token.remove_prefix(kReplacement.size());
      ++lost;
    }
    const std::string_view known = token.substr(0, token.find(kReplacement));
    token.remove_prefix(known.size());
    Places next;
    for (const std::size_t place : places) {
      Places behind;
      pass_lost(text, place, lost, lost * kLongestCharacter, behind);
      for (const std::size_t begin : behind) {
        if (text.substr(begin).starts_with(known)) next.push_back(begin + known.size());
      }
    }
    make_set(next);
    places = std::move(next);
  }
  return places;
}

Places ends_of(const TokenText& token, std::string_view text, std::size_t at) {
  if (token.lossy) return ends_of_lossy(token.bytes, text, at);
  if (!text.substr(at).starts_with(token.bytes)) return {};
  return {at + token.bytes.size()};
}

// Places before each token that can be reached from the front.
std::vector<Places> reach(const std::vector<const TokenText*>& tokens, std::string_view text) {
  std::vector<Places> reached{{0}};
  reached.reserve(tokens.size() + 1);
  for (const TokenText* token : tokens) {
    Places next;
    for (const std::size_t place : reached.back()) {
      for (const std::size_t end : ends_of(*token, text, place)) next.push_back(end);
    }
    make_set(next);
    if (next.empty() || next.size() > kMostPlaces) break;
    reached.push_back(std::move(next));
  }
  // Nothing says where lost bytes end that no known token follows.
  const bool whole = reached.size() == tokens.size() + 1 && reached.back().back() == text.size();
  if (whole) {
    reached.back() = {text.size()};
  } else {
    while (reached.size() > 1 && tokens[reached.size() - 2]->lossy) reached.pop_back();
  }
  return reached;
}

// White space at the first token's front that the text lacks: some servers strip it.
std::string stripped_front(const std::vector<const TokenText*>& tokens, std::string_view text) {
  if (tokens.empty()) return {};
  const std::string& first = tokens[0]->bytes;
  const std::size_t spaces = std::min(first.find_first_not_of(" \n\t"), first.size());
  return text.starts_with(std::string_view(first).substr(0, spaces)) ? std::string()
                                                                     : first.substr(0, spaces);
}

}  // namespace

std::vector<TokenEdge> token_edges(const std::vector<const TokenText*>& tokens,
                                   std::string_view text) {
  const std::string front = stripped_front(tokens, text);
  const std::string whole = front + std::string(text);
  std::vector<Places> places = reach(tokens, whole);
  // Those from which the later tokens cannot be reached are none.
  for (std::size_t i = places.size() - 1; i-- > 0;) {
    std::erase_if(places[i], [&](std::size_t place) {
      const Places ends = ends_of(*tokens[i], whole, place);
      return std::none_of(ends.begin(), ends.end(), [&](std::size_t end) {
        return std::binary_search(places[i + 1].begin(), places[i + 1].end(), end);
      });
    });
  }
  std::vector<TokenEdge> edges;
  edges.reserve(places.size());
  const auto in_text = [&](std::size_t place) { return place - std::min(place, front.size()); };
  for (const Places& place : places) {
    edges.push_back({.least = in_text(place.front()), .most = in_text(place.back())});
  }
  return edges;
}

std::vector<TokenEdge> joined_edges(const std::vector<const TokenText*>& tokens) {
  std::vector<TokenEdge> edges(1);
  for (const TokenText* token : tokens) {
    const std::size_t end = edges.back().most + token->bytes.size();
    edges.push_back({.least = end, .most = end});
  }
  return edges;
}

}  // namespace driftscope
