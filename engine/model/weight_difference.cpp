// SPDX-License-Identifier: Apache-2.0
#include "engine/model/weight_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/model/tensor_table.h"

namespace driftscope {
namespace {

constexpr std::int64_t kValuesAtOnce = 4096;

// Patterns of one type in an order that rises with the value, both zeros in one place.
std::int64_t ordered(std::uint32_t bits, int width) {
  const std::uint32_t sign = std::uint32_t{1} << static_cast<unsigned>(width - 1);
  const std::int64_t magnitude = bits & (sign - 1U);
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

std::int64_t ordered_element(const TensorView& view, std::int64_t index) {
  const auto* bytes = static_cast<const unsigned char*>(view.data);
  if (view.dtype == Dtype::f32) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes + 4 * index, sizeof bits);
    return ordered(bits, 32);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes + 2 * index, sizeof bits);
  return ordered(bits, 16);
}

void note_element(TensorDifference& found, const TensorView& a, const TensorView& b,
                  std::int64_t index, float value_a, float value_b) {
  if (found.different++ == 0) {
    found.first = index;
    found.value_a = value_a;
    found.value_b = value_b;
  }
  const double distance = std::abs(double{value_a} - double{value_b});
  if (distance > found.max_abs) found.max_abs = distance;
  if (a.dtype == b.dtype && a.decoder == nullptr && b.decoder == nullptr) {
    found.max_ulp =
        std::max(found.max_ulp, std::abs(ordered_element(a, index) - ordered_element(b, index)));
  }
}

TensorDifference compare_tensors(const TensorView& a, const TensorView& b) {
  TensorDifference found{.name = a.name, .elements = a.elements()};
  const bool plain = a.decoder == nullptr && b.decoder == nullptr && a.dtype == b.dtype;
  if (plain && std::memcmp(a.data, b.data, a.bytes()) == 0) return found;
  std::vector<float> block_a(kValuesAtOnce);
  std::vector<float> block_b(kValuesAtOnce);
  for (std::int64_t begin = 0; begin < found.elements; begin += kValuesAtOnce) {
    const auto count = static_cast<std::size_t>(std::min(kValuesAtOnce, found.elements - begin));
    a.values(begin, static_cast<std::int64_t>(count), block_a.data());
    b.values(begin, static_cast<std::int64_t>(count), block_b.data());
    for (std::size_t i = 0; i < count; ++i) {
      // By bits, so that NaN equals itself; -0 and +0 are one value but may differ in the result.
      if (std::bit_cast<std::uint32_t>(block_a[i]) == std::bit_cast<std::uint32_t>(block_b[i])) {
        continue;
      }
      note_element(found, a, b, begin + static_cast<std::int64_t>(i), block_a[i], block_b[i]);
    }
  }
  return found;
}

void add(WeightDifference& result, const TensorView& a, const TensorView& b) {
  if (!a.present() || !b.present() || a.shape != b.shape) return;
  ++result.tensors;
  auto found = compare_tensors(a, b);
  if (found.different > 0) result.different.push_back(std::move(found));
}

void add_experts(WeightDifference& result, const LayerTensors& a, const LayerTensors& b) {
  for (std::size_t i = 0; i < std::min(a.experts.size(), b.experts.size()); ++i) {
    for (const auto member :
         {&ExpertTensors::gate, &ExpertTensors::up, &ExpertTensors::down, &ExpertTensors::gate_bias,
          &ExpertTensors::up_bias, &ExpertTensors::down_bias}) {
      add(result, a.experts[i].*member, b.experts[i].*member);
    }
  }
}

}  // namespace

WeightDifference weight_difference(const ModelCheckpoint& a, const ModelCheckpoint& b) {
  WeightDifference result;
  add(result, a.embedding(), b.embedding());
  add(result, a.position_embedding(), b.position_embedding());
  const Naming& naming = huggingface_naming(a.description());
  const auto layers = std::min(a.description().layers, b.description().layers);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const LayerTensorRow& row : naming.layers) {
      if (!is_present(row.presence, a.description(), layer)) continue;
      add(result, a.layer(layer).*row.member, b.layer(layer).*row.member);
    }
    add_experts(result, a.layer(layer), b.layer(layer));
  }
  add(result, a.final_norm(), b.final_norm());
  add(result, a.final_norm_bias(), b.final_norm_bias());
  if (!a.description().tied_embeddings && !b.description().tied_embeddings) {
    add(result, a.lm_head(), b.lm_head());
  }
  return result;
}

std::string describe(const WeightDifference& difference, const ModelDescription& description) {
  if (difference.different.empty()) {
    return fmt::format("all {} tensors hold the same values", difference.tensors);
  }
  const auto count = difference.different.size();
  const auto largest = std::max_element(
      difference.different.begin(), difference.different.end(),
      [](const TensorDifference& x, const TensorDifference& y) { return x.max_abs < y.max_abs; });
  std::string text =
      fmt::format("{} of {} tensors {}: {}{}, {} of {} elements", count, difference.tensors,
                  count == 1 ? "differs" : "differ", count == 1 ? "" : "most in ", largest->name,
                  largest->different, largest->elements);
  if (largest->max_ulp >= 0) {
    text += fmt::format(", by at most {} unit{} in the last place of {}", largest->max_ulp,
                        largest->max_ulp == 1 ? "" : "s", dtype_name(description.stored_dtype));
  }
  text += fmt::format("; first element {}: {} and {}", largest->first, largest->value_a,
                      largest->value_b);
  if (count > 1)
    text += fmt::format("; first in the network: {}", difference.different.front().name);
  return text;
}

}  // namespace driftscope
