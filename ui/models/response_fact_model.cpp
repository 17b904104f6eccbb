// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/response_fact_model.h"

#include <algorithm>
#include <string>

#include "analysis/responses/version_evidence.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

QString shown_text(const std::string& text) { return escaped_text(text); }
QString shown_text(const std::optional<std::string>& text) {
  return text ? escaped_text(*text) : QString();
}
QString shown_text(const std::optional<double>& value) {
  return value ? number_text(*value) : QString();
}
QString shown_text(const std::optional<std::int64_t>& value) {
  return value ? QString::number(*value) : QString();
}

std::string tools_text(const ResponseChoice& choice) {
  std::string text;
  for (const ToolCall& call : choice.tool_calls) {
    if (!text.empty()) text += "; ";
    text += call.name + " " + call.arguments;
  }
  return text;
}

// Headers that are another in every answer, whatever gave it.
bool changes_each_time(const std::string& header) {
  for (const char* part : {"request-id", "date", "-ms", "ratelimit", "rate-limit", "ray", "cookie",
                           "content-length", "age", "etag", "trace", "-time", "reset"}) {
    if (header.find(part) != std::string::npos) return true;
  }
  return false;
}

std::string header_value(const Response& response, const std::string& name) {
  std::string text;
  for (const ResponseHeader& header : response.headers) {
    if (header.name != name) continue;
    if (!text.empty()) text += ", ";
    text += header.value;
  }
  return text;
}

class FactList {
 public:
  FactList(const Response& a, const Response& b) : m_a(a), m_b(b) {}

  template <class Member>
  void add(const char* name, Member member, bool expected = false) {
    add_texts(QLatin1String(name), shown_text(m_a.*member), shown_text(m_b.*member), expected);
  }
  // Fields that neither side has are left out.
  void add_texts(const QString& name, const QString& a, const QString& b, bool expected = false) {
    if (a.isEmpty() && b.isEmpty()) return;
    m_facts.push_back({.field = name, .a = a, .b = b, .expected = expected});
  }
  void add_headers() {
    std::vector<std::string> names;
    for (const Response* side : {&m_a, &m_b}) {
      for (const ResponseHeader& header : side->headers) {
        if (std::find(names.begin(), names.end(), header.name) == names.end()) {
          names.push_back(header.name);
        }
      }
    }
    for (const std::string& name : names) {
      add_texts(QStringLiteral("header ") + escaped_text(name),
                escaped_text(header_value(m_a, name)), escaped_text(header_value(m_b, name)),
                changes_each_time(name));
    }
  }
  void grade(const Response& response) {
    for (const VersionEvidence& evidence : version_evidence(response)) {
      const QString name = escaped_text(evidence.field);
      for (ResponseFact& fact : m_facts) {
        if (fact.field != name || !fact.meaning.isEmpty()) continue;
        fact.meaning = escaped_text(evidence.meaning);
        fact.grade = escaped_text(name_of(evidence.grade));
      }
    }
  }
  [[nodiscard]] std::vector<ResponseFact> take() { return std::move(m_facts); }

 private:
  const Response& m_a;
  const Response& m_b;
  std::vector<ResponseFact> m_facts;
};

QString warnings_text(const Response& response) {
  QStringList texts;
  for (const ResponseWarning& warning : response.warnings) texts << escaped_text(warning.text);
  return texts.join(QStringLiteral("; "));
}

void add_usage(const Response& a, const Response& b, FactList& facts) {
  const auto add = [&](const char* name, std::optional<std::int64_t> ResponseUsage::*member) {
    facts.add_texts(QLatin1String(name), shown_text(a.usage.*member), shown_text(b.usage.*member));
  };
  add("prompt tokens", &ResponseUsage::prompt_tokens);
  add("completion tokens", &ResponseUsage::completion_tokens);
  add("reasoning tokens", &ResponseUsage::reasoning_tokens);
  add("cached tokens", &ResponseUsage::cached_tokens);
}

Emphasis emphasis_of_grade(const QString& grade) {
  if (grade == QLatin1String("good")) return Emphasis::good;
  if (grade == QLatin1String("medium")) return Emphasis::none;
  return Emphasis::muted;
}

}  // namespace

