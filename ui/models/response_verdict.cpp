// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/response_verdict.h"

#include <array>

#include "ui/models/response_series.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

QString spaced(std::string_view name) {
  return escaped_text(name).replace(QLatin1Char('_'), QLatin1Char(' '));
}

QString capitalised(QString text) {
  if (!text.isEmpty()) text[0] = text[0].toUpper();
  return text;
}

QString side_text(const std::string& text, const std::optional<std::int64_t>& id) {
  if (text.empty()) return QStringLiteral("(ended)");
  if (id && text == "token " + std::to_string(*id)) return QStringLiteral("#%1").arg(*id);
  return QStringLiteral("\u2018%1\u2019").arg(escaped_text(text));
}

// Of differences: those of logprobs are nats.
QString unit_name(const ResponsePairView& pair) {
  if (pair.response_a().after_sampling) return {};
  return pair.response_a().scale == LogprobScale::logit ? QStringLiteral(" logit")
                                                        : QStringLiteral(" nat");
}

QString margin_text(const std::optional<double>& margin, const QString& unit) {
  return margin ? short_number(*margin) + unit : QStringLiteral("not known");
}

QString divergence_headline(const ResponseDivergence& d) {
  const QString where = d.step >= 0 ? QStringLiteral("token %1").arg(d.step)
                                    : QStringLiteral("byte %1 of the text").arg(d.byte);
  return QStringLiteral("First divergence at %1: A %2, B %3")
      .arg(where, side_text(d.text_a, d.id_a), side_text(d.text_b, d.id_b));
}

void add_divergence_facts(const ResponseDivergence& d, const QString& unit,
                          std::vector<VerdictFact>& facts) {
  if (d.step < 0 || d.cause == ResponseCause::stopped) return;
  facts.push_back(
      {QStringLiteral("Margin A"), margin_text(d.margin_a, unit),
       QStringLiteral("A's logprob of its token minus that of B's token, from A's list")});
  facts.push_back(
      {QStringLiteral("Margin B"), margin_text(d.margin_b, unit),
       QStringLiteral("B's logprob of its token minus that of A's token, from B's list")});
}

void add_drift_fact(const LogprobDrift& drift, const QString& label, const QString& unit,
                    std::vector<VerdictFact>& facts) {
  if (drift.count == 0) return;
  facts.push_back(
      {label,
       QStringLiteral("mean %1, largest %2%3 at token %4")
           .arg(short_number(drift.mean_abs, 3), short_number(drift.max_abs, 3), unit)
           .arg(drift.argmax_step),
       QStringLiteral("Size of B − A of the logprobs of %1 tokens that both chose after the same "
                      "tokens; the way of printing explains up to %2")
           .arg(drift.count)
           .arg(short_number(drift.print_tolerance, 2))});
}

QString finish_of(const ResponseChoice& choice) {
  return choice.finish_reason.empty() ? QStringLiteral("?") : escaped_text(choice.finish_reason);
}

void add_answer_facts(const ResponsePairView& pair, std::vector<VerdictFact>& facts) {
  const ResponseComparison& c = pair.comparison;
  if (c.tokens_a > 0 || c.tokens_b > 0) {
    facts.push_back({QStringLiteral("Equal tokens"),
                     QStringLiteral("%1 (A has %2, B has %3)")
                         .arg(c.equal_tokens)
                         .arg(c.tokens_a)
                         .arg(c.tokens_b),
                     QStringLiteral("Leading equal tokens, and how many each side has")});
  }
  add_drift_fact(c.drift, QStringLiteral("Drift while equal"), unit_name(pair), facts);
  add_drift_fact(c.prompt_drift, QStringLiteral("Drift of the prompt"), unit_name(pair), facts);
  facts.push_back({QStringLiteral("Aligned by"), spaced(name_of(c.alignment)),
                   QStringLiteral("By what the tokens of both sides were matched")});
  if (c.divergence && c.divergence->joined_again_byte) {
    facts.push_back({QStringLiteral("Joined again"),
                     QStringLiteral("at byte %1 of A").arg(*c.divergence->joined_again_byte),
                     QStringLiteral("From there on both texts are the same up to their ends")});
  }
  if (c.similarity) {
    facts.push_back(
        {QStringLiteral("Similarity"),
         QStringLiteral("%1 edit, %2 chrF, numbers %3")
             .arg(c.similarity->edit ? short_number(*c.similarity->edit, 3)
                                     : QStringLiteral("unknown"),
                  short_number(c.similarity->chrf, 3),
                  c.similarity->numbers_equal ? QStringLiteral("equal") : QStringLiteral("differ")),
         QStringLiteral("1 minus the edit distance per character; character n-gram F score; "
                        "whether both texts hold the same numbers in the same order")});
  }
  if (pair.answer_a().finish_reason.empty() && pair.answer_b().finish_reason.empty()) return;
  facts.push_back(
      {QStringLiteral("Finished"),
       QStringLiteral("%1 and %2").arg(finish_of(pair.answer_a()), finish_of(pair.answer_b())),
       QStringLiteral("Finish reasons of A and B as sent")});
}

