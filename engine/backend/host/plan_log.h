// SPDX-License-Identifier: Apache-2.0
// Which plans really ran.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "kernels/plan/reduction_plan.h"

namespace driftscope {

// Keeps each distinct (phase, operation, n, k, plan) once, with the range of M seen.
class PlanLog {
 public:
  // `kernel` stands behind every plan: "kernel=bf16_dot", or empty.
  explicit PlanLog(std::string kernel = {}) : m_kernel(std::move(kernel)) {}
  // `operation` must have static storage; n and k are of one rank's share where ranks share it.
  void record(Phase phase, std::string_view operation, std::int64_t m, std::int64_t n,
              std::int64_t k, const ReductionPlan& plan, std::int64_t ranks = 1);
  // Messages of `elements` each that ranks added up as `text` says.
  void record_message(Phase phase, std::string_view text, std::int64_t elements);
  // Something else that a phase ran under, once per phase.
  void note(Phase phase, std::string_view text);
  // "decode q_proj m=8 n=192 k=192: lanes=32 split_k=2 …", with "ranks=4" before the colon where
  // so many ranks ran a share of that shape each, and the kernel at the end; in order of first use.
  // Then "decode all_reduce ring ranks=4 dtype=bf16 elements=192..1536"; notes come last.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  struct Entry {
    Phase phase;
    std::string_view operation;
    std::int64_t m_least;
    std::int64_t m_most;
    std::int64_t n;
    std::int64_t k;
    std::int64_t ranks;
    ReductionPlan plan;
  };
  struct Message {
    Phase phase;
    std::string text;
    std::int64_t least;
    std::int64_t most;
  };
  struct Note {
    Phase phase;
    std::string text;
  };
  std::string m_kernel;
  std::vector<Entry> m_entries;
  std::vector<Message> m_messages;
  std::vector<Note> m_notes;
};

}  // namespace driftscope
