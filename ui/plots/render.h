// SPDX-License-Identifier: GPL-3.0-or-later
// Plots as files, without a display.
#pragma once

#include <QSize>
#include <QString>

#include "analysis/compare/comparison.h"
#include "kernels/base/result.h"
#include "ui/models/response_snapshot.h"
#include "ui/theme/theme.h"

namespace driftscope::ui {

struct RenderRequest {
  QString plot = QStringLiteral("overview");  // an id of the catalogue, or "overview": all of them
  QString format = QStringLiteral("png");     // png (two device pixels per unit), svg, pdf
  QString path;
  QSize size{1200, 0};  // logical pixels; height 0: what fits the plot
  ThemeKind theme = ThemeKind::light;
};
// Errors: usage (unknown plot or format, size out of range), inconclusive (the comparison lacks
// what the plot needs), output (cannot write).
[[nodiscard]] Result<void> render_plot(const ComparisonPointer& comparison,
                                       const RenderRequest& request);
// The same of two answers, from the response_plot_catalogue().
[[nodiscard]] Result<void> render_responses(const ResponsePairPointer& pair,
                                            const RenderRequest& request);

}  // namespace driftscope::ui
