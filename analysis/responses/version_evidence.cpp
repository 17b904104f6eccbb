// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/version_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/compare/findings.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;

struct FieldRow {
  std::string_view name;
  std::string Response::*member;
};
constexpr std::array<FieldRow, 6> kFields{{{"model", &Response::model},
                                           {"system_fingerprint", &Response::fingerprint},
                                           {"provider", &Response::provider},
                                           {"weight_version", &Response::weight_version},
                                           {"service_tier", &Response::service_tier},
                                           {"region", &Response::region}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "…-2024-08-06", "…-20250929", "…-2509", "…-001"
bool is_dated(std::string_view model) {
  std::size_t digits = 0;
  for (auto it = model.rbegin(); it != model.rend() && (is_digit(*it) || *it == '-'); ++it) {
    if (is_digit(*it)) ++digits;
  }
  return digits >= 3;
}

bool is_alias(std::string_view model) {
  return model.ends_with("-latest") || model == "deepseek-chat" || model == "deepseek-reasoner" ||
         model == "default" || model == "gpt-3.5-turbo" ||
         model.find(':') != std::string_view::npos;
}

VersionEvidence grade_model(const Response& response) {
  VersionEvidence evidence;
  evidence.field = "model";
  evidence.value = response.model;
  if (is_alias(response.model)) {
    evidence.grade = EvidenceGrade::weak;
    evidence.meaning = "an alias or a mutable tag: the same name may be another model tomorrow";
  } else if (is_dated(response.model)) {
    evidence.grade = EvidenceGrade::good;
    evidence.meaning = "a dated snapshot: another name is another model";
  } else {
    evidence.grade = EvidenceGrade::weak;
    evidence.meaning = "a name that the operator chose: it does not name the weights";
  }
  return evidence;
}

VersionEvidence grade_fingerprint(const Response& response) {
  VersionEvidence evidence;
  evidence.field = "system_fingerprint";
  evidence.value = response.fingerprint;
  if (response.fingerprint == "fp_ollama") {
    evidence.meaning = "the same for every version of this server: no evidence";
  } else if (response.format == "llama.cpp" || response.format == "tgi") {
    evidence.grade = EvidenceGrade::medium;
    evidence.meaning = "the server's build, not the model";
  } else {
    evidence.grade = EvidenceGrade::medium;
    evidence.meaning =
        "another value is another backend; the same value does not prove the same output";
  }
  return evidence;
}

}  // namespace

std::string_view name_of(EvidenceGrade grade) {
  constexpr std::array<std::string_view, 4> kNames{"none", "weak", "medium", "good"};
  return kNames[static_cast<std::size_t>(grade)];
}

std::vector<VersionEvidence> version_evidence(const Response& response) {
  std::vector<VersionEvidence> all;
  if (!response.model.empty()) all.push_back(grade_model(response));
  if (!response.fingerprint.empty()) all.push_back(grade_fingerprint(response));
  if (!response.provider.empty()) {
    all.push_back({"provider", response.provider, EvidenceGrade::medium,
                   "who ran the model: another provider may use other kernels and other "
                   "quantisation"});
  }
  if (!response.weight_version.empty()) {
    const bool unset = response.weight_version == "default";
    all.push_back({"weight_version", response.weight_version,
                   unset ? EvidenceGrade::none : EvidenceGrade::good,
                   unset ? "not set by the operator: no evidence" : "names the weights"});
  }
  if (!response.service_tier.empty()) {
    all.push_back({"service_tier", response.service_tier, EvidenceGrade::weak,
                   "another tier may run on other machines"});
  }
  if (!response.region.empty()) {
    all.push_back(
        {"region", response.region, EvidenceGrade::weak, "another region may run another build"});
  }
  std::stable_sort(all.begin(), all.end(), [](const VersionEvidence& a, const VersionEvidence& b) {
    return a.grade > b.grade;
  });
  return all;
}

std::vector<FieldDifference> version_differences(const Response& a, const Response& b) {
  std::vector<FieldDifference> differences;
  for (const FieldRow& row : kFields) {
    const std::string& left = a.*row.member;
    const std::string& right = b.*row.member;
    if (left.empty() || right.empty() || left == right) continue;
    differences.push_back({std::string(row.name), left, right});
  }
  return differences;
}

std::string describe_versions(const std::vector<FieldDifference>& differences) {
  std::string text;
  for (const FieldDifference& difference : differences) {
    text += fmt::format("{}{} {} and {}", text.empty() ? "" : ", ", difference.field,
                        escape_for_display(difference.a), escape_for_display(difference.b));
  }
  return text;
}

std::string setting_differences(const Response& a, const Response& b) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<double>& left,
                       const std::optional<double>& right) {
    if (!left || !right || std::abs(*left - *right) <= 1e-6) return;
    text += fmt::format("{}{} {} and {}", text.empty() ? "" : ", ", name, *left, *right);
  };
  add("temperature", a.temperature, b.temperature);
  add("top_p", a.top_p, b.top_p);
  return text;
}

std::vector<Finding> version_findings(const Response& a, const Response& b) {
  std::vector<Finding> findings;
  for (const FieldDifference& difference : version_differences(a, b)) {
    const bool model = difference.field == "model";
    findings.push_back(make_finding(
        "version_" + difference.field + "_differs", model ? Severity::warning : Severity::notice,
        fmt::format("{} differs between the answers: {} and {}", difference.field,
                    escape_for_display(difference.a), escape_for_display(difference.b)),
        Json{{"field", difference.field}, {"a", difference.a}, {"b", difference.b}}));
  }
  const std::size_t versions = findings.size();
  if (const std::string settings = setting_differences(a, b); !settings.empty()) {
    findings.push_back(make_finding(
        "settings_differ", Severity::warning,
        fmt::format("The answers were sampled with other settings ({}): what differs between them "
                    "is no drift",
                    settings),
        Json::object()));
  }
  const auto strong = [](const Response& response) {
    const auto evidence = version_evidence(response);
    return !evidence.empty() && evidence.front().grade >= EvidenceGrade::medium;
  };
  if (versions == 0 && !(strong(a) && strong(b))) {
    findings.push_back(make_finding(
        "version_unproven", Severity::info,
        "Nothing in the answers proves that the same version gave both (no dated model name, no "
        "fingerprint)",
        Json::object()));
  }
  return findings;
}

}  // namespace driftscope
