// SPDX-License-Identifier: Apache-2.0
#include "engine/model/stored_shape.h"

#include <fmt/format.h>

#include <utility>

#include "engine/model/tensor_transforms.h"

namespace driftscope {
namespace {

using Part = Stored::Part;
using Turn = Stored::Turn;

// Rows of a fused tensor: where the part begins, and how many there are in all.
struct FusedRows {
  std::int64_t first = 0;
  std::int64_t all = 0;
  std::string keys;
};

FusedRows fused_rows(Part part, std::int64_t own, const ModelDescription& description) {
  const std::int64_t query = description.heads * description.head_dim;
  const std::int64_t key = description.kv_heads * description.head_dim;
  const std::string qkv = "(num_attention_heads + 2 * num_key_value_heads) * head_dim";
  switch (part) {
    case Part::whole:
      break;
    case Part::q:
      return {0, query + 2 * key, qkv};
    case Part::k:
      return {query, query + 2 * key, qkv};
    case Part::v:
      return {query + key, query + 2 * key, qkv};
    case Part::gate:
      return {0, 2 * own, "2 * intermediate_size"};
    case Part::up:
      return {own, 2 * own, "2 * intermediate_size"};
  }
  return {0, own, ""};
}

bool is_matrix(std::array<Dimension, 2> bound) { return bound[1] != Dimension::one; }

}  // namespace

StoredShape stored_shape(std::array<Dimension, 2> bound, const Stored& stored,
                         const ModelDescription& description) {
  StoredShape shape;
  const auto add = [&](std::int64_t size, std::string keys) {
    shape.sizes.push_back(size);
    shape.keys.push_back(std::move(keys));
  };
  if (stored.stacked) {
    add(description.moe.experts, std::string(dimension_keys(Dimension::experts)));
  }
  const std::int64_t own = dimension_size(bound[0], description);
  FusedRows rows = fused_rows(stored.part, own, description);
  if (stored.part == Part::whole) rows.keys = dimension_keys(bound[0]);
  if (stored.turn != Turn::all) {
    rows.all *= 2;
    rows.keys = "2 * " + rows.keys;
  }
  add(rows.all, std::move(rows.keys));
  if (!is_matrix(bound)) return shape;
  add(dimension_size(bound[1], description), std::string(dimension_keys(bound[1])));
  if (stored.transposed) {
    const std::size_t last = shape.sizes.size() - 1;
    std::swap(shape.sizes[last - 1], shape.sizes[last]);
    std::swap(shape.keys[last - 1], shape.keys[last]);
  }
  return shape;
}

TensorView undo_storage(TensorView view, std::array<Dimension, 2> bound, const Stored& stored,
                        const ModelDescription& description, std::int64_t expert) {
  const std::int64_t own = dimension_size(bound[0], description);
  std::vector<std::int64_t> shape{own};
  if (is_matrix(bound)) shape.push_back(dimension_size(bound[1], description));
  const bool as_it_is = stored.part == Part::whole && stored.turn == Turn::all &&
                        !stored.transposed && !stored.stacked && !stored.plus_one &&
                        !stored.paired_rows;
  if (as_it_is) {
    view.shape = std::move(shape);
    return view;
  }
  StridedView strided(std::move(view));
  if (stored.stacked) strided.pick(expert);
  if (stored.transposed) strided.transpose();
  if (stored.turn != Turn::all) strided.every_second(stored.turn == Turn::odd ? 1 : 0);
  if (stored.part != Part::whole) {
    strided.slice(fused_rows(stored.part, own, description).first, own);
  }
  if (stored.paired_rows) strided.unpair_rows(description.head_dim);
  if (stored.plus_one) strided.add_one();
  return std::move(strided).finish(std::move(shape));
}

}  // namespace driftscope
