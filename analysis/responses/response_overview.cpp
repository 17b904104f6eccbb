// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_pair.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

constexpr std::size_t kShownBytes = 60;
constexpr std::size_t kBytesBefore = 20;  // of what is the same, where the beginning is left out

// The beginning of the character that the byte belongs to.
std::size_t character_at(const std::string& text, std::size_t byte) {
  while (byte > 0 && byte < text.size() &&
         (static_cast<unsigned char>(text[byte]) & 0xC0U) == 0x80U)
    --byte;
  return byte;
}

std::string excerpt(const std::string& text, std::size_t parting) {
  const std::size_t from =
      parting > kShownBytes - kBytesBefore ? character_at(text, parting - kBytesBefore) : 0;
  const std::size_t to = std::min(text.size(), character_at(text, from + kShownBytes));
  return fmt::format("{}\"{}\"{}", from > 0 ? "… " : "",
                     escape_for_display(text.substr(from, to - from)),
                     to < text.size() ? " …" : "");
}

std::string shown(const Answer& answer, const AnswerCluster& cluster, std::size_t parting) {
  const ResponseChoice& choice = answer.response->choices[answer.choice];
  if (!cluster.text.empty()) return excerpt(cluster.text, parting);
  if (!choice.tool_calls.empty()) {
    return fmt::format("(calls {}: {})", escape_for_display(choice.tool_calls.front().name),
                       excerpt(choice.tool_calls.front().arguments, 0));
  }
  if (choice.refusal.has_text) return "(refuses) " + excerpt(choice.refusal.text, 0);
  if (!choice.content.steps.empty() && !choice.content.has_text)
    return fmt::format("({} tokens without a text)", choice.content.steps.size());
  return choice.content.has_text ? "\"\"" : "(no text)";
}

}  // namespace

std::vector<Finding> common_findings(const std::vector<const Response*>& responses) {
  struct Seen {
    std::size_t count = 0;
    Finding first;
    std::string source;
  };
  std::map<std::string, Seen> seen;
  for (const Response* response : responses) {
    std::set<std::string> here;
    for (Finding& finding : lint_response(*response)) {
      if (finding.severity == Severity::info || !here.insert(finding.id).second) continue;
      Seen& entry = seen[finding.id];
      if (++entry.count > 1) continue;
      entry.first = std::move(finding);
      entry.source = response->source;
    }
  }
  std::vector<Finding> findings;
  for (auto& [id, entry] : seen) {
    entry.first.text = fmt::format("{} of {} answers, first {}: {}", entry.count, responses.size(),
                                   escape_for_display(entry.source), entry.first.text);
    findings.push_back(std::move(entry.first));
  }
  return findings;
}

std::string clusters_text(const std::vector<Answer>& answers,
                          const std::vector<AnswerCluster>& clusters) {
  std::string out;
  for (const AnswerCluster& cluster : clusters) {
    const auto parting =
        static_cast<std::size_t>(common_prefix(clusters.front().text, cluster.text));
    const Answer& first = answers[cluster.members.front()];
    out += fmt::format("  {:>5} times: {}  (first {})\n", cluster.members.size(),
                       shown(first, cluster, &cluster == &clusters.front() ? 0 : parting),
                       escape_for_display(first.name()));
  }
  return out;
}

std::string errors_text(const std::vector<Response>& responses) {
  std::string out;
  for (const Response& response : responses) {
    if (!response.choices.empty()) continue;
    out +=
        fmt::format("  no answer: {}: {}\n", escape_for_display(response.source),
                    response.error.empty() ? "nothing in it" : escape_for_display(response.error));
  }
  return out;
}

}  // namespace driftscope