QString side_of_column(const std::vector<ResponseStep>& steps, std::int64_t index) {
  if (index < 0) return {};
  const ResponseStep& step = steps[static_cast<std::size_t>(index)];
  const QString value = step.logprob.state == LogprobState::missing
                            ? QString()
                            : QStringLiteral(" (%1)").arg(logprob_text(step.logprob, 4));
  return quoted_response_token(step) + value;
}

}  // namespace

QString cause_name(ResponseCause cause) { return spaced(name_of(cause)); }
QString tier_name(Tier tier) { return spaced(name_of(tier)); }

QString tier_mark(Tier tier) {
  constexpr std::array<const char*, 6> kMarks{"=", "≈", "t", "s", "≠", "?"};
  return QString::fromUtf8(kMarks[static_cast<std::size_t>(tier)]);
}

QString tier_meaning(Tier tier) {
  switch (tier) {
    case Tier::bitwise:
      return QStringLiteral("the same bits");
    case Tier::tolerance:
      return QStringLiteral("same tokens, logprobs equal as printed");
    case Tier::token:
      return QStringLiteral("same tokens, logprobs differ or are not known");
    case Tier::semantic:
      return QStringLiteral("same text, tokens not comparable");
    case Tier::different:
      return QStringLiteral("the answers part");
    case Tier::inconclusive:
      return QStringLiteral("the evidence does not carry a comparison");
  }
  return {};
}

QString unit_name(ColumnUnit unit) {
  switch (unit) {
    case ColumnUnit::tokens:
      return QStringLiteral("token");
    case ColumnUnit::words:
      return QStringLiteral("piece of text");
    case ColumnUnit::prompt:
      return QStringLiteral("prompt token");
  }
  return {};
}

VerdictSummary response_verdict(const ResponsePairView& pair) {
  const ResponseComparison& c = pair.comparison;
  VerdictSummary summary;
  summary.tier =
      pair.other_questions ? QStringLiteral("NOT COMPARED") : tier_name(c.tier).toUpper();
  summary.inconclusive = c.tier == Tier::inconclusive;
  summary.good = c.tier < Tier::different;
  const bool parted = c.divergence && c.tier == Tier::different && c.tools_equal;
  summary.headline = parted          ? divergence_headline(*c.divergence)
                     : pair.failed() ? escaped_text(c.verdict)  // begins with a file's name
                                     : capitalised(escaped_text(c.verdict));
  if (c.divergence) {
    summary.cause = cause_name(c.divergence->cause);
    summary.reason = capitalised(escaped_text(c.divergence->reason));
    if (!parted)
      summary.reason = divergence_headline(*c.divergence) + QStringLiteral(". ") + summary.reason;
    add_divergence_facts(*c.divergence, unit_name(pair), summary.facts);
  }
  const auto& prompt = pair.response_a().prompt_text;
  if (prompt && !prompt->empty()) {
    summary.prompt = QStringLiteral("\u2018%1\u2019").arg(escaped_text(*prompt));
  }
  if (!pair.other_questions && !pair.failed()) add_answer_facts(pair, summary.facts);
  return summary;
}

QString column_tool_tip(const ResponsePairView& pair, std::int64_t column) {
  return QStringLiteral("<b>%1 %2</b><br>%3")
      .arg(unit_name(pair.columns.unit))
      .arg(column)
      .arg(column_text(pair, column).toHtmlEscaped());
}

QString column_text(const ResponsePairView& pair, std::int64_t column) {
  const ResponseColumns& columns = pair.columns;
  if (column < 0 || column >= static_cast<std::int64_t>(columns.columns.size())) return {};
  const ResponseColumn& shown = columns.columns[static_cast<std::size_t>(column)];
  const QString a = side_of_column(columns.steps_a, shown.a);
  if (pair.alone) return a;
  const QString b = side_of_column(columns.steps_b, shown.b);
  const auto shown_side = [&](const QString& text, std::size_t answer) {
    if (!text.isEmpty()) return text;
    return pair.files->is_error(answer) ? QStringLiteral("is an error")
                                        : QStringLiteral("nothing here");
  };
  return QStringLiteral("A %1, B %2")
      .arg(shown_side(a, pair.choice.a), shown_side(b, pair.choice.b));
}

}  // namespace driftscope::ui
