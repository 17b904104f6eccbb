// SPDX-License-Identifier: Apache-2.0
// The threads of one block and where they meet.
#pragma once

#include <array>
#include <boost/context/fiber.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simt/faults.h"
#include "simt/launch.h"
#include "simt/thread.h"

namespace simt {

inline constexpr int kWarp = 32;

// A thread keeps its fiber, and so its stack, from block to block.
struct Thread {
  enum class State { idle, ready, waiting, done };
  State state = State::idle;
  bool inside = false;              // in the middle of a kernel
  boost::context::fiber fiber;      // where it goes on
  boost::context::fiber scheduler;  // where it came from
  uint3 index;
  int number = 0;  // in the block
  // What it waits for.
  Meeting meeting = Meeting::barrier;
  Where where;
  unsigned mask = 0;
  std::uint64_t value = 0;
  int source = -1;
  // Which steps of its warp's lanes are known to lie before its own (vector clock).
  std::array<std::uint32_t, kWarp> clock{};
};

// Four bytes of shared memory: who touched them last.
struct SharedWord {
  std::uint32_t bits = 0;
  bool written = false;
  int writer = 0;
  std::uint32_t write_clock = 0;
  std::uint32_t write_epoch = 0;
  int reader = -1;            // -1: none since the last write; -2: threads of several warps
  unsigned reader_lanes = 0;  // of the reader's warp
  std::uint32_t read_clock = 0;
  std::uint32_t read_epoch = 0;
};

class Block {
 public:
  // Runs one block; false after a fault.
  bool run(const std::string& kernel, const Shape& shape, uint3 block,
           const std::function<void()>& body);

  void meet_block(const Where& where);
  std::uint64_t meet_warp(Meeting kind, unsigned mask, std::uint64_t value, int source,
                          const Where& where);
  void read(std::uint32_t word, std::uint32_t words, void* target);
  void write(std::uint32_t word, std::uint32_t words, const void* source);
  std::uint32_t static_word(const void* site, std::uint32_t words);
  [[nodiscard]] std::uint32_t dynamic_end() const { return m_dynamic_words; }
  [[nodiscard]] int lane() const { return m_running->number % kWarp; }
  void add_fault(const std::string& text);
  [[nodiscard]] bool inside_kernel() const { return m_running != nullptr; }
  void set_order(Order order) { m_order = order; }

 private:
  void prepare(const Shape& shape);
  void resume(Thread& thread);
  void suspend();
  void thread_main(Thread& thread);
  bool run_ready();
  void release_block();
  bool try_release_warp(Thread& last);
  void report_stuck();
  [[nodiscard]] std::string place_of(const Thread& thread) const;
  [[nodiscard]] bool ordered(int other, std::uint32_t clock, std::uint32_t epoch) const;
  SharedWord& word_at(std::uint32_t word) { return m_shared[word]; }

  std::vector<std::unique_ptr<Thread>> m_threads;
  int m_count = 0;  // threads of the block in hand
  Thread* m_running = nullptr;
  const std::function<void()>* m_body = nullptr;
  std::string m_kernel;
  bool m_abort = false;
  bool m_failed = false;
  int m_at_barrier = 0;
  std::uint32_t m_epoch = 0;
  std::uint32_t m_dynamic_words = 0;
  std::vector<SharedWord> m_shared;
  std::map<const void*, std::uint32_t> m_sites;
  Order m_order = Order::rising;
};

Block& the_block();

}  // namespace simt
