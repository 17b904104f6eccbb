// SPDX-License-Identifier: Apache-2.0
// Strings with a number each, found by their common prefixes with a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace driftscope {

class ByteTrie {
 public:
  ByteTrie() : m_values(1, kNoValue) {}

  // A later value of the same key replaces the earlier one. `key` is not empty, `value` >= 0.
  void insert(std::string_view key, std::int32_t value) {
    std::uint32_t node = 0;
    for (const char byte : key) {
      if ((m_used + 1) * 2 > m_slots.size()) grow();
      const std::uint64_t edge = edge_of(node, byte);
      Slot& slot = m_slots[slot_of(edge)];
      if (slot.edge == kFree) {
        slot = {edge, static_cast<std::uint32_t>(m_values.size())};
        m_values.push_back(kNoValue);
        ++m_used;
      }
      node = slot.node;
    }
    m_values[node] = value;
  }

  // Calls visit(length, value) for every key that `text` begins with, the shortest first.
  template <class Visit>
  void for_each_prefix(std::string_view text, Visit visit) const {
    if (m_slots.empty()) return;
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const Slot& slot = m_slots[slot_of(edge_of(node, text[i]))];
      if (slot.edge == kFree) return;
      node = slot.node;
      if (m_values[node] != kNoValue) visit(i + 1, m_values[node]);
    }
  }

 private:
  struct Slot {
    std::uint64_t edge = kFree;
    std::uint32_t node = 0;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  static constexpr std::int32_t kNoValue = -1;

  static std::uint64_t edge_of(std::uint32_t node, char byte) {
    return (std::uint64_t{node} << 8U) | static_cast<std::uint8_t>(byte);
  }
  [[nodiscard]] std::size_t slot_of(std::uint64_t edge) const {
    const std::size_t mask = m_slots.size() - 1;
    std::uint64_t mixed = edge * 0x9E3779B97F4A7C15ULL;  // 2^64 over the golden ratio
    mixed ^= mixed >> 32U;
    std::size_t slot = static_cast<std::size_t>(mixed) & mask;
    while (m_slots[slot].edge != edge && m_slots[slot].edge != kFree) slot = (slot + 1) & mask;
    return slot;
  }
  void grow() {
    std::vector<Slot> old = std::move(m_slots);
    m_slots.assign(old.empty() ? 1024 : old.size() * 2, Slot{});
    for (const Slot& slot : old) {
      if (slot.edge != kFree) m_slots[slot_of(slot.edge)] = slot;
    }
  }

  std::vector<Slot> m_slots;  // open addressing: (node, byte) -> node
  std::size_t m_used = 0;
  std::vector<std::int32_t> m_values;  // by node
};

}  // namespace driftscope
