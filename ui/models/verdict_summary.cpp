// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/verdict_summary.h"

#include "analysis/compare/value_words.h"
#include "ui/models/fitting_words.h"
#include "ui/models/navigation.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

QString words(std::string_view name) {
  QString text = escaped_text(name);
  return text.replace(QLatin1Char('_'), QLatin1Char(' '));
}

QString token_or_end(const Comparison& comparison, const std::optional<TokenId>& token) {
  return token ? quoted_token(comparison, *token) : QStringLiteral("(ended)");
}

bool one_sided(const Comparison& comparison) {
  return comparison.imported_a && lane_view(comparison, Lane::b) == nullptr;
}

QString headline_of(const Comparison& comparison) {
  if (const auto& d = comparison.first_divergence) {
    return QStringLiteral("First divergence at step %1: A %2, B %3")
        .arg(d->step)
        .arg(token_or_end(comparison, d->token_a), token_or_end(comparison, d->token_b));
  }
  if (const auto& f = comparison.first_flip) {
    return QStringLiteral("Texts agree; fed A's tokens, B flips first at step %1: A %2, B %3")
        .arg(f->step)
        .arg(token_or_end(comparison, f->token_a), token_or_end(comparison, f->token_b));
  }
  if (one_sided(comparison)) {
    return QStringLiteral("One side only: A, read from one file. There is nothing to compare yet");
  }
  if (comparison.steps.empty()) return QStringLiteral("No step has been compared yet");
  return QStringLiteral("No divergence in %1 steps").arg(comparison.steps.size());
}

void add_divergence_facts(const Comparison& comparison, const Divergence& d,
                          std::vector<VerdictFact>& facts) {
  const auto logits = [&](double value) { return value_with_unit(comparison, value); };
  const auto words = [&](const char* text) {
    return fitting_words(&comparison, QString::fromUtf8(text));
  };
  facts.push_back({QStringLiteral("Margin A"), logits(d.margin_a),
                   words("A's best logit minus its second best")});
  facts.push_back({QStringLiteral("Margin B"), logits(d.margin_b),
                   words("B's best logit minus its second best")});
  if (comparison.listed()) {
    facts.push_back({QStringLiteral("Drift"), QStringLiteral("not known"),
                     QStringLiteral("It is taken over the whole vocabulary, and the files list a "
                                    "few tokens of each step")});
    return;
  }
  facts.push_back({QStringLiteral("Drift here"), logits(d.drift),
                   QStringLiteral("Centred RMS difference of the two rows at this step")});
  facts.push_back(
      {QStringLiteral("Usual drift"),
       QStringLiteral("%1 (× %2)").arg(logits(d.usual_drift), short_number(d.drift_excess, 3)),
       QStringLiteral("Median centred RMS of the run; in brackets: drift here / usual")});
}

void add_run_facts(const Comparison& comparison, bool live, std::vector<VerdictFact>& facts) {
  const auto total = static_cast<qlonglong>(comparison.steps.size());
  if (is_import(comparison) || comparison.planned_steps > total) {
    facts.push_back({QStringLiteral("Steps"), escaped_text(describe_steps(comparison)),
                     QStringLiteral("Steps that were compared")});
  }
  // Until B's own text is there, nothing is known of equal tokens.
  if (!live && !one_sided(comparison)) {
    facts.push_back({QStringLiteral("Equal tokens"),
                     QStringLiteral("%1 of %2").arg(comparison.tokens_equal).arg(total),
                     QStringLiteral("Leading equal tokens of the two free runs")});
  }
  if (!comparison.control.present) return;
  facts.push_back({QStringLiteral("Control A = A"),
                   comparison.control.bits_equal
                       ? QStringLiteral("same bits")
                       : value_with_unit(comparison, comparison.control.max_abs),
                   QStringLiteral("A run a second time: largest logit difference")});
}

QString prompt_of(const Comparison& comparison) {
  const std::string& text = comparison.prompt_text.empty() && comparison.imported_a
                                ? comparison.imported_a->prompt_text
                                : comparison.prompt_text;
  if (!text.empty()) return QStringLiteral("\u2018%1\u2019").arg(escaped_text(text));
  if (comparison.prompt_a.empty()) return {};
  return QStringLiteral("%1 tokens").arg(comparison.prompt_a.size());
}

