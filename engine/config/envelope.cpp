// SPDX-License-Identifier: Apache-2.0
#include "engine/config/envelope.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/config/knob.h"
#include "engine/config/rank_plans.h"
#include "kernels/base/isa.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSamplingContract =
    "1";  // order of filters and the generator, see sampler.h

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json parsed_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json::parse(text);
}
Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

std::string read_cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return {};
}

Json ids_of(const std::vector<TokenId>& ids) {
  Json json = Json::array();
  for (const TokenId id : ids) json.push_back(id.value);
  return json;
}

Json sampling_of(const EnvelopeFacts& facts) {
  const SamplingConfig& sampling = facts.config.sampling;
  return Json{{"temperature", sampling.temperature},
              {"top_p", sampling.top_p},
              {"top_k", sampling.top_k},
              {"min_p", sampling.min_p},
              {"repetition_penalty", sampling.repetition_penalty},
              {"presence_penalty", sampling.presence_penalty},
              {"frequency_penalty", sampling.frequency_penalty},
              {"logit_processors",
               {"repetition_penalty", "presence_penalty", "frequency_penalty", "temperature",
                "top_k", "top_p", "min_p"}},
              {"stop", sampling.stop_strings},
              {"stop_token_ids", sampling.stop_tokens},
              {"ignore_eos", sampling.ignore_eos},
              {"max_tokens", facts.max_tokens},
              {"seed", sampling.seed},
              {"seed_scope", "request"}};
}

// "ring bf16", or null where one rank has nobody to add to.
Json all_reduce_of(const RunConfig& config) {
  if (config.tensor_parallel == 1) return nullptr;
  return fmt::format("{} {}", get_knob(config, *find_knob("all_reduce")),
                     get_knob(config, *find_knob("reduce_dtype")));
}

// The checkpoint's own method, then what the run does to the weights it reads.
std::string quantisation_of(const EnvelopeFacts& facts) {
  const std::string knob = get_knob(facts.config, *find_knob("quantisation"));
  if (facts.stored_quantisation.empty()) return knob;
  if (facts.config.quantisation == Quantisation::none) return facts.stored_quantisation;
  return fmt::format("{}, then {}", facts.stored_quantisation, knob);
}

// With the hash that the list of files gives, so that a change of scales alone is seen as one.
Json scale_files_of(const EnvelopeFacts& facts) {
  Json files = Json::array();
  for (const std::string& name : facts.scale_files) {
    const auto found = std::find_if(facts.model_files.begin(), facts.model_files.end(),
                                    [&](const auto& file) { return file.first == name; });
    files.push_back(
        {{"name", name},
         {"sha256", found == facts.model_files.end() ? Json(nullptr) : or_null(found->second)}});
  }
  return files;
}

Json runtime_of(const EnvelopeFacts& facts, const EnvironmentFacts& environment) {
  const RunConfig& config = facts.config;
  Json json{{"engine", "driftscope"},
            {"engine_version", environment.version},
            {"backend", get_knob(config, *find_knob("backend"))},
            {"torch_version", nullptr},
            {"cuda_version", or_null(environment.cuda_version)},
            {"cublas_version", or_null(environment.cublas_version)},
            {"cudnn_version", nullptr},
            {"nccl_version", or_null(environment.nccl_version)},
            {"driver_version", or_null(environment.driver_version)},
            {"gpu", or_null(environment.gpu)},
            {"cpu_model", or_null(environment.cpu_model)},
            {"cpu_isa", environment.cpu_isa},
            {"compiler", environment.compiler},
            {"compiler_flags", environment.compiler_flags},
            {"operating_system", or_null(environment.operating_system)},
            {"tensor_parallel_size", config.tensor_parallel},
            {"pipeline_parallel_size", 1},
            {"data_parallel_size", 1},
            {"all_reduce", all_reduce_of(config)},
            {"attention_backend", get_knob(config, *find_knob("attention"))},
            {"quantization_method", quantisation_of(facts)},
            {"quantization_notes", facts.quantisation_notes},
            {"scale_files", scale_files_of(facts)},
            {"kv_cache_dtype", get_knob(config, *find_knob("kv_dtype"))},
            {"cuda_graph", nullptr},
            {"streams", nullptr},
            {"cublas_workspace_config", nullptr},
            {"threads", config.threads},
            {"batch_invariance_flag", is_batch_invariant(config)}};
  json["knobs"] = config_to_json(config);
  return json;
}

}  // namespace