std::vector<ResponseFact> response_facts(const ResponsePairView& pair) {
  const Response& a = pair.response_a();
  const Response& b = pair.response_b();
  const ResponseChoice& choice_a = pair.answer_a();
  const ResponseChoice& choice_b = pair.answer_b();
  FactList facts(a, b);
  facts.add("model", &Response::model);
  facts.add("system_fingerprint", &Response::fingerprint);
  facts.add("provider", &Response::provider);
  facts.add("weight_version", &Response::weight_version);
  facts.add("service_tier", &Response::service_tier);
  facts.add("region", &Response::region);
  facts.add_texts(QStringLiteral("finish reason"), shown_text(choice_a.finish_reason),
                  shown_text(choice_b.finish_reason));
  facts.add_texts(QStringLiteral("tool calls"), shown_text(tools_text(choice_a)),
                  shown_text(tools_text(choice_b)));
  facts.add_texts(QStringLiteral("refusal"), shown_text(choice_a.refusal.text),
                  shown_text(choice_b.refusal.text));
  add_usage(a, b, facts);
  facts.add("temperature", &Response::temperature);
  facts.add("top_p", &Response::top_p);
  facts.add("seed", &Response::seed);
  facts.add_texts(QStringLiteral("seed of the choice"), shown_text(choice_a.seed),
                  shown_text(choice_b.seed));
  facts.add("format", &Response::format);
  facts.add("HTTP status", &Response::http_status);
  facts.add("error", &Response::error);
  facts.add_texts(QStringLiteral("reading"), warnings_text(a), warnings_text(b));
  facts.add("custom_id", &Response::custom_id, true);
  facts.add("created", &Response::created, true);
  facts.add("request id", &Response::request_id, true);
  facts.add_headers();
  facts.grade(a);
  facts.grade(b);
  std::vector<ResponseFact> all = facts.take();
  for (ResponseFact& fact : all) fact.alone = pair.alone;
  return all;
}

void ResponseFactModel::show(ResponsePairPointer pair) {
  beginResetModel();
  m_pair = std::move(pair);
  m_all = m_pair ? response_facts(*m_pair) : std::vector<ResponseFact>{};
  choose_rows();
  endResetModel();
}

void ResponseFactModel::set_differences_only(bool on) {
  beginResetModel();
  m_differences_only = on;
  choose_rows();
  endResetModel();
}

void ResponseFactModel::choose_rows() {
  m_rows.clear();
  for (std::size_t i = 0; i < m_all.size(); ++i) {
    if (!m_differences_only || m_all[i].tells_apart()) m_rows.push_back(i);
  }
}

int ResponseFactModel::difference_count() const {
  return static_cast<int>(std::count_if(m_all.begin(), m_all.end(),
                                        [](const ResponseFact& f) { return f.tells_apart(); }));
}

QStringList ResponseFactModel::headings() const {
  return {QStringLiteral("Field"), QStringLiteral("A"), QStringLiteral("B"),
          QStringLiteral("Evidence")};
}

QString ResponseFactModel::empty_text() const {
  if (!m_pair) return QStringLiteral("Open two answers to see what their servers say.");
  if (m_pair->alone) {
    return m_all.empty() ? QStringLiteral("The answer says nothing about its server.")
                         : QStringLiteral("There is no second file to differ from.");
  }
  if (m_differences_only && !m_all.empty()) {
    return QStringLiteral(
        "All fields are the same in A and B, but for ids and times of the calls.");
  }
  return QStringLiteral("Neither answer says anything about its server.");
}

TableCell ResponseFactModel::cell(int row, int column) const {
  const ResponseFact& fact = m_all[m_rows[static_cast<std::size_t>(row)]];
  const bool said = !fact.a.isEmpty() && !fact.b.isEmpty();
  const bool loud = said && fact.differs() && !fact.expected;
  const auto side = [&](const QString& text, Emphasis emphasis) -> TableCell {
    if (text.isEmpty()) {
      return {.text = QStringLiteral("not said"), .emphasis = Emphasis::muted};
    }
    return {.text = text, .emphasis = loud ? emphasis : Emphasis::muted, .tooltip = text};
  };
  switch (static_cast<Column>(column)) {
    case field:
      return {.text = fact.field,
              .emphasis = loud ? Emphasis::alert : Emphasis::none,
              .tooltip = fact.expected ? QStringLiteral("Another in every answer: no evidence")
                                       : fact.meaning};
    case side_a:
      return side(fact.a, Emphasis::side_a);
    case side_b:
      if (fact.alone) {
        return {.text = QStringLiteral("–"),
                .emphasis = Emphasis::muted,
                .tooltip = QStringLiteral("There is no second file")};
      }
      return side(fact.b, Emphasis::side_b);
    case proves:
      return {
          .text = fact.grade, .emphasis = emphasis_of_grade(fact.grade), .tooltip = fact.meaning};
    case column_total:
      break;
  }
  return {};
}

}  // namespace driftscope::ui
