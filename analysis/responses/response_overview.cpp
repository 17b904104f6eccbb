// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_pair.h"
#include "analysis/responses/version_evidence.h"
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

std::size_t excerpt_begin(const std::string& text, std::size_t parting) {
  return parting > kShownBytes - kBytesBefore ? character_at(text, parting - kBytesBefore) : 0;
}

std::string excerpt(const std::string& text, std::size_t parting) {
  const std::size_t from = excerpt_begin(text, parting);
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

std::string members_text(const std::vector<Answer>& answers, const AnswerCluster& cluster) {
  constexpr std::size_t kNamed = 8;
  std::string out;
  for (std::size_t i = 0; i < std::min(kNamed, cluster.members.size()); ++i) {
    out += fmt::format("{}{}", i == 0 ? "" : ", ",
                       escape_for_display(answers[cluster.members[i]].name()));
  }
  if (cluster.members.size() > kNamed)
    out += fmt::format(" and {} more", cluster.members.size() - kNamed);
  return out;
}

// What the members of a cluster say of their version, by field.
using FieldValues = std::map<std::string, std::set<std::string>>;

FieldValues versions_of(const std::vector<Answer>& answers, const AnswerCluster& cluster) {
  FieldValues values;
  for (const std::size_t member : cluster.members) {
    for (const VersionEvidence& evidence : version_evidence(*answers[member].response))
      values[evidence.field].insert(evidence.value);
  }
  return values;
}

std::string listed(const std::set<std::string>& values) {
  constexpr std::size_t kNamed = 3;
  std::string out;
  std::size_t count = 0;
  for (const std::string& value : values) {
    if (++count > kNamed) return out + fmt::format(" and {} more", values.size() - kNamed);
    out += (count == 1 ? "" : " or ") + escape_for_display(value);
  }
  return out;
}

// What one cluster holds against the largest.
class AgainstLargest {
 public:
  AgainstLargest(const std::vector<Answer>& answers, const std::vector<AnswerCluster>& clusters)
      : m_answers(answers), m_largest(clusters.front()) {
    for (const std::size_t member : m_largest.members)
      m_of_question.try_emplace(m_answers[member].response->custom_id, member);
    m_versions = versions_of(answers, m_largest);
    for (const AnswerCluster& cluster : clusters) {
      if (&cluster == &m_largest || !partner(cluster)) continue;
      m_first_parting = std::min(m_first_parting.value_or(parting(cluster)), parting(cluster));
    }
  }

  [[nodiscard]] std::size_t parting(const AnswerCluster& cluster) const {
    if (&cluster == &m_largest) return m_first_parting.value_or(0);
    return static_cast<std::size_t>(common_prefix(m_largest.text, cluster.text));
  }
  // "; parts from …"; empty for the largest.
  [[nodiscard]] std::string description(const AnswerCluster& cluster) const {
    if (&cluster == &m_largest) return {};
    const auto pair = partner(cluster);
    if (!pair) return "; of another question than the largest group";
    const Answer& a = m_answers[pair->first];
    const Answer& b = m_answers[pair->second];
    const ResponseComparison c = compare_responses(*a.response, a.choice, *b.response, b.choice);
    std::string out;
    if (c.divergence) {
      const ResponseDivergence& d = *c.divergence;
      out = fmt::format("; parts from the largest group at {} {}: {} there, {} here ({})",
                        d.step < 0 ? "byte" : "token", d.step < 0 ? d.byte : d.step,
                        quoted(d.text_a), quoted(d.text_b), name_of(d.cause));
    } else if (!c.tools_equal) {
      out = "; other tool calls than the largest group's";
    }
    return out + versions_text(cluster);
  }
  // The largest at the same place, where the line of its own shows another one.
  [[nodiscard]] std::string largest_there(const AnswerCluster& cluster) const {
    if (&cluster == &m_largest || m_largest.text.empty() || cluster.text.empty()) return {};
    if (!partner(cluster)) return {};
    const std::size_t at = parting(cluster);
    if (excerpt_begin(m_largest.text, at) == excerpt_begin(m_largest.text, parting(m_largest)))
      return {};
    return excerpt(m_largest.text, at);
  }

 private:
  static std::string quoted(const std::string& text) {
    return text.empty() ? "the end" : fmt::format("\"{}\"", escape_for_display(text));
  }
  // An answer of the largest cluster and one of this that may be to the same question.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> partner(
      const AnswerCluster& cluster) const {
    for (const std::size_t member : cluster.members) {
      const std::string& id = m_answers[member].response->custom_id;
      if (id.empty()) return std::pair(m_largest.members.front(), member);
      for (const std::string& question : {id, std::string()}) {
        const auto found = m_of_question.find(question);
        if (found != m_of_question.end()) return std::pair(found->second, member);
      }
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string versions_text(const AnswerCluster& cluster) const {
    std::string out;
    for (const auto& [field, values] : versions_of(m_answers, cluster)) {
      const auto largest = m_versions.find(field);
      if (largest == m_versions.end() || largest->second == values) continue;
      out += fmt::format("; {} {}, there {}", field, listed(values), listed(largest->second));
    }
    return out;
  }

  const std::vector<Answer>& m_answers;
  const AnswerCluster& m_largest;
  std::map<std::string, std::size_t> m_of_question;  // the largest cluster's first of each
  FieldValues m_versions;                            // of the largest
  std::optional<std::size_t> m_first_parting;        // of any cluster from the largest
};

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
  if (clusters.empty()) return {};
  constexpr const char* kIndent = "               ";
  const AgainstLargest against(answers, clusters);
  std::string out;
  for (const AnswerCluster& cluster : clusters) {
    out += fmt::format("  {:>5} time{}: {}{}\n", cluster.members.size(),
                       cluster.members.size() == 1 ? " " : "s", members_text(answers, cluster),
                       against.description(cluster));
    if (const std::string there = against.largest_there(cluster); !there.empty())
      out += fmt::format("{}there {}\n", kIndent, there);
    out += fmt::format("{}{}\n", kIndent,
                       shown(answers[cluster.members.front()], cluster, against.parting(cluster)));
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
