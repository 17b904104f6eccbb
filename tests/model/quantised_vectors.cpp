// SPDX-License-Identifier: Apache-2.0
#include "tests/model/quantised_vectors.h"

#include <fstream>
#include <stdexcept>

#include "engine/model/checkpoint.h"
#include "engine/model/model_tensors.h"
#include "tests/model/checkpoint_builder.h"

namespace driftscope {
namespace {

using nlohmann::json;

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

void write(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace

std::string raw_file(const std::vector<RawTensor>& tensors) {
  json header = json::object();
  std::string data;
  for (const RawTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  return safetensors_bytes(header.dump(), data);
}

const json& quantised_vectors() {
  static const json all = [] {
    std::ifstream file(DRIFTSCOPE_SOURCE_DIR "/tests/model/quantised_vectors.json");
    return json::parse(file);
  }();
  return all;
}

const json& quantised_vector(const std::string& name) {
  for (const json& item : quantised_vectors().at("models")) {
    if (item.at("name") == name) return item;
  }
  throw std::runtime_error("no such model: " + name);
}

std::vector<RawTensor> tensors_of(const json& list) {
  std::vector<RawTensor> tensors;
  for (const json& item : list) {
    tensors.push_back({item.at("name"), item.at("dtype"),
                       item.at("shape").get<std::vector<std::int64_t>>(),
                       from_hex(item.at("hex"))});
  }
  return tensors;
}

void write_quantised_model(const std::filesystem::path& folder, const std::string& name) {
  const json& model = quantised_vector(name);
  write(folder / "config.json", model.at("config").dump());
  write(folder / "model.safetensors", raw_file(tensors_of(model.at("tensors"))));
}

void write_plain_twin(const std::filesystem::path& folder, const std::filesystem::path& twin) {
  const auto checkpoint = ModelCheckpoint::open(folder);
  if (!checkpoint) throw std::runtime_error(checkpoint.error().message);
  std::vector<RawTensor> tensors;
  for_each_tensor(**checkpoint, [&](const TensorView& view) {
    RawTensor tensor{view.name, "F32", view.shape, {}};
    tensor.bytes.resize(static_cast<std::size_t>(view.elements()) * sizeof(float));
    view.values(0, view.elements(), reinterpret_cast<float*>(tensor.bytes.data()));
    tensors.push_back(std::move(tensor));
  });
  json config = json::parse(std::ifstream(folder / "config.json"));
  config.erase("quantization_config");
  write(twin / "config.json", config.dump());
  write(twin / "model.safetensors", raw_file(tensors));
}

}  // namespace driftscope
