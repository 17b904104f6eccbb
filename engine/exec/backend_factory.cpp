// SPDX-License-Identifier: Apache-2.0
#include "engine/exec/backend_factory.h"

#include "engine/backend/reference/reference_backend.h"
#include "engine/config/knob.h"

namespace driftscope {

Result<std::unique_ptr<Backend>> BackendFactory::open(
    const std::shared_ptr<const ModelCheckpoint>& checkpoint, const RunConfig& config) {
  if (auto fits = check_config(config); !fits) return tl::unexpected(fits.error());
  switch (config.backend) {
    case BackendKind::host:
      return m_host.open(checkpoint, config);
    case BackendKind::cuda:
      return m_cuda.open(checkpoint, config);
  }
  return fail(ErrorKind::engine, "unknown backend; use --set backend=host");
}

void BackendFactory::expect_calls(std::int64_t calls) {
  // A copy costs about as much as eight passes over mapped weights lose against copied ones.
  constexpr std::int64_t kWorthCopying = 8;
  if (calls < kWorthCopying) m_host.set_storage(WeightStorage::mapped);
}

Result<std::unique_ptr<Backend>> BackendFactory::open_reference(
    const std::shared_ptr<const ModelCheckpoint>& checkpoint, std::int64_t threads) {
  return driftscope::open_reference(
      checkpoint, m_host.pool(threads > 0 ? static_cast<int>(threads) : available_cores()));
}

}  // namespace driftscope
