// SPDX-License-Identifier: GPL-3.0-or-later
// The verdict in lines of text: for the bar, for the clipboard, and for people who do not see
// colour.
#pragma once

#include <QString>
#include <vector>

#include "analysis/compare/comparison.h"

namespace driftscope::ui {

// One labelled figure of the bar: "Drift at this step", "0.0123 logit (3.1 × usual)".
struct VerdictFact {
  QString label;
  QString value;
  QString tooltip = {};
};

struct VerdictSummary {
  QString tier;      // "TOKEN"
  QString headline;  // "First divergence at step 17: A ‘ the’, B ‘ a’"
  QString prompt;    // "‘In the beginning’", or how many tokens where the text is not known
  QString cause;     // "near tie"; empty without a divergence
  QString reason;    // one sentence with the figures
  std::vector<VerdictFact> facts;
  bool good = false;  // bitwise, tolerance, token
  bool inconclusive = false;
  bool running = false;  // the run is going on: no verdict yet
};
// `live`: a run that is going on in this window.
[[nodiscard]] VerdictSummary verdict_summary(const Comparison& comparison, bool live = false);
// Blanks between ‘ and ’, and before ‘, as no-break spaces: a line never ends inside a token.
[[nodiscard]] QString unbroken_quotes(const QString& text);
[[nodiscard]] QString to_text(const VerdictSummary& summary);
[[nodiscard]] QString to_markdown(const VerdictSummary& summary);

}  // namespace driftscope::ui
