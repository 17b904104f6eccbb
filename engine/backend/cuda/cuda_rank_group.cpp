// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/cuda_rank_group.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

namespace driftscope {
namespace {

// NCCL reads these when a group is opened; they decide what its sums are.
std::string note_of(int version) {
  std::string note = fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) note += fmt::format(" {}={}", name, value);
  }
  return note;
}

Result<void> check_devices(const CudaModule& module, int ranks) {
  if (module.table().open_group == nullptr) {
    return fail(ErrorKind::engine,
                "knob all_reduce: this CUDA module was built without NCCL; give --set "
                "all_reduce=ring, or install NCCL and build it again");
  }
  const auto devices = module.devices();
  if (!devices) return tl::unexpected(devices.error());
  if (static_cast<int>(devices->size()) >= ranks) return {};
  return fail(ErrorKind::engine,
              fmt::format("knob all_reduce: nccl needs a GPU for each of the {} ranks, and this "
                          "machine has {}; give --set all_reduce=ring",
                          ranks, devices->size()));
}

}  // namespace

Result<std::shared_ptr<CudaRankGroup>> CudaRankGroup::open(
    const std::shared_ptr<const CudaModule>& module, std::shared_ptr<CudaSession> first,
    int ranks) {
  if (auto enough = check_devices(*module, ranks); !enough) return tl::unexpected(enough.error());
  auto made = std::make_shared<CudaRankGroup>();
  made->m_sessions.push_back(std::move(first));
  for (int rank = 1; rank < ranks; ++rank) {
    auto session = CudaSession::open(module, 1, rank);
    if (!session) return tl::unexpected(session.error());
    made->m_sessions.push_back(*std::move(session));
  }
  std::vector<CudaContext*> contexts;
  for (const auto& session : made->m_sessions) contexts.push_back(session->context());
  const CudaTable& table = module->table();
  CudaMessage message{};
  if (table.open_group(contexts.data(), ranks, &made->m_group, &message) != 0) {
    return fail(ErrorKind::engine, fmt::format("backend cuda: {}", message.text));
  }
  made->m_note = note_of(table.group_version(made->m_group));
  return made;
}

CudaRankGroup::~CudaRankGroup() {
  if (m_group != nullptr) m_sessions[0]->table().close_group(m_group);
}

Result<void> CudaRankGroup::sum(const CudaGroupSum& request) {
  for (const auto& session : m_sessions) {
    if (auto status = session->status(); !status) return status;
  }
  CudaMessage message{};
  if (m_sessions[0]->table().group_sum(m_group, &request, &message) == 0) return {};
  return fail(ErrorKind::engine, fmt::format("backend cuda: {}", message.text));
}

}  // namespace driftscope
