// SPDX-License-Identifier: Apache-2.0
#include "engine/text/unigram.h"

#include <algorithm>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::int32_t kUnknownPiece = -1;

}  // namespace

// The best way to spell what ends here.
struct UnigramModel::Node {
  double score = 0;
  std::uint32_t begin = 0;  // of its last piece
  std::int32_t id = kUnknownPiece;
  bool reached = false;
};

std::vector<UnigramModel::Node> UnigramModel::best_paths(std::string_view word) const {
  std::vector<Node> nodes(word.size() + 1);
  for (std::size_t begin = 0; begin < word.size();) {
    const double so_far = nodes[begin].score;
    const std::size_t character = decode_utf8(word, begin).length;
    bool has_character = false;
    const auto offer = [&](std::size_t length, std::int32_t id, double score) {
      double sum = so_far + score;
      if (single_precision) sum = static_cast<double>(static_cast<float>(sum));
      Node& node = nodes[begin + length];
      if (node.reached && sum <= node.score) return;
      node = {sum, static_cast<std::uint32_t>(begin), id, true};
    };
    pieces.for_each_prefix(word.substr(begin), [&](std::size_t length, std::int32_t id) {
      offer(length, id, scores[static_cast<std::size_t>(id)]);
      has_character = has_character || length == character;
    });
    if (!has_character) offer(character, kUnknownPiece, unknown_score);
    begin += character;
  }
  return nodes;
}

void UnigramModel::emit_unknown(std::string_view word, std::uint32_t begin, std::uint32_t end,
                                std::vector<WordToken>& tokens) const {
  const auto byte_id = [&](std::uint32_t at) {
    return byte_ids[static_cast<std::uint8_t>(word[at])];
  };
  bool all_bytes = byte_fallback;
  for (std::uint32_t at = begin; at < end; ++at) all_bytes = all_bytes && byte_id(at) >= 0;
  if (all_bytes) {
    for (std::uint32_t at = begin; at < end; ++at) tokens.push_back({byte_id(at), at, at + 1});
  } else if (unknown) {
    tokens.push_back({*unknown, begin, end});
  }
}

void UnigramModel::encode_word(std::string_view word, std::vector<WordToken>& tokens) const {
  if (word.empty()) return;
  const std::vector<Node> nodes = best_paths(word);
  std::vector<WordToken> path;  // from the end
  for (auto end = static_cast<std::uint32_t>(word.size()); end > 0;) {
    const Node& node = nodes[end];
    // The unknown piece, where a word spells it, is as unknown as any other character.
    const std::int32_t id = unknown && node.id == *unknown ? kUnknownPiece : node.id;
    if (id == kUnknownPiece && !path.empty() && path.back().id == kUnknownPiece) {
      path.back().begin = node.begin;
    } else {
      path.push_back({id, node.begin, end});
    }
    end = node.begin;
  }
  for (auto token = path.rbegin(); token != path.rend(); ++token) {
    if (token->id == kUnknownPiece) {
      emit_unknown(word, token->begin, token->end, tokens);
    } else {
      tokens.push_back(*token);
    }
  }
}

}  // namespace driftscope
