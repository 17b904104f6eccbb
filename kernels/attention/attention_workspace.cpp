// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_workspace.h"

namespace driftscope {

float* AlignedFloats::resize(std::size_t count) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kSlack = kLine / sizeof(float);
  if (m_storage.size() < count + kSlack) {
    m_storage = std::vector<float>(count + kSlack);
    const auto address = reinterpret_cast<std::uintptr_t>(m_storage.data());
    m_begin = m_storage.data() + (kLine - address % kLine) % kLine / sizeof(float);
  }
  return m_begin;
}

AttentionWorkspace& thread_workspace() {
  thread_local AttentionWorkspace workspace;
  return workspace;
}

}  // namespace driftscope
