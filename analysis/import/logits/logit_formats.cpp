// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/logits/logit_formats.h"

#include <array>

namespace driftscope {
namespace {

using namespace logits;

constexpr std::array kFormats{
    LogitFormat{"kld-base", "llama.cpp --kl-divergence-base logit file", &is_kld, &read_kld},
    LogitFormat{"llama-results", "llama.cpp llama-results GGUF (tensors tokens and logits)",
                &is_results_gguf, &read_results_gguf},
    LogitFormat{"npy", "NumPy .npy matrix [positions, vocabulary]", &is_npy, &read_npy},
    LogitFormat{"npz", "NumPy .npz archive with a matrix of logits, and tokens if given", &is_npz,
                &read_npz},
    LogitFormat{"hdf5", "HDF5 with a dataset logits (see analysis/capture/FORMAT.md)", &is_hdf5,
                &read_own_hdf5},
    LogitFormat{"safetensors", "safetensors with a tensor logits, and tokens if given",
                &is_safetensors, &read_safetensors_logits},
};

}  // namespace

std::span<const LogitFormat> logit_formats() { return kFormats; }

const LogitFormat* find_logit_format(std::string_view bytes) {
  for (const LogitFormat& row : kFormats) {
    if (row.sniff(bytes)) return &row;
  }
  return nullptr;
}

Result<LogitFile> read_logit_file(const LogitSource& source) {
  const LogitFormat* format = find_logit_format(source.bytes);
  if (format == nullptr) return broken_file(source, "is no logit file that is known here");
  auto file = format->read(source);
  if (file) file->format = format->name;
  return file;
}

}  // namespace driftscope
