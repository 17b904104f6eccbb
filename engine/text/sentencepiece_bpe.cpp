// SPDX-License-Identifier: Apache-2.0
#include "engine/text/sentencepiece_bpe.h"

#include <algorithm>
#include <queue>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFU;

}  // namespace

bool has_inner_marker(std::string_view piece) {
  std::size_t at = 0;
  while (piece.substr(at).starts_with(kSpaceMarker)) at += kSpaceMarker.size();
  return piece.find(kSpaceMarker, at) != std::string_view::npos;
}

// A node of the doubly linked list of what the word consists of so far.
struct SentencePieceBpe::Symbol {
  std::uint32_t begin;
  std::uint32_t end;  // begin == end: merged into the one before it
  std::uint32_t previous;
  std::uint32_t next;
};

struct SentencePieceBpe::Merging {
  struct Candidate {
    float score;
    std::uint32_t left;   // position of the left symbol
    std::uint32_t bytes;  // of both; another number means that one of them has changed
    bool operator<(const Candidate& other) const {  // the queue gives the greatest first
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  const SentencePieceBpe& model;
  std::string_view word;
  std::vector<Symbol> symbols = {};
  std::priority_queue<Candidate> queue = {};
  // How an unused piece was spelt: bytes of its left part.
  std::unordered_map<std::string_view, std::uint32_t> halves = {};

  void split() {
    for (std::size_t i = 0; i < word.size();) {
      const std::size_t length = decode_utf8(word, i).length;
      const auto count = static_cast<std::uint32_t>(symbols.size());
      symbols.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i + length),
                         count == 0 ? kNone : count - 1, count + 1});
      i += length;
    }
    symbols.back().next = kNone;
  }

  void propose(std::uint32_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    const std::uint32_t begin = symbols[left].begin;
    const std::uint32_t bytes = symbols[symbols[left].next].end - begin;
    if (bytes > model.longest_piece) return;
    const auto found = model.pieces.find(word.substr(begin, bytes));
    if (found == model.pieces.end()) return;
    const auto id = static_cast<std::size_t>(found->second);
    queue.push({model.scores[id], left, bytes});
    if (model.unused[id]) {
      halves[word.substr(begin, bytes)] = symbols[left].end - symbols[left].begin;
    }
  }

  void run() {
    const auto count = static_cast<std::uint32_t>(symbols.size());
    for (std::uint32_t i = 0; i < count; ++i) propose(i);
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol& left = symbols[best.left];
      if (left.begin == left.end || left.next == kNone) continue;
      Symbol& right = symbols[left.next];
      if (right.end - left.begin != best.bytes) continue;
      left.end = right.end;
      right.begin = right.end;
      left.next = right.next;
      if (left.next != kNone) symbols[left.next].previous = best.left;
      propose(left.previous);
      propose(best.left);
    }
  }
};

void SentencePieceBpe::index() {
  longest_piece = 0;
  bool can_cut = pieces.contains(kSpaceMarker);
  for (const auto& [piece, id] : pieces) {
    longest_piece = std::max(longest_piece, piece.size());
    can_cut = can_cut && !has_inner_marker(piece);
  }
  cut_before = can_cut ? std::string(kSpaceMarker) : std::string();
}

void SentencePieceBpe::emit_unknown(std::string_view word, std::uint32_t begin, std::uint32_t end,
                                    std::vector<WordToken>& tokens) const {
  const auto byte_id = [&](std::uint32_t at) {
    return byte_ids[static_cast<std::uint8_t>(word[at])];
  };
  bool all_bytes = byte_fallback;
  for (std::uint32_t at = begin; at < end; ++at) all_bytes = all_bytes && byte_id(at) >= 0;
  if (all_bytes) {
    for (std::uint32_t at = begin; at < end; ++at) tokens.push_back({byte_id(at), at, at + 1});
  } else if (unknown) {
    const bool fuse = !tokens.empty() && tokens.back().id == *unknown && tokens.back().end == begin;
    if (fuse) {
      tokens.back().end = end;
    } else {
      tokens.push_back({*unknown, begin, end});
    }
  }
}

void SentencePieceBpe::emit(const Merging& merging, std::uint32_t begin, std::uint32_t end,
                            std::vector<WordToken>& tokens) const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> open{{begin, end}};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    const std::string_view text = merging.word.substr(from, to - from);
    const auto found = pieces.find(text);
    if (found == pieces.end()) {
      emit_unknown(merging.word, from, to, tokens);
      continue;
    }
    const auto half = unused[static_cast<std::size_t>(found->second)] ? merging.halves.find(text)
                                                                      : merging.halves.end();
    if (half == merging.halves.end()) {
      tokens.push_back({found->second, from, to});
      continue;
    }
    open.emplace_back(from + half->second, to);
    open.emplace_back(from, from + half->second);
  }
}

void SentencePieceBpe::encode_word(std::string_view word, std::vector<WordToken>& tokens) const {
  if (word.empty()) return;
  Merging merging{*this, word};
  merging.symbols.reserve(word.size());
  merging.split();
  merging.run();
  for (const Symbol& symbol : merging.symbols) {
    if (symbol.begin < symbol.end) emit(merging, symbol.begin, symbol.end, tokens);
  }
}

}  // namespace driftscope
