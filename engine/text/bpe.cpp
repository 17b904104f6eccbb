// SPDX-License-Identifier: Apache-2.0
#include "engine/text/bpe.h"

#include <algorithm>
#include <queue>

#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFU;

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U) |
         static_cast<std::uint32_t>(right);
}

std::uint64_t mix(std::uint64_t key) {  // finaliser of splitmix64
  key = (key ^ (key >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  key = (key ^ (key >> 27U)) * 0x94D049BB133111EBULL;
  return key ^ (key >> 31U);
}

}  // namespace

MergeTable::MergeTable(std::size_t expected) {
  std::size_t size = 16;
  while (size < expected * 2) size *= 2;
  m_slots.resize(size);
}

std::size_t MergeTable::slot_of(std::uint64_t key) const {
  const std::size_t mask = m_slots.size() - 1;
  std::size_t slot = static_cast<std::size_t>(mix(key)) & mask;
  while (m_slots[slot].key != key && m_slots[slot].key != kFree) slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::grow() {
  std::vector<Slot> old = std::move(m_slots);
  m_slots.assign(old.size() * 2, Slot{});
  for (const Slot& slot : old) {
    if (slot.key != kFree) m_slots[slot_of(slot.key)] = slot;
  }
}

void MergeTable::insert(std::int32_t left, std::int32_t right, Merge merge) {
  if ((m_used + 1) * 2 > m_slots.size()) grow();
  Slot& slot = m_slots[slot_of(pair_key(left, right))];
  if (slot.key == kFree) ++m_used;
  slot = {pair_key(left, right), merge};
}

const MergeTable::Merge* MergeTable::find(std::int32_t left, std::int32_t right) const {
  const Slot& slot = m_slots[slot_of(pair_key(left, right))];
  return slot.key == kFree ? nullptr : &slot.merge;
}

// A node of the doubly linked list of what the word consists of so far.
struct BpeModel::Symbol {
  std::int32_t id;
  std::uint32_t begin;
  std::uint32_t end;  // begin == end: merged into the one before it
  std::uint32_t previous;
  std::uint32_t next;
};

void BpeModel::split_bytes(std::string_view word, std::vector<Symbol>& symbols) const {
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::int32_t id = byte_ids[static_cast<std::uint8_t>(word[i])];
    const auto at = static_cast<std::uint32_t>(i);
    if (id >= 0) {
      symbols.push_back({id, at, at + 1, 0, 0});
    } else if (unknown) {
      const bool fuse = fuse_unknown && !symbols.empty() && symbols.back().id == *unknown &&
                        symbols.back().end == at;
      if (fuse) {
        symbols.back().end = at + 1;
      } else {
        symbols.push_back({*unknown, at, at + 1, 0, 0});
      }
    }
  }
}

void BpeModel::split_characters(std::string_view word, std::vector<Symbol>& symbols) const {
  bool after_unknown = false;  // the last symbol stands for unknown characters
  for (std::size_t i = 0; i < word.size();) {
    const std::size_t length = decode_utf8(word, i).length;
    const auto begin = static_cast<std::uint32_t>(i);
    const auto end = static_cast<std::uint32_t>(i + length);
    i += length;
    const auto found = vocabulary.find(word.substr(begin, length));
    if (found != vocabulary.end()) {
      symbols.push_back({found->second, begin, end, 0, 0});
      after_unknown = false;
      continue;
    }
    const auto byte_id = [&](std::uint32_t at) {
      return byte_ids[static_cast<std::uint8_t>(word[at])];
    };
    bool all_bytes = byte_fallback;
    for (std::uint32_t at = begin; at < end; ++at) all_bytes = all_bytes && byte_id(at) >= 0;
    if (all_bytes) {
      for (std::uint32_t at = begin; at < end; ++at) {
        symbols.push_back({byte_id(at), at, at + 1, 0, 0});
      }
      after_unknown = false;
    } else if (unknown && fuse_unknown && after_unknown) {
      symbols.back().end = end;
    } else if (unknown) {
      symbols.push_back({*unknown, begin, end, 0, 0});
      after_unknown = true;
    }
  }
}

void BpeModel::merge_symbols(std::vector<Symbol>& symbols) const {
  struct Candidate {
    std::uint32_t rank;
    std::uint32_t position;  // of the left symbol
    std::int32_t merged;
    bool operator<(const Candidate& other) const {  // the queue gives the greatest first
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  std::vector<Candidate> storage;
  storage.reserve(symbols.size());
  std::priority_queue<Candidate> queue(std::less<Candidate>{}, std::move(storage));
  const auto propose = [&](std::uint32_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    const auto* merge = merges.find(symbols[left].id, symbols[symbols[left].next].id);
    if (merge != nullptr) queue.push({merge->rank, left, merge->merged});
  };
  const auto count = static_cast<std::uint32_t>(symbols.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols[i].previous = i == 0 ? kNone : i - 1;
    symbols[i].next = i + 1 == count ? kNone : i + 1;
  }
  for (std::uint32_t i = 0; i < count; ++i) propose(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.position];
    if (left.begin == left.end || left.next == kNone) continue;
    Symbol& right = symbols[left.next];
    // Stale when its symbols have changed since.
    const auto* merge = merges.find(left.id, right.id);
    if (merge == nullptr || merge->merged != best.merged) continue;
    left.id = best.merged;
    left.end = right.end;
    right.begin = right.end;
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = best.position;
    propose(left.previous);
    propose(best.position);
  }
}

void BpeModel::encode_word(std::string_view word, std::vector<WordToken>& tokens) const {
  if (word.empty()) return;
  if (ignore_merges) {
    const auto whole = vocabulary.find(word);
    if (whole != vocabulary.end()) {
      tokens.push_back({whole->second, 0, static_cast<std::uint32_t>(word.size())});
      return;
    }
  }
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  if (byte_level) {
    split_bytes(word, symbols);
  } else {
    split_characters(word, symbols);
  }
  merge_symbols(symbols);
  for (const Symbol& symbol : symbols) {
    if (symbol.begin < symbol.end) tokens.push_back({symbol.id, symbol.begin, symbol.end});
  }
}

}  // namespace driftscope
