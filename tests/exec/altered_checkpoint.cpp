// SPDX-License-Identifier: Apache-2.0
#include "tests/exec/altered_checkpoint.h"

#include <stdexcept>
#include <utility>

namespace driftscope::test {

AlteredCheckpoint::AlteredCheckpoint(std::shared_ptr<const ModelCheckpoint> original)
    : changed(original->description()),
      norm(original->final_norm()),
      norm_bias(original->final_norm_bias()),
      positions(original->position_embedding()),
      m_original(std::move(original)) {
  for (std::int64_t i = 0; i < changed.layers; ++i) layers.push_back(m_original->layer(i));
}

std::vector<float> AlteredCheckpoint::values_of(const TensorView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.elements()));
  view.values(0, view.elements(), values.data());
  return values;
}

void AlteredCheckpoint::set(TensorView& view, std::vector<float> values) {
  if (static_cast<std::int64_t>(values.size()) != view.elements()) {
    throw std::runtime_error("another number of elements for " + view.name);
  }
  m_values.push_back(std::move(values));
  view.data = m_values.back().data();
  view.dtype = Dtype::f32;
  view.decoder = nullptr;
}

}  // namespace driftscope::test
