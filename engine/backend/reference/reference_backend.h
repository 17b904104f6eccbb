// SPDX-License-Identifier: Apache-2.0
// The witness: the same weights in f64 throughout.
#pragma once

#include <memory>

#include "engine/backend/backend.h"
#include "engine/backend/host/thread_pool.h"
#include "engine/model/checkpoint.h"

namespace driftscope {

// A backend that computes every operation in f64 from the checkpoint's stored values, whatever the
// knobs of either side: no rounding point, no reduced type, one stated order per sum. Its logits
// are rounded once, to f32, when they are handed out. Against them the error of A and of B is known
// to about 2^-24 of a logit, far below what f32 kernels leave. Slow: one widened weight row at a
// time. Taps are those of calls with one sequence; what lies
// inside a mixture of experts is NaN in them. Bits do not depend on the number of threads. Errors:
// engine (a kind of model that it does not know).
[[nodiscard]] Result<std::unique_ptr<Backend>> open_reference(
    std::shared_ptr<const ModelCheckpoint> checkpoint, std::shared_ptr<ThreadPool> pool);

}  // namespace driftscope
