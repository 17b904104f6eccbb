// SPDX-License-Identifier: Apache-2.0
// How a kernel asks for threads without knowing a thread policy: kernels split their
// work into tasks, somebody else decides who runs them. The result of a kernel must not
// depend on the number of workers or on which worker ran which task.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace driftscope {

// A non-owning reference to a callable `void(std::size_t task, int worker)`.
class TaskRef {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TaskRef>)
      TaskRef(F&& function)  // NOLINT(google-explicit-constructor): call-site brevity
      : m_object(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        m_call([](void* object, std::size_t task, int worker) {
          (*static_cast<std::remove_reference_t<F>*>(object))(task, worker);
        }) {}
  void operator()(std::size_t task, int worker) const { m_call(m_object, task, worker); }

 private:
  void* m_object;
  void (*m_call)(void*, std::size_t, int);
};

class Parallel {
 public:
  virtual ~Parallel() = default;
  // Number of workers, at least 1. Worker numbers given to tasks are in [0, workers()).
  [[nodiscard]] virtual int workers() const = 0;
  // Runs task 0 … tasks-1, each exactly once, and returns when all are done.
  virtual void run(std::size_t tasks, TaskRef task) = 0;
};

// Runs everything on the calling thread.
class SerialParallel final : public Parallel {
 public:
  [[nodiscard]] int workers() const override { return 1; }
  void run(std::size_t tasks, TaskRef task) override {
    for (std::size_t i = 0; i < tasks; ++i) task(i, 0);
  }
};

}  // namespace driftscope
