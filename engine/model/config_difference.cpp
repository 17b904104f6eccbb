// SPDX-License-Identifier: Apache-2.0
#include "engine/model/config_difference.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>

#include "engine/model/strict_json.h"

namespace driftscope {
namespace {

constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20U;

using Fields = std::map<std::string, std::string>;

// Values by path: {"rope_scaling": {"factor": 8}} gives "rope_scaling/factor" -> "8".
Fields fields_of(const std::filesystem::path& file) {
  Fields fields;
  const auto json = read_strict_json(file, kMostConfigBytes);
  if (!json || !json->is_object()) return fields;
  const auto flat = json->flatten();
  for (const auto& [path, value] : flat.items()) fields[path.substr(1)] = value.dump();
  return fields;
}

void add_rope(Fields& fields, const std::string& begin, const RopeScaling& scaling) {
  constexpr std::string_view kKinds[] = {"none", "linear",   "llama3",
                                         "yarn", "longrope", "divisors"};
  fields[begin + "kind"] = kKinds[static_cast<std::size_t>(scaling.kind)];
  if (scaling.kind == RopeScaling::Kind::none) return;
  fields[begin + "factor"] = fmt::format("{}", scaling.factor);
  fields[begin + "original_max_positions"] = fmt::format("{}", scaling.original_max_positions);
  fields[begin + "attention_factor"] = fmt::format("{}", scaling.attention_factor);
  fields[begin + "beta_fast"] = fmt::format("{}", scaling.beta_fast);
  fields[begin + "beta_slow"] = fmt::format("{}", scaling.beta_slow);
}

void add_experts(Fields& fields, const ExpertDescription& moe) {
  fields["experts"] = fmt::format("{}", moe.experts);
  fields["experts chosen"] = fmt::format("{}", moe.chosen);
  fields["expert width"] = fmt::format("{}", moe.intermediate);
  fields["shared expert width"] = fmt::format("{}", moe.shared_intermediate);
  fields["expert weights renormalised"] = fmt::format("{}", moe.renormalise);
  fields["expert swiglu_limit"] = fmt::format("{}", moe.swiglu_limit);
}

// What changes a number that the model computes.
Fields fields_of(const ModelDescription& d) {
  Fields fields{{"hidden", fmt::format("{}", d.hidden)},
                {"layers", fmt::format("{}", d.layers)},
                {"heads", fmt::format("{}", d.heads)},
                {"kv_heads", fmt::format("{}", d.kv_heads)},
                {"head_dim", fmt::format("{}", d.head_dim)},
                {"intermediate", fmt::format("{}", d.intermediate)},
                {"vocabulary", fmt::format("{}", d.vocabulary)},
                {"norm epsilon", fmt::format("{}", d.rms_epsilon)},
                {"attention scale", fmt::format("{}", d.query_scale())},
                {"attention soft cap", fmt::format("{}", d.attention_softcap)},
                {"final soft cap", fmt::format("{}", d.final_softcap)},
                {"embedding scale", fmt::format("{}", d.embedding_scale)},
                {"rotated dimensions", fmt::format("{}", d.rotated())},
                {"rope_theta", fmt::format("{}", d.rope_theta)},
                {"bos", d.bos ? fmt::format("{}", d.bos->value) : "absent"}};
  for (const TokenId id : d.eos) {
    std::string& list = fields["eos"];
    list += fmt::format("{}{}", list.empty() ? "" : ", ", id.value);
  }
  for (std::int64_t layer = 0; layer < d.layers; ++layer) {
    fields[fmt::format("window of layer {}", layer)] = fmt::format("{}", d.window(layer));
  }
  add_rope(fields, "rope scaling ", d.rope_scaling);
  if (d.local_rope_theta) {
    fields["local rope_theta"] = fmt::format("{}", *d.local_rope_theta);
    add_rope(fields, "local rope scaling ", d.local_rope_scaling);
  }
  add_experts(fields, d.moe);
  return fields;
}

void compare_fields(const Fields& fields_a, const Fields& fields_b, const std::string& begin,
                    std::vector<ConfigFieldDifference>& differences) {
  std::set<std::string> paths;
  for (const auto& [path, value] : fields_a) paths.insert(path);
  for (const auto& [path, value] : fields_b) paths.insert(path);
  for (const std::string& path : paths) {
    const auto at_a = fields_a.find(path);
    const auto at_b = fields_b.find(path);
    const std::string value_a = at_a == fields_a.end() ? "absent" : at_a->second;
    const std::string value_b = at_b == fields_b.end() ? "absent" : at_b->second;
    if (value_a == value_b) continue;
    differences.push_back({.field = begin + path, .a = value_a, .b = value_b});
  }
}

void compare_file(const std::filesystem::path& a, const std::filesystem::path& b, const char* name,
                  std::vector<ConfigFieldDifference>& differences) {
  compare_fields(fields_of(a / name), fields_of(b / name), fmt::format("{} ", name), differences);
}

}  // namespace

std::vector<ConfigFieldDifference> config_file_difference(const std::filesystem::path& a,
                                                          const std::filesystem::path& b) {
  std::vector<ConfigFieldDifference> differences;
  compare_file(a, b, "config.json", differences);
  compare_file(a, b, "generation_config.json", differences);
  return differences;
}

std::vector<ConfigFieldDifference> description_difference(const ModelDescription& a,
                                                          const ModelDescription& b) {
  std::vector<ConfigFieldDifference> differences;
  compare_fields(fields_of(a), fields_of(b), "", differences);
  return differences;
}

std::vector<ConfigFieldDifference> config_difference(const ModelCheckpoint& a,
                                                     const ModelCheckpoint& b) {
  std::error_code error;
  const bool files = std::filesystem::is_directory(a.path(), error) &&
                     std::filesystem::is_directory(b.path(), error);
  return files ? config_file_difference(a.path(), b.path())
               : description_difference(a.description(), b.description());
}

std::string describe(const std::vector<ConfigFieldDifference>& differences) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < differences.size() && i < kShown; ++i) {
    const ConfigFieldDifference& difference = differences[i];
    text += fmt::format("{}{}: {} and {}", i == 0 ? "" : "; ", difference.field, difference.a,
                        difference.b);
  }
  if (differences.size() > kShown) {
    text += fmt::format("; and {} more fields", differences.size() - kShown);
  }
  return text;
}

}  // namespace driftscope
