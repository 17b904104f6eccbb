// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/theme.h"

#include <QApplication>
#include <QFontDatabase>
#include <QStyleFactory>
#include <algorithm>
#include <array>

// Outside any namespace: the macro declares a global function.
static void initialise_font_resource() { Q_INIT_RESOURCE(fonts); }

namespace driftscope::ui {
namespace {

// Blue and orange after Okabe and Ito's colour-blind-safe set, darkened on white and lightened on
// black to a contrast of at least 3.5 to 1.
const Theme kLight{
    .window = QColor(0xf1f3f6),
    .surface = QColor(0xffffff),
    .text = QColor(0x1b1f24),
    .muted = QColor(0x5b6470),
    .grid = QColor(0xe3e7ec),
    .side_a = QColor(0x0067b1),
    .side_b = QColor(0xd05a00),
    .series = QColor(0x2b3440),
    .series_two = QColor(0x7a4fb5),
    .series_three = QColor(0x00806a),
    .divergence = QColor(0xc4123f),
    .selection = QColor(0x3a76d8),
    .warning = QColor(0x9a5b00),
    .good = QColor(0x1d7a3d),
    .non_finite = QColor(0xb000b0),
};
const Theme kDark{
    .window = QColor(0x1b1e23),
    .surface = QColor(0x121418),
    .text = QColor(0xe7eaee),
    .muted = QColor(0x9aa4b0),
    .grid = QColor(0x2a2f36),
    .side_a = QColor(0x5bb4f0),
    .side_b = QColor(0xff9e45),
    .series = QColor(0xd7dde5),
    .series_two = QColor(0xb99af0),
    .series_three = QColor(0x4fd0b4),
    .divergence = QColor(0xff5c7c),
    .selection = QColor(0x6ea4ff),
    .warning = QColor(0xf0b45a),
    .good = QColor(0x66cc8a),
    .non_finite = QColor(0xff6bff),
};

void load_fonts() {
  static const bool loaded = [] {
    initialise_font_resource();
    for (const char* name : {"DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf"}) {
      QFontDatabase::addApplicationFont(QStringLiteral(":/fonts/") + QLatin1String(name));
    }
    return true;
  }();
  Q_UNUSED(loaded)
}

QPalette palette_of(const Theme& theme) {
  QPalette palette;
  palette.setColor(QPalette::Window, theme.window);
  palette.setColor(QPalette::WindowText, theme.text);
  palette.setColor(QPalette::Base, theme.surface);
  palette.setColor(QPalette::AlternateBase, mix(theme.surface, theme.window, 0.6));
  palette.setColor(QPalette::Text, theme.text);
  palette.setColor(QPalette::Button, mix(theme.window, theme.text, 0.06));
  palette.setColor(QPalette::ButtonText, theme.text);
  palette.setColor(QPalette::BrightText, theme.divergence);
  palette.setColor(QPalette::ToolTipBase, theme.surface);
  palette.setColor(QPalette::ToolTipText, theme.text);
  palette.setColor(QPalette::PlaceholderText, theme.muted);
  palette.setColor(QPalette::Link, theme.selection);
  palette.setColor(QPalette::Highlight, theme.selection);
  palette.setColor(QPalette::HighlightedText, QColor(Qt::white));
  for (const QPalette::ColorRole role :
       {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    palette.setColor(QPalette::Disabled, role, mix(theme.text, theme.window, 0.55));
  }
  return palette;
}

}  // namespace

ThemeKind theme_kind_of(const QPalette& palette) {
  const bool dark =
      palette.color(QPalette::Window).lightness() < palette.color(QPalette::WindowText).lightness();
  return dark ? ThemeKind::dark : ThemeKind::light;
}

const Theme& theme_of(ThemeKind kind) { return kind == ThemeKind::dark ? kDark : kLight; }
const Theme& theme_of(const QPalette& palette) { return theme_of(theme_kind_of(palette)); }

void apply_theme(ThemeKind kind) {
  load_fonts();
  QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
  QApplication::setPalette(palette_of(theme_of(kind)));
  QApplication::setFont(text_font());
}

QFont text_font(double points) {
  load_fonts();
  QFont font(QStringLiteral("DejaVu Sans"));
  font.setPointSizeF(points);
  return font;
}

QFont monospace_font(double points) {
  load_fonts();
  QFont font(QStringLiteral("DejaVu Sans Mono"));
  font.setPointSizeF(points);
  return font;
}

QColor mix(const QColor& from, const QColor& to, double share) {
  const auto channel = [share](int a, int b) {
    return static_cast<int>(a + (b - a) * share + 0.5);
  };
  return QColor(channel(from.red(), to.red()), channel(from.green(), to.green()),
                channel(from.blue(), to.blue()), channel(from.alpha(), to.alpha()));
}

QColor ramp_colour(const Theme& theme, double share) {
  const double clamped = std::clamp(share, 0.0, 1.0);
  const bool dark = theme.surface.lightness() < 128;
  const std::array<QColor, 4> stops =
      dark ? std::array{QColor(0x1d2a4a), QColor(0x5b3f9c), QColor(0xd65a7a), QColor(0xffe08a)}
           : std::array{QColor(0xdfe9f7), QColor(0x7fa3d9), QColor(0x7a3f9c), QColor(0x5c0a2e)};
  const double scaled = clamped * 3.0;
  const auto lower = std::min(static_cast<std::size_t>(scaled), std::size_t{2});
  return mix(stops[lower], stops[lower + 1], scaled - static_cast<double>(lower));
}

}  // namespace driftscope::ui
