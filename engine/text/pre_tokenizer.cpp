// SPDX-License-Identifier: Apache-2.0
#include "engine/text/pre_tokenizer.h"

#include <algorithm>

#include "engine/text/byte_alphabet.h"

namespace driftscope {
namespace {

constexpr std::size_t kBytesPerWord = 4;  // a guess, to reserve by

struct Chunk {
  TextRange range;
  bool is_match;
};

// Matches and what lies between them, covering everything.
std::vector<Chunk> chunks_of(std::size_t length, const std::vector<PatternMatch>& matches,
                             bool invert) {
  std::vector<Chunk> chunks;
  chunks.reserve(matches.size() * 2 + 1);
  std::size_t position = 0;
  for (const PatternMatch& match : matches) {
    if (match.begin > position) chunks.push_back({{position, match.begin}, invert});
    chunks.push_back({{match.begin, match.end}, !invert});
    position = match.end;
  }
  if (position < length) chunks.push_back({{position, length}, invert});
  return chunks;
}

std::vector<TextRange> merge_with_next(const std::vector<Chunk>& chunks) {
  std::vector<TextRange> ranges;
  bool previous_match = false;  // of the chunk to the right
  for (std::size_t i = chunks.size(); i-- > 0;) {
    if (chunks[i].is_match && !previous_match && !ranges.empty()) {
      ranges.back().begin = chunks[i].range.begin;
    } else {
      ranges.push_back(chunks[i].range);
    }
    previous_match = chunks[i].is_match;
  }
  return {ranges.rbegin(), ranges.rend()};
}

TextPiece own_piece(TextArena& arena, AlignedText text) {
  arena.push_back(std::move(text));
  return {&arena.back(), 0, arena.back().size()};
}

TextPiece prepend_text(TextPiece piece, const std::string& content, TextArena& arena) {
  AlignedText text;
  const std::uint32_t begin = piece.source->span_of_byte(piece.begin).begin;
  text.reserve(piece.end - piece.begin + content.size());
  text.append(content, {begin, begin});
  text.append_copy(*piece.source, piece.begin, piece.end);
  return own_piece(arena, std::move(text));
}

TextPiece in_alphabet(TextPiece piece, TextArena& arena) {
  AlignedText text;
  text.reserve((piece.end - piece.begin) * 2);
  for (std::size_t i = piece.begin; i < piece.end; ++i) {
    text.append(byte_to_alphabet(static_cast<std::uint8_t>(piece.source->text()[i])),
                piece.source->span_of_byte(i));
  }
  return own_piece(arena, std::move(text));
}

// Matches and what lies between them, none empty.
void append_isolated(TextPiece piece, const std::vector<PatternMatch>& matches,
                     std::vector<TextPiece>& words) {
  const std::size_t base = piece.begin;
  std::size_t done = 0;
  for (const PatternMatch& match : matches) {
    if (match.begin > done) words.push_back({piece.source, base + done, base + match.begin});
    if (match.end > match.begin) {
      words.push_back({piece.source, base + match.begin, base + match.end});
    }
    done = match.end;
  }
  if (base + done < piece.end) words.push_back({piece.source, base + done, piece.end});
}

}  // namespace

std::vector<TextRange> split_ranges(std::size_t length, const std::vector<PatternMatch>& matches,
                                    SplitBehavior behavior, bool invert) {
  const std::vector<Chunk> chunks = chunks_of(length, matches, invert);
  if (behavior == SplitBehavior::merged_with_next) return merge_with_next(chunks);
  std::vector<TextRange> ranges;
  ranges.reserve(chunks.size());
  bool previous_match = false;
  for (const Chunk& chunk : chunks) {
    bool join = false;
    bool keep = true;
    switch (behavior) {
      case SplitBehavior::removed:
        keep = !chunk.is_match;
        break;
      case SplitBehavior::isolated:
      case SplitBehavior::merged_with_next:
        break;
      case SplitBehavior::merged_with_previous:
        join = chunk.is_match && !previous_match && !ranges.empty();
        break;
      case SplitBehavior::contiguous:
        join = chunk.is_match == previous_match && !ranges.empty();
        break;
    }
    if (join) {
      ranges.back().end = chunk.range.end;
    } else if (keep) {
      ranges.push_back(chunk.range);
    }
    previous_match = chunk.is_match;
  }
  return ranges;
}

TextPiece PreTokenizer::with_metaspace(const Step& step, TextPiece piece, TextArena& arena) {
  const std::string_view text = piece.text();
  AlignedText result;
  result.reserve(text.size() + text.size() / 2);
  const ByteSpan first = piece.source->span_of_byte(piece.begin);
  const bool wanted = step.prepend == Step::Prepend::always ||
                      (step.prepend == Step::Prepend::first && first.begin == 0);
  if (wanted && !text.starts_with(step.replacement) && !text.starts_with(' ')) {
    result.append(step.replacement, {first.begin, first.begin});
  }
  std::size_t copied = piece.begin;
  for (std::size_t i = piece.begin; i < piece.end; ++i) {
    if (piece.source->text()[i] != ' ') continue;
    result.append_copy(*piece.source, copied, i);
    result.append(step.replacement, piece.source->span_of_byte(i));
    copied = i + 1;
  }
  result.append_copy(*piece.source, copied, piece.end);
  return own_piece(arena, std::move(result));
}

Result<void> PreTokenizer::apply_step(const Step& step, TextPiece piece, TextArena& arena,
                                      std::vector<TextPiece>& words) {
  switch (step.kind) {
    case Step::Kind::prefix_space:
      if (!piece.text().starts_with(' ')) piece = prepend_text(piece, " ", arena);
      words.push_back(piece);
      return {};
    case Step::Kind::alphabet:
      words.push_back(in_alphabet(piece, arena));
      return {};
    case Step::Kind::metaspace:
      words.push_back(with_metaspace(step, piece, arena));
      return {};
    case Step::Kind::split:
      break;
  }
  const auto matches = step.pattern->find_all(piece.text());
  if (!matches) return tl::unexpected(matches.error());
  if (step.behavior == SplitBehavior::isolated) {  // by far the most common: no lists between
    append_isolated(piece, *matches, words);
    return {};
  }
  for (const TextRange& range :
       split_ranges(piece.end - piece.begin, *matches, step.behavior, step.invert)) {
    if (range.begin == range.end) continue;
    words.push_back({piece.source, piece.begin + range.begin, piece.begin + range.end});
  }
  return {};
}

Result<std::vector<TextPiece>> PreTokenizer::apply(TextPiece piece, TextArena& arena) const {
  std::vector<TextPiece> words;
  if (piece.begin < piece.end) words.push_back(piece);
  for (const Step& step : m_steps) {
    std::vector<TextPiece> next;
    next.reserve(std::max(words.size(), piece.text().size() / kBytesPerWord));
    for (const TextPiece& word : words) {
      auto done = apply_step(step, word, arena, next);
      if (!done) return tl::unexpected(std::move(done.error()));
    }
    words = std::move(next);
  }
  return words;
}

}  // namespace driftscope
