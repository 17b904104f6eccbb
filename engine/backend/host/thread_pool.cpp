// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/host/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cassert>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace driftscope {
namespace {

// About 20 to 50 microseconds: longer than the gap between two kernels of a decode step, far
// shorter than a time slice.
constexpr int kSpins = 1500;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// The worker number of this thread while it runs a task of any pool, else -1.
thread_local int current_worker = -1;

class WorkerScope {
 public:
  explicit WorkerScope(int worker) { current_worker = worker; }
  ~WorkerScope() { current_worker = -1; }
  WorkerScope(const WorkerScope&) = delete;
  WorkerScope& operator=(const WorkerScope&) = delete;
};

}  // namespace

int available_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) : m_workers(threads > 0 ? threads : available_cores()) {
  // More threads than cores: a spinning thread would keep a working one from its core.
  m_spins = m_workers <= available_cores() ? kSpins : 0;
  m_threads.reserve(static_cast<std::size_t>(m_workers - 1));
  for (int worker = 1; worker < m_workers; ++worker) {
    m_threads.emplace_back([this, worker] { work(worker); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(m_sleep_mutex);
    m_stop.store(true);
  }
  m_work_ready.notify_all();
  for (std::thread& thread : m_threads) thread.join();
}

void ThreadPool::run(std::size_t tasks, TaskRef task) {
  if (tasks == 0) return;
  if (current_worker >= 0) {
    for (std::size_t i = 0; i < tasks; ++i) task(i, current_worker);
    return;
  }
  const std::lock_guard one_run(m_run_mutex);
  if (tasks == 1 || m_workers == 1) {
    const WorkerScope scope(0);
    for (std::size_t i = 0; i < tasks; ++i) task(i, 0);
    return;
  }
  m_task = &task;
  m_tasks = tasks;
  m_finished.store(0, std::memory_order_relaxed);
  // Sequentially consistent here and in wait_for_work(): either this thread sees the sleeper, or
  // the sleeper sees the tasks.
  m_unclaimed.store(tasks);
  if (m_sleepers.load() > 0) {
    { const std::lock_guard lock(m_sleep_mutex); }
    m_work_ready.notify_all();
  }
  drain(0);
  wait_until_done(tasks);
}

void ThreadPool::drain(int worker) {
  const WorkerScope scope(worker);
  std::size_t unclaimed = m_unclaimed.load(std::memory_order_relaxed);
  while (unclaimed > 0) {
    if (!m_unclaimed.compare_exchange_weak(unclaimed, unclaimed - 1, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
      continue;
    }
    // The claim pins the job: run() cannot return before this task is counted as finished.
    const std::size_t tasks = m_tasks;
    (*m_task)(tasks - unclaimed, worker);
    if (m_finished.fetch_add(1) + 1 == tasks && m_caller_sleeps.load()) {
      { const std::lock_guard lock(m_sleep_mutex); }
      m_all_done.notify_one();
    }
    unclaimed = m_unclaimed.load(std::memory_order_relaxed);
  }
}

void ThreadPool::wait_until_done(std::size_t tasks) {
  for (int spin = 0; spin < m_spins; ++spin) {
    if (m_finished.load(std::memory_order_acquire) == tasks) return;
    relax();
  }
  std::unique_lock lock(m_sleep_mutex);
  m_caller_sleeps.store(true);
  m_all_done.wait(lock, [&] { return m_finished.load() == tasks; });
  m_caller_sleeps.store(false);
}

void ThreadPool::wait_for_work() {
  for (int spin = 0; spin < m_spins; ++spin) {
    if (m_unclaimed.load(std::memory_order_relaxed) > 0 || m_stop.load()) return;
    relax();
  }
  std::unique_lock lock(m_sleep_mutex);
  m_sleepers.fetch_add(1);
  m_work_ready.wait(lock, [&] { return m_unclaimed.load() > 0 || m_stop.load(); });
  m_sleepers.fetch_sub(1);
}

void ThreadPool::work(int worker) {
  while (true) {
    wait_for_work();
    if (m_stop.load()) return;
    drain(worker);
  }
}

}  // namespace driftscope
