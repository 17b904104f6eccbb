// SPDX-License-Identifier: Apache-2.0
// The angles of a model's layers, by layer and length of the sequence.
#pragma once

#include <cstdint>

#include "engine/backend/reference/reference_operations.h"
#include "engine/model/checkpoint.h"

namespace driftscope::reference {

class Rotations {
 public:
  explicit Rotations(const ModelDescription& model);
  // `local`: of the layers with the window where they rotate by angles of their own. `length`: of
  // the sequence; LongRoPE has a second set for those beyond the original length.
  [[nodiscard]] const Rotation& of(bool local, std::int64_t length) const;

 private:
  struct Set {
    Rotation usual, beyond;
    std::int64_t longest = 0;  // the longest sequence of the usual set; 0: all are
  };
  static Set set_of(const ModelDescription& model, bool local);
  Set m_global, m_local;
};

}  // namespace driftscope::reference
