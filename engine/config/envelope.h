// SPDX-License-Identifier: Apache-2.0
// The execution envelope of a run and the fingerprint of the environment. Unknown stays null.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/run_config.h"
#include "kernels/base/types.h"

namespace driftscope {

// What this binary and this machine are.
struct EnvironmentFacts {
  std::string version;   // of Driftscope
  std::string compiler;  // name and version
  std::string compiler_flags;
  std::string cpu_model;
  std::string cpu_isa;  // the widest set that the host backend uses here
  std::string operating_system;
  std::int64_t cores = 0;
  std::optional<std::string> cuda_version, cublas_version, nccl_version, driver_version, gpu;
};
[[nodiscard]] EnvironmentFacts read_environment();

// Facts of one run; strings that are not known stay empty and become null.
struct EnvelopeFacts {
  std::string request_id;
  std::string created;  // ISO 8601, UTC
  std::string model_path;
  std::string model_sha256;
  std::vector<std::pair<std::string, std::string>> model_files;  // name, sha256
  std::string model_revision;                                    // commit of a hub snapshot
  // How the checkpoint holds its weights where not as plain elements, what else its method asks
  // for, and the names of the files with its scales.
  std::string stored_quantisation;
  std::vector<std::string> quantisation_notes;
  std::vector<std::string> scale_files;
  std::string model_type;
  std::string tokenizer_sha256;
  std::string chat_template_sha256;
  std::string chat_template_name;    // of the template that was applied; empty: none was
  std::string chat_template_date;    // its clock
  std::string messages_json;         // the messages that were rendered
  std::string prompt_findings_json;  // [{id, severity, text, evidence}]
  std::vector<TokenId> prompt_ids;
  std::string prompt_text;
  bool prompt_text_known = false;
  std::int64_t max_tokens = 0;
  std::vector<std::vector<TokenId>> neighbour_prompt_ids;
  std::string command;
  RunConfig config;
};
[[nodiscard]] nlohmann::ordered_json make_envelope(const EnvelopeFacts& facts,
                                                   const EnvironmentFacts& environment);

// True where batch composition cannot change a bit of this run.
[[nodiscard]] bool is_batch_invariant(const RunConfig& config);

// The fields of ENVELOPE's fingerprint, in their order. model_sha256 and the like may be empty.
[[nodiscard]] nlohmann::ordered_json make_fingerprint(const EnvelopeFacts& facts,
                                                      const EnvironmentFacts& environment);
// SHA-256-free identity: two fingerprints are compared field by field.
struct FingerprintDifference {
  std::string field;
  std::string a;
  std::string b;
};
[[nodiscard]] std::vector<FingerprintDifference> fingerprint_difference(
    const nlohmann::ordered_json& a, const nlohmann::ordered_json& b);

[[nodiscard]] std::string utc_now();  // 2026-11-29T21:35:58Z

}  // namespace driftscope
