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
  QString format = QStringLiteral("png");     // png, svg, pdf
  QString path;
  QSize size{1200, 0};  // of the drawing; height 0: what fits the plot
  int scale = 2;        // png: pixels of the picture per pixel of `size`, both ways; 1 to 4
  ThemeKind theme = ThemeKind::light;
};
// Errors: usage (unknown plot or format, size out of range), inconclusive (the comparison lacks
// what the plot needs), output (cannot write).
[[nodiscard]] Result<void> render_plot(const ComparisonPointer& comparison,
                                       const RenderRequest& request);
// The same of two answers, from the response_plot_catalogue().
[[nodiscard]] Result<void> render_responses(const ResponsePairPointer& pair,
                                            const RenderRequest& request);
// Both figures of two populations; `row`: one prompt of the comparison, -1: all together. The name
// of the plot is passed over.
[[nodiscard]] Result<void> render_populations(const PopulationPointer& population, int row,
                                              const RenderRequest& request);

}  // namespace driftscope::ui