// What is known while lanes are still being computed: how far the run is, and where it parted.
void show_live(const Comparison& comparison, VerdictSummary& summary) {
  summary.tier = QStringLiteral("RUNNING");
  summary.running = true;
  summary.inconclusive = false;
  summary.good = false;
  if (comparison.first_divergence) return;
  if (const auto& f = comparison.first_flip) {  // B's own text is not there yet
    summary.headline =
        QStringLiteral("Fed A's tokens, B flips at step %1: A %2, B %3")
            .arg(f->step)
            .arg(token_or_end(comparison, f->token_a), token_or_end(comparison, f->token_b));
    return;
  }
  summary.reason.clear();
  summary.headline = comparison.steps.empty()
                         ? QStringLiteral("No step has been compared yet")
                         : QStringLiteral("No difference in the choices so far");
}

QString state_of(const Comparison& comparison) {
  switch (comparison.state) {
    case TraceState::complete:
      return {};
    case TraceState::partial:
      return QStringLiteral("partial");
    case TraceState::interrupted:
      return QStringLiteral("interrupted");
  }
  return {};
}

}  // namespace

VerdictSummary verdict_summary(const Comparison& comparison, bool live) {
  VerdictSummary summary;
  summary.tier = words(name_of(comparison.verdict)).toUpper();
  summary.headline = headline_of(comparison);
  summary.prompt = prompt_of(comparison);
  summary.inconclusive = comparison.verdict == Tier::inconclusive;
  summary.good = comparison.verdict == Tier::bitwise || comparison.verdict == Tier::tolerance ||
                 comparison.verdict == Tier::token;
  const auto& shown =
      comparison.first_divergence ? comparison.first_divergence : comparison.first_flip;
  if (shown) {
    summary.cause = words(name_of(shown->cause));
    summary.reason = escaped_text(shown->reason);
    // "near-tie: margin …" stands behind the cause already.
    const auto colon = summary.reason.indexOf(QLatin1String(": "));
    if (colon > 0 && summary.reason.left(colon).replace('-', ' ') == summary.cause) {
      summary.reason.remove(0, colon + 2);
    }
    add_divergence_facts(comparison, *shown, summary.facts);
  } else {
    summary.reason = escaped_text(comparison.verdict_text);
  }
  if (one_sided(comparison)) {
    summary.reason = QStringLiteral(
        "To compare, import both files at once: driftscope import A B -o PAIR.h5; or two captures "
        "in a terminal: driftscope compare ONE.h5 OTHER.h5");
  }
  add_run_facts(comparison, live, summary.facts);
  if (live) {
    show_live(comparison, summary);
  } else if (const QString state = state_of(comparison); !state.isEmpty()) {
    summary.facts.push_back(
        {QStringLiteral("Run"), state, QStringLiteral("Not all planned steps are here (yet)")});
  }
  return summary;
}

QString unbroken_quotes(const QString& text) {
  QString result;
  bool inside = false;
  for (const QChar c : text) {
    if (c == QChar(0x2018)) {
      inside = true;
      if (result.endsWith(QLatin1Char(' '))) result.back() = QChar::Nbsp;
    }
    if (c == QChar(0x2019)) inside = false;
    result += inside && c == QLatin1Char(' ') ? QChar(QChar::Nbsp) : c;
  }
  return result;
}

QString to_text(const VerdictSummary& summary) {
  QString text = QStringLiteral("Verdict: %1\n%2\n").arg(summary.tier, summary.headline);
  if (!summary.cause.isEmpty()) text += QStringLiteral("Cause: %1\n").arg(summary.cause);
  if (!summary.reason.isEmpty()) text += summary.reason + QLatin1Char('\n');
  if (!summary.prompt.isEmpty()) text += QStringLiteral("Prompt: %1\n").arg(summary.prompt);
  for (const VerdictFact& fact : summary.facts) {
    text += QStringLiteral("%1: %2\n").arg(fact.label, fact.value);
  }
  return text;
}

QString to_markdown(const VerdictSummary& summary) {
  QString text = QStringLiteral("**%1**: %2\n\n").arg(summary.tier, summary.headline);
  if (!summary.cause.isEmpty()) text += QStringLiteral("- Cause: %1\n").arg(summary.cause);
  if (!summary.reason.isEmpty()) text += QStringLiteral("- %1\n").arg(summary.reason);
  if (!summary.prompt.isEmpty()) text += QStringLiteral("- Prompt: %1\n").arg(summary.prompt);
  for (const VerdictFact& fact : summary.facts) {
    text += QStringLiteral("- %1: %2\n").arg(fact.label, fact.value);
  }
  return text;
}

}  // namespace driftscope::ui
