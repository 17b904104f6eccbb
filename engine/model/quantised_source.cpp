// SPDX-License-Identifier: Apache-2.0
#include "engine/model/quantised_source.h"

#include <utility>

#include "engine/model/quantised_decoders.h"
#include "engine/model/quantised_matrix.h"

namespace driftscope {
namespace {

class QuantisedSource final : public TensorSource {
 public:
  QuantisedSource(std::unique_ptr<TensorSource> stored, QuantisedConfig config)
      : m_stored(std::move(stored)), m_config(std::move(config)) {}

  [[nodiscard]] bool contains(std::string_view name) const override {
    return m_stored->contains(name) || m_stored->contains(codes_name(name));
  }
  [[nodiscard]] Result<TensorView> find(const std::string& name) const override {
    auto view = quantised(name);
    if (!view) return tl::unexpected(std::move(view.error()));
    if (*view) return std::move(**view);
    return m_stored->find(name);
  }
  [[nodiscard]] std::optional<StoredElements> stored(const std::string& name) const override {
    return m_stored->stored(name);
  }
  [[nodiscard]] std::size_t size() const override { return m_stored->size(); }
  [[nodiscard]] std::string file_of(std::string_view name) const override {
    return m_stored->file_of(m_stored->contains(name) ? std::string(name) : codes_name(name));
  }
  [[nodiscard]] std::vector<std::filesystem::path> files() const override {
    return m_stored->files();
  }

 private:
  // The tensor that holds the codes of `name` where they have a name of their own.
  [[nodiscard]] std::string codes_name(std::string_view name) const {
    switch (m_config.method) {
      case QuantisedMethod::gptq:
      case QuantisedMethod::awq:
        return module_of(name) + ".qweight";
      case QuantisedMethod::compressed_tensors:
        return std::string(name) + "_packed";
      case QuantisedMethod::mxfp4:
        return std::string(name) + "_blocks";
      case QuantisedMethod::fp8:
      case QuantisedMethod::none:
        break;
    }
    return std::string(name);
  }

  [[nodiscard]] QuantisedView quantised(const std::string& name) const {
    switch (m_config.method) {
      case QuantisedMethod::gptq:
        return gptq_view(*m_stored, m_config, name);
      case QuantisedMethod::awq:
        return awq_view(*m_stored, m_config, name);
      case QuantisedMethod::mxfp4:
        return mxfp4_view(*m_stored, name);
      case QuantisedMethod::fp8:
        return scaled_view(*m_stored, m_config, name);
      case QuantisedMethod::compressed_tensors: {
        auto view = packed_view(*m_stored, m_config, name);
        if (!view || *view) return view;
        return scaled_view(*m_stored, m_config, name);
      }
      case QuantisedMethod::none:
        break;
    }
    return std::nullopt;
  }

  std::unique_ptr<TensorSource> m_stored;
  QuantisedConfig m_config;
};

}  // namespace

std::unique_ptr<TensorSource> make_quantised_source(std::unique_ptr<TensorSource> stored,
                                                    QuantisedConfig config) {
  return std::make_unique<QuantisedSource>(std::move(stored), std::move(config));
}

}  // namespace driftscope
