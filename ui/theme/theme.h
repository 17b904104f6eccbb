// SPDX-License-Identifier: GPL-3.0-or-later
// Colours, palette and fonts. A is blue with circles, B is orange with squares, everywhere.
#pragma once

#include <QColor>
#include <QFont>
#include <QPalette>

namespace driftscope::ui {

enum class ThemeKind { light, dark };

struct Theme {
  QColor window;   // behind everything
  QColor surface;  // behind plots, tables and ribbons
  QColor text;
  QColor muted;  // secondary text, axes
  QColor grid;
  QColor side_a;      // blue; safe for the common colour-vision deficiencies beside side_b
  QColor side_b;      // orange
  QColor series;      // a quantity of both sides together, first series
  QColor series_two;  // the second
  QColor series_three;
  QColor divergence;  // the first divergence and flips
  QColor selection;   // the selected step
  QColor warning;
  QColor good;
  QColor non_finite;  // NaN and infinities
};

[[nodiscard]] ThemeKind theme_kind_of(const QPalette& palette);
[[nodiscard]] const Theme& theme_of(ThemeKind kind);
// The theme that fits the palette: dark where its window is darker than its text.
[[nodiscard]] const Theme& theme_of(const QPalette& palette);

// The application's palette, style and fonts. Fonts come with the program, so that a machine
// without fonts draws letters and every machine draws the same picture.
void apply_theme(ThemeKind kind);
[[nodiscard]] QFont text_font(double points = 9.5);
[[nodiscard]] QFont monospace_font(double points = 9.5);

// Linear mix: 0 gives `from`, 1 gives `to`.
[[nodiscard]] QColor mix(const QColor& from, const QColor& to, double share);
// A sequential ramp (0 … 1) that rises in lightness contrast against the surface.
[[nodiscard]] QColor ramp_colour(const Theme& theme, double share);

}  // namespace driftscope::ui
