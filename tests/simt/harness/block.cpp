// SPDX-License-Identifier: Apache-2.0
#include "block.h"

#include <algorithm>
#include <cstring>

namespace simt {

Indices current;

namespace {

// Ends a thread whose block has failed; not a fault of its own.
struct Abort {};

constexpr std::size_t kStackBytes = std::size_t{128} << 10U;

const char* name_of(Meeting kind) {
  switch (kind) {
    case Meeting::barrier:
      return "__syncthreads";
    case Meeting::warp_barrier:
      return "__syncwarp";
    case Meeting::shuffle:
      return "shuffle";
    case Meeting::vote:
      return "vote";
  }
  return "?";
}

std::string text_of(const Where& where) {
  std::string file = where.file_name();
  file.erase(0, file.find_last_of('/') + 1);
  return file + ":" + std::to_string(where.line());
}

bool same_place(const Where& a, const Where& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

}  // namespace

Block& the_block() {
  static Block block;
  return block;
}

std::string Block::place_of(const Thread& thread) const {
  return "block (" + std::to_string(current.block.x) + ", " + std::to_string(current.block.y) +
         ") thread " + std::to_string(thread.number);
}

void Block::add_fault(const std::string& text) {
  m_failed = true;
  std::string where = m_kernel;
  if (m_running != nullptr) where += ", " + place_of(*m_running);
  const_cast<std::vector<std::string>&>(faults()).push_back(where + ": " + text);
}

void Block::prepare(const Shape& shape) {
  const dim3 size = shape.block;
  m_count = static_cast<int>(size.x * size.y * size.z);
  while (static_cast<int>(m_threads.size()) < m_count) {
    m_threads.push_back(std::make_unique<Thread>());
    Thread& thread = *m_threads.back();
    thread.number = static_cast<int>(m_threads.size()) - 1;
    thread.fiber =
        boost::context::fiber(std::allocator_arg, boost::context::fixedsize_stack(kStackBytes),
                              [this, &thread](boost::context::fiber&& from) {
                                thread.scheduler = std::move(from);
                                for (;;) {  // until the pool is destroyed, which unwinds this stack
                                  thread_main(thread);
                                  thread.state = Thread::State::done;
                                  suspend();
                                }
                                return std::move(thread.scheduler);
                              });
  }
  for (int i = 0; i < m_count; ++i) {
    Thread& thread = *m_threads[static_cast<std::size_t>(i)];
    const auto number = static_cast<unsigned>(i);
    thread.index = {number % size.x, number / size.x % size.y, number / size.x / size.y};
    thread.state = Thread::State::ready;
    thread.clock.fill(0);
    thread.clock[static_cast<std::size_t>(i % kWarp)] = 1;
  }
  m_abort = false;
  m_failed = false;
  m_at_barrier = 0;
  m_epoch = 0;
  m_dynamic_words = static_cast<std::uint32_t>((shape.shared_bytes + 3) / 4);
  m_shared.assign(m_dynamic_words, SharedWord{});
  m_sites.clear();
}

void Block::thread_main(Thread& thread) {
  thread.inside = true;
  try {
    (*m_body)();
  } catch (const Fault& fault) {
    m_running = &thread;
    add_fault(fault.text);
  } catch (const Abort&) {
  }
  thread.inside = false;
}

void Block::resume(Thread& thread) {
  m_running = &thread;
  current.thread = thread.index;
  thread.fiber = std::move(thread.fiber).resume();
  m_running = nullptr;
}

void Block::suspend() {
  Thread& thread = *m_running;
  thread.scheduler = std::move(thread.scheduler).resume();
  if (m_abort && thread.inside) throw Abort{};
}

// Lets every thread that can go on do so once; false if there was none.
bool Block::run_ready() {
  bool any = false;
  for (int i = 0; i < m_count; ++i) {
    const int number = m_order == Order::rising ? i : m_count - 1 - i;
    Thread& thread = *m_threads[static_cast<std::size_t>(number)];
    if (thread.state != Thread::State::ready) continue;
    any = true;
    resume(thread);
    if (m_failed) return false;
  }
  return any;
}

bool Block::run(const std::string& kernel, const Shape& shape, uint3 block,
                const std::function<void()>& body) {
  m_kernel = kernel;
  m_body = &body;
  current = {.thread = {}, .block = block, .block_shape = shape.block, .grid_shape = shape.grid};
  prepare(shape);
  while (run_ready()) {
  }
  const auto waits = [](const auto& thread) { return thread->state == Thread::State::waiting; };
  if (!m_failed && std::any_of(m_threads.begin(), m_threads.begin() + m_count, waits)) {
    report_stuck();
  }
  m_abort = true;  // unwind what is still inside the kernel
  for (int i = 0; i < m_count; ++i) {
    Thread& thread = *m_threads[static_cast<std::size_t>(i)];
    if (thread.inside) resume(thread);
    thread.state = Thread::State::idle;
  }
  return !m_failed;
}

// Nobody can go on, yet some wait: they wait for threads that will not come.
void Block::report_stuck() {
  int reported = 0;
  for (int i = 0; i < m_count && reported < 3; ++i) {
    const Thread& thread = *m_threads[static_cast<std::size_t>(i)];
    if (thread.state != Thread::State::waiting) continue;
    ++reported;
    int there = 0;
    int wanted = 0;
    const int first = thread.meeting == Meeting::barrier ? 0 : i / kWarp * kWarp;
    const int last = thread.meeting == Meeting::barrier ? m_count : first + kWarp;
    for (int j = first; j < last; ++j) {
      if (thread.meeting != Meeting::barrier && (thread.mask >> unsigned(j - first) & 1U) == 0U) {
        continue;
      }
      ++wanted;
      if (j >= m_count) continue;
      const Thread& other = *m_threads[static_cast<std::size_t>(j)];
      there += other.state == Thread::State::waiting && other.meeting == thread.meeting &&
                       same_place(other.where, thread.where) && other.mask == thread.mask
                   ? 1
                   : 0;
    }
    m_failed = true;
    const_cast<std::vector<std::string>&>(faults()).push_back(
        m_kernel + ", " + place_of(thread) + ": " + name_of(thread.meeting) + " at " +
        text_of(thread.where) + " reached by " + std::to_string(there) + " of " +
        std::to_string(wanted) + " threads");
  }
}

void Block::meet_block(const Where& where) {
  Thread& thread = *m_running;
  thread.meeting = Meeting::barrier;
  thread.where = where;
  thread.mask = 0;
  thread.state = Thread::State::waiting;
  if (++m_at_barrier == m_count) {
    release_block();
    return;
  }
  suspend();
}

void Block::release_block() {
  for (int i = 0; i < m_count; ++i) {
    const Thread& thread = *m_threads[static_cast<std::size_t>(i)];
    if (!same_place(thread.where, m_running->where)) {
      m_running->state = Thread::State::ready;
      raise_fault("__syncthreads at " + text_of(m_running->where) + ", while thread " +
                  std::to_string(i) + " is at " + text_of(thread.where));
    }
  }
  for (int i = 0; i < m_count; ++i) {
    m_threads[static_cast<std::size_t>(i)]->state = Thread::State::ready;
  }
  m_at_barrier = 0;
  ++m_epoch;
}

std::uint64_t Block::meet_warp(Meeting kind, unsigned mask, std::uint64_t value, int source,
                               const Where& where) {
  Thread& thread = *m_running;
  if ((mask >> static_cast<unsigned>(lane()) & 1U) == 0U) {
    raise_fault(std::string(name_of(kind)) + " at " + text_of(where) +
                ": the thread is not in its own mask");
  }
  if (kind == Meeting::shuffle && (mask >> static_cast<unsigned>(source) & 1U) == 0U) {
    raise_fault("shuffle at " + text_of(where) + " reads lane " + std::to_string(source) +
                ", which is not in the mask");
  }
  thread.meeting = kind;
  thread.where = where;
  thread.mask = mask;
  thread.value = value;
  thread.source = source;
  thread.state = Thread::State::waiting;
  if (!try_release_warp(thread)) suspend();
  return thread.value;
}

// If all threads of the mask are here, gives each its result.
bool Block::try_release_warp(Thread& last) {
  const int first = last.number / kWarp * kWarp;
  std::array<Thread*, kWarp> members{};
  for (int i = 0; i < kWarp; ++i) {
    // Those that come last in the order first: mostly one of them is missing.
    const int lane = m_order == Order::rising ? kWarp - 1 - i : i;
    if ((last.mask >> static_cast<unsigned>(lane) & 1U) == 0U) continue;
    if (first + lane >= m_count) return false;
    Thread& other = *m_threads[static_cast<std::size_t>(first + lane)];
    if (other.state != Thread::State::waiting || other.meeting != last.meeting ||
        other.mask != last.mask || !same_place(other.where, last.where)) {
      return false;
    }
    members[static_cast<std::size_t>(lane)] = &other;
  }
  std::array<std::uint64_t, kWarp> given{};
  std::array<std::uint32_t, kWarp> clock{};
  std::uint64_t votes = 0;
  for (std::size_t lane = 0; lane < kWarp; ++lane) {
    if (members[lane] == nullptr) continue;
    given[lane] = members[lane]->value;
    if (given[lane] != 0) votes |= std::uint64_t{1} << lane;
    if (last.meeting != Meeting::warp_barrier) continue;
    for (std::size_t i = 0; i < kWarp; ++i) clock[i] = std::max(clock[i], members[lane]->clock[i]);
  }
  for (std::size_t lane = 0; lane < kWarp; ++lane) {
    Thread* const member = members[lane];
    if (member == nullptr) continue;
    if (last.meeting == Meeting::shuffle) {
      member->value = given[static_cast<std::size_t>(member->source)];
    } else {
      member->value = votes;
    }
    if (last.meeting == Meeting::warp_barrier) {  // shuffles order no memory
      member->clock = clock;
      ++member->clock[lane];
    }
    member->state = Thread::State::ready;
  }
  return true;
}

// Whether what thread `other` did at that time lies before what the running thread does now.
bool Block::ordered(int other, std::uint32_t clock, std::uint32_t epoch) const {
  if (epoch < m_epoch || other == m_running->number) return true;
  if (other / kWarp != m_running->number / kWarp) return false;
  return m_running->clock[static_cast<std::size_t>(other % kWarp)] >= clock;
}

void Block::read(std::uint32_t word, std::uint32_t words, void* target) {
  const int me = m_running->number;
  for (std::uint32_t i = 0; i < words; ++i) {
    SharedWord& cell = word_at(word + i);
    if (!cell.written)
      raise_fault("shared word " + std::to_string(word + i) +
                  " is read before any thread has written it");
    if (!ordered(cell.writer, cell.write_clock, cell.write_epoch)) {
      raise_fault("shared word " + std::to_string(word + i) + " was written by thread " +
                  std::to_string(cell.writer) + " without a barrier before this read");
    }
    const bool fresh = cell.reader == -1 || cell.read_epoch < m_epoch;
    if (fresh) {
      cell.reader = me;
      cell.reader_lanes = 0;
      cell.read_clock = 0;
    } else if (cell.reader >= 0 && cell.reader / kWarp != me / kWarp) {
      cell.reader = -2;
    }
    cell.reader_lanes |= 1U << static_cast<unsigned>(me % kWarp);
    cell.read_clock =
        std::max(cell.read_clock, m_running->clock[static_cast<std::size_t>(me % kWarp)]);
    cell.read_epoch = m_epoch;
    std::memcpy(static_cast<char*>(target) + std::size_t{4} * i, &cell.bits, 4);
  }
}

void Block::write(std::uint32_t word, std::uint32_t words, const void* source) {
  const int me = m_running->number;
  for (std::uint32_t i = 0; i < words; ++i) {
    SharedWord& cell = word_at(word + i);
    const std::string name = "shared word " + std::to_string(word + i);
    if (cell.written && !ordered(cell.writer, cell.write_clock, cell.write_epoch)) {
      raise_fault(name + " was written by thread " + std::to_string(cell.writer) +
                  " without a barrier before this write");
    }
    if (cell.reader != -1 && cell.read_epoch == m_epoch) {
      bool safe = cell.reader >= 0;
      for (int lane = 0; safe && lane < kWarp; ++lane) {
        if ((cell.reader_lanes >> static_cast<unsigned>(lane) & 1U) == 0U) continue;
        safe = ordered(cell.reader / kWarp * kWarp + lane, cell.read_clock, cell.read_epoch);
      }
      if (!safe)
        raise_fault(name + " was read by another thread without a barrier before this write");
    }
    std::memcpy(&cell.bits, static_cast<const char*>(source) + std::size_t{4} * i, 4);
    cell.written = true;
    cell.writer = me;
    cell.write_clock = m_running->clock[static_cast<std::size_t>(me % kWarp)];
    cell.write_epoch = m_epoch;
    cell.reader = -1;
  }
}

std::uint32_t Block::static_word(const void* site, std::uint32_t words) {
  const auto [place, added] =
      m_sites.try_emplace(site, static_cast<std::uint32_t>(m_shared.size()));
  if (added) m_shared.resize(m_shared.size() + words);
  return place->second;
}

void meet_block(const Where& where) { the_block().meet_block(where); }
std::uint64_t meet_warp(Meeting kind, unsigned mask, std::uint64_t value, int source,
                        const Where& where) {
  return the_block().meet_warp(kind, mask, value, source, where);
}
int lane_of_current() { return the_block().lane(); }
void read_shared(std::uint32_t word, std::uint32_t words, void* target) {
  the_block().read(word, words, target);
}
void write_shared(std::uint32_t word, std::uint32_t words, const void* source) {
  the_block().write(word, words, source);
}
std::uint32_t static_shared_word(const void* site, std::uint32_t words) {
  return the_block().static_word(site, words);
}
std::uint32_t dynamic_shared_word(std::size_t byte_offset) {
  return static_cast<std::uint32_t>(byte_offset / 4);
}
std::uint32_t dynamic_shared_end() { return the_block().dynamic_end(); }
void set_order(Order order) { the_block().set_order(order); }

}  // namespace simt
