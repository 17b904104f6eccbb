// SPDX-License-Identifier: Apache-2.0
// Persistent worker threads behind kernels' Parallel.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/base/parallel.h"

namespace driftscope {

// The caller of run() is worker 0; `threads` - 1 others wait for work. Tasks are claimed one by
// one, so a worker that the operating system keeps from running delays nobody but the tasks it
// holds. Waiting is a short spin and then a sleep: a spin-only barrier collapses when another
// process wants the cores. Calls from inside a task run on that task's thread. Tasks must not
// throw.
class ThreadPool final : public Parallel {
 public:
  // threads: at least 1; 0 means all cores that this process may use.
  explicit ThreadPool(int threads);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int workers() const override { return m_workers; }
  void run(std::size_t tasks, TaskRef task) override;

 private:
  void work(int worker);
  // Claims and runs tasks until none is left.
  void drain(int worker);
  void wait_for_work();
  void wait_until_done(std::size_t tasks);

  int m_workers = 1;
  int m_spins = 0;
  std::mutex m_run_mutex;  // one run() at a time

  // The job. Written while nobody holds a task of it; read by whoever has claimed one.
  const TaskRef* m_task = nullptr;
  std::size_t m_tasks = 0;
  // Tasks not yet claimed. Apart from the other counters so that claiming does not slow finishing.
  alignas(64) std::atomic<std::size_t> m_unclaimed{0};
  alignas(64) std::atomic<std::size_t> m_finished{0};

  alignas(64) std::atomic<int> m_sleepers{0};
  std::atomic<bool> m_caller_sleeps{false};
  std::atomic<bool> m_stop{false};
  std::mutex m_sleep_mutex;
  std::condition_variable m_work_ready;
  std::condition_variable m_all_done;
  std::vector<std::thread> m_threads;
};

// Cores that this process may run on, at least 1.
[[nodiscard]] int available_cores();

}  // namespace driftscope