EnvironmentFacts read_environment() {
  EnvironmentFacts facts;
  facts.version = DRIFTSCOPE_VERSION;
  facts.compiler = DRIFTSCOPE_COMPILER;
  facts.compiler_flags = DRIFTSCOPE_COMPILER_FLAGS;
  facts.cpu_model = read_cpu_model();
  facts.cpu_isa = std::string(isa_name(detect_isa()));
  utsname system{};
  if (uname(&system) == 0) {
    facts.operating_system =
        fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  }
  facts.cores = sysconf(_SC_NPROCESSORS_ONLN);
  return facts;
}

bool is_batch_invariant(const RunConfig& config) {
  return config.matmul_policy == PlanPolicy::invariant &&
         config.attention != AttentionMode::split_kv_count && !ring_sees_the_batch(config);
}

Json make_envelope(const EnvelopeFacts& facts, const EnvironmentFacts& environment) {
  Json files = Json::array();
  for (const auto& [name, sha256] : facts.model_files) {
    files.push_back({{"name", name}, {"sha256", or_null(sha256)}});
  }
  Json neighbours = Json::array();
  for (const auto& prompt : facts.neighbour_prompt_ids) neighbours.push_back(ids_of(prompt));
  Json json{
      {"request_id", or_null(facts.request_id)},
      {"created", or_null(facts.created)},
      {"driftscope_version", environment.version},
      {"model_path", or_null(facts.model_path)},
      {"model_type", or_null(facts.model_type)},
      {"model_artifact_sha256", {{"combined", or_null(facts.model_sha256)}, {"files", files}}},
      {"model_revision", or_null(facts.model_revision)},
      {"tokenizer_sha256", or_null(facts.tokenizer_sha256)},
      {"chat_template_sha256", or_null(facts.chat_template_sha256)},
      {"prompt_token_ids", ids_of(facts.prompt_ids)},
      {"prompt_text", facts.prompt_text_known ? Json(facts.prompt_text) : Json(nullptr)},
      {"messages", parsed_or_null(facts.messages_json)},
      {"chat_template_name", or_null(facts.chat_template_name)},
      {"chat_template_date", or_null(facts.chat_template_date)},
      {"prompt_findings", parsed_or_null(facts.prompt_findings_json)},
      {"neighbour_prompt_ids", neighbours},
      {"sampling", sampling_of(facts)},
      {"runtime", runtime_of(facts, environment)},
      {"command", or_null(facts.command)}};
  json["fingerprint"] = make_fingerprint(facts, environment);
  return json;
}

Json make_fingerprint(const EnvelopeFacts& facts, const EnvironmentFacts& environment) {
  Json json{{"model_sha256", or_null(facts.model_sha256)},
            {"tokenizer_sha256", or_null(facts.tokenizer_sha256)},
            {"chat_template_sha256", or_null(facts.chat_template_sha256)},
            {"engine_version", environment.version},
            {"torch_version", nullptr},
            {"cuda_version", or_null(environment.cuda_version)},
            {"cublas_version", or_null(environment.cublas_version)},
            {"gpu_name_and_compute_capability", or_null(environment.gpu)},
            {"attention_backend", get_knob(facts.config, *find_knob("attention"))},
            {"quantization_method", quantisation_of(facts)},
            {"tensor_parallel_size", facts.config.tensor_parallel},
            {"batch_invariance_flag", is_batch_invariant(facts.config)},
            {"sampling_contract_version", kSamplingContract},
            {"driver_version", or_null(environment.driver_version)},
            {"nccl_version", or_null(environment.nccl_version)},
            {"cpu_model", or_null(environment.cpu_model)},
            {"cpu_isa", environment.cpu_isa},
            {"compiler", environment.compiler},
            {"compiler_flags", environment.compiler_flags}};
  // Settings promised to change no bit (threads, instruction set) ask for no replay.
  for (const KnobSpec& knob : knob_registry()) {
    if (knob.effect == KnobEffect::none_expected) continue;
    json["knob." + std::string(knob.id)] = get_knob(facts.config, knob);
  }
  return json;
}

std::vector<FingerprintDifference> fingerprint_difference(const Json& a, const Json& b) {
  std::vector<FingerprintDifference> differences;
  const auto text = [](const Json& json, const std::string& key) {
    const auto found = json.find(key);
    if (found == json.end()) return std::string("(absent)");
    return found->is_string() ? found->get<std::string>() : found->dump();
  };
  const auto add = [&](const std::string& key) {
    auto value_a = text(a, key);
    auto value_b = text(b, key);
    if (value_a != value_b) differences.push_back({key, std::move(value_a), std::move(value_b)});
  };
  for (const auto& [key, value] : a.items()) add(key);
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) add(key);
  }
  return differences;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace driftscope
