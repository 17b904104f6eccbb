// SPDX-License-Identifier: Apache-2.0
// Words that were encoded before, for the length of one text.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "engine/text/word_model.h"

namespace driftscope {

class WordCache {
 public:
  explicit WordCache(const WordModel& model) : m_model(model), m_slots(kFirstSlots) {}

  // Tokens of `word`, valid until the next call. The bytes of `word` must live as long as this.
  std::span<const WordToken> tokens_of(std::string_view word) {
    if (word.size() > kMaxBytes) return encode(word, true);
    const std::uint64_t hash = hash_of(word);
    Slot* slot = find(hash, word);
    if (slot->count == kFree) {
      if (m_used >= kMaxWords) return encode(word, true);
      if ((m_used + 1) * 2 > m_slots.size()) {
        grow();
        slot = find(hash, word);
      }
      const std::span<const WordToken> tokens = encode(word, false);
      *slot = {hash, word.data(), static_cast<std::uint32_t>(word.size()),
               static_cast<std::uint32_t>(tokens.data() - m_tokens.data()),
               static_cast<std::uint32_t>(tokens.size())};
      ++m_used;
    }
    return std::span<const WordToken>(m_tokens).subspan(slot->first, slot->count);
  }

 private:
  static constexpr std::uint32_t kFree = 0xFFFFFFFFU;
  static constexpr std::size_t kFirstSlots = 1024;
  static constexpr std::size_t kMaxBytes = 64;
  static constexpr std::size_t kMaxWords = 262'144;

  struct Slot {
    std::uint64_t hash = 0;
    const char* text = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t first = 0;      // in m_tokens
    std::uint32_t count = kFree;  // of tokens
  };

  static std::uint64_t load(const char* bytes, std::size_t count) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes, count);
    return value;
  }
  static std::uint64_t hash_of(std::string_view word) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ULL;  // 2^64 over the golden ratio
    std::uint64_t hash = word.size() * kOdd;
    std::size_t at = 0;
    for (; at + 8 <= word.size(); at += 8) {
      hash = (hash ^ load(word.data() + at, 8)) * kOdd;
      hash ^= hash >> 32U;
    }
    hash = (hash ^ load(word.data() + at, word.size() - at)) * kOdd;
    return hash ^ (hash >> 32U);
  }

  Slot* find(std::uint64_t hash, std::string_view word) {
    const std::size_t mask = m_slots.size() - 1;
    for (std::size_t at = static_cast<std::size_t>(hash) & mask;; at = (at + 1) & mask) {
      Slot& slot = m_slots[at];
      const bool here = slot.count == kFree ||
                        (slot.hash == hash && std::string_view(slot.text, slot.bytes) == word);
      if (here) return &slot;
    }
  }
  void grow() {
    std::vector<Slot> old(m_slots.size() * 2);
    old.swap(m_slots);
    for (const Slot& slot : old) {
      if (slot.count != kFree) *find(slot.hash, {slot.text, slot.bytes}) = slot;
    }
  }
  std::span<const WordToken> encode(std::string_view word, bool only_now) {
    std::vector<WordToken>& target = only_now ? m_scratch : m_tokens;
    if (only_now) target.clear();
    const std::size_t first = target.size();
    m_model.encode_word(word, target);
    return std::span<const WordToken>(target).subspan(first);
  }

  const WordModel& m_model;
  std::vector<Slot> m_slots;  // open addressing
  std::size_t m_used = 0;
  std::vector<WordToken> m_tokens;
  std::vector<WordToken> m_scratch;  // of a word that is not kept
};

}  // namespace driftscope
