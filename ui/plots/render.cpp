// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/render.h"

#include <fmt/format.h>
#include <qcustomplot.h>

#include <QBuffer>
#include <QImage>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ui/models/fitting_words.h"
#include "ui/models/navigation.h"
#include "ui/models/response_verdict.h"
#include "ui/models/verdict_summary.h"
#include "ui/plots/plot_catalogue.h"
#include "ui/plots/population_plots.h"
#include "ui/plots/response_plot.h"

namespace driftscope::ui {
namespace {

constexpr int kPlotHeight = 220;
constexpr int kPopulationHeight = 320;
constexpr int kCaptionHeight = 50;  // above the figures of populations
constexpr int kHeaderHeight = 90;
constexpr int kAxisHeight =
    30;  // what the lowest plot needs more, for numbers and name of the axis
constexpr int kSmallest = 200;
constexpr int kLargest = 5000;
constexpr int kLargestScale = 4;
// Of a picture: 400 MB, seconds, not minutes, and well inside what the painter's coordinates hold.
constexpr int kMostPixels = 10'000;

struct Sheet {
  std::vector<std::unique_ptr<StepPlot>> plots;
  std::optional<VerdictSummary> header;
  QSize size;
};

Result<std::vector<const PlotInfo*>> named_plots(std::span<const PlotInfo> catalogue,
                                                 const RenderRequest& request) {
  std::vector<const PlotInfo*> chosen;
  std::string names = "overview";
  for (const PlotInfo& info : catalogue) {
    names += fmt::format(", {}", info.id);
    if (request.plot == QLatin1String("overview") || request.plot.toStdString() == info.id) {
      chosen.push_back(&info);
    }
  }
  if (!chosen.empty()) return chosen;
  return fail(ErrorKind::usage, fmt::format("--plot {}: no such plot; choose one of {}",
                                            request.plot.toStdString(), names));
}

Result<std::vector<const PlotInfo*>> chosen_plots(const Comparison& comparison,
                                                  const RenderRequest& request) {
  auto chosen = named_plots(plot_catalogue(), request);
  if (!chosen) return chosen;
  if (request.plot == QLatin1String("overview")) {
    std::erase_if(*chosen, [&](const PlotInfo* info) { return !can_show(*info, comparison); });
    return chosen;
  }
  const PlotInfo* info = chosen->front();
  if (!can_show(*info, comparison)) {
    return fail(ErrorKind::inconclusive,
                fmt::format("--plot {}: no taps in this capture; {}", info->id,
                            is_import(comparison) ? "files of other programs hold none"
                                                  : "record it with --taps layers"));
  }
  return chosen;
}

Result<void> check_size(QSize size, int scale) {
  const auto in_range = [](int pixels) { return pixels >= kSmallest && pixels <= kLargest; };
  if (!in_range(size.width()) || !in_range(size.height())) {
    return fail(ErrorKind::usage, fmt::format("--size {}x{}: width and height are {} to {} pixels",
                                              size.width(), size.height(), kSmallest, kLargest));
  }
  if (scale < 1 || scale > kLargestScale) {
    return fail(ErrorKind::usage, fmt::format("--scale {}: choose 1 to {}", scale, kLargestScale));
  }
  if (std::max(size.width(), size.height()) * scale > kMostPixels) {
    return fail(ErrorKind::usage,
                fmt::format("--size {}x{} with --scale {}: at most {} pixels a side", size.width(),
                            size.height(), scale, kMostPixels));
  }
  return {};
}

// Empty plots of the right size and range.
Result<Sheet> empty_sheet(const std::vector<const PlotInfo*>& chosen, const VerdictSummary& verdict,
                          std::int64_t steps, const RenderRequest& request) {
  Sheet sheet;
  if (request.plot == QLatin1String("overview")) sheet.header = verdict;
  const int natural = static_cast<int>(chosen.size()) * kPlotHeight + kAxisHeight +
                      (sheet.header ? kHeaderHeight : 0);
  sheet.size = {request.size.width(), request.size.height() > 0 ? request.size.height() : natural};
  if (auto fits = check_size(sheet.size, request.scale); !fits) return tl::unexpected(fits.error());
  const double count = std::max(1.0, static_cast<double>(steps));
  for (const PlotInfo* info : chosen) {
    sheet.plots.emplace_back(info->make(nullptr));
    StepPlot& plot = *sheet.plots.back();
    plot.set_theme(theme_of(request.theme));
    plot.set_step_labels(info == chosen.back());
    plot.set_step_range(-0.5, count - 0.5);
  }
  return sheet;
}

struct TierLine {
  int width, height;  // of the picture, and of the line at its top
  double points;      // of the tier, in bold
};

// The tier in its colour, and the headline behind it.
void draw_tier_line(QCPPainter& painter, const VerdictSummary& summary, const TierLine& line,
                    const Theme& theme) {
  QFont bold = text_font(line.points);
  bold.setBold(true);
  painter.setFont(bold);
  painter.setPen(summary.good           ? theme.good
                 : summary.inconclusive ? theme.warning
                                        : theme.divergence);
  const auto flags = Qt::AlignLeft | Qt::AlignVCenter;
  painter.drawText(QRect(12, 6, line.width - 24, line.height), flags, summary.tier);
  const int shift = QFontMetrics(bold).horizontalAdvance(summary.tier) + 14;
  painter.setPen(theme.text);
  painter.drawText(QRect(12 + shift, 6, line.width - 24 - shift, line.height), flags,
                   summary.headline);
}

void draw_header(QCPPainter& painter, const VerdictSummary& summary, int width,
                 const Theme& theme) {
  draw_tier_line(painter, summary, {.width = width, .height = 22, .points = 12}, theme);
  painter.setFont(text_font(9));
  painter.setPen(theme.muted);
  const QString cause =
      summary.cause.isEmpty() ? QString() : QStringLiteral("Cause: %1. ").arg(summary.cause);
  painter.drawText(QRect(12, 30, width - 24, 34), Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap,
                   cause + summary.reason);
  QStringList facts;
  for (const VerdictFact& fact : summary.facts)
    facts << fact.label + QStringLiteral(" ") + fact.value;
  painter.drawText(QRect(12, 66, width - 24, 18), Qt::AlignLeft | Qt::AlignVCenter,
                   facts.join(QStringLiteral("   ·   ")));
}

// A picture goes its own way: it says of what it is, and what was found.
void draw_caption(QCPPainter& painter, const PopulationView& population, int row, int width,
                  const Theme& theme) {
  draw_tier_line(painter, population_verdict(population),
                 {.width = width, .height = 20, .points = 11}, theme);
  painter.setFont(text_font(8.5));
  painter.setPen(theme.muted);
  const QString words = painter.fontMetrics().elidedText(population_caption(population, row),
                                                         Qt::ElideMiddle, width - 24);
  painter.drawText(QRect(12, 28, width - 24, 18), Qt::AlignLeft | Qt::AlignVCenter, words);
}

void draw_sheet(QCPPainter& painter, const Sheet& sheet, const Theme& theme) {
  painter.fillRect(QRect({0, 0}, sheet.size), theme.surface);
  int top = 0;
  if (sheet.header) {
    draw_header(painter, *sheet.header, sheet.size.width(), theme);
    top = kHeaderHeight;
  }
  const int count = static_cast<int>(sheet.plots.size());
  const int height = (sheet.size.height() - top - kAxisHeight) / std::max(1, count);
  for (int i = 0; i < count; ++i) {
    const bool lowest = i + 1 == count;
    painter.save();
    painter.translate(0, top);
    StepPlot& plot = *sheet.plots[static_cast<std::size_t>(i)];
    plot.resize(sheet.size.width(), height);
    plot.draw_into(painter, {sheet.size.width(), lowest ? sheet.size.height() - top : height});
    painter.restore();
    top += height;
  }
}

using Draw = std::function<void(QCPPainter&)>;

bool draw_png(QIODevice& device, QSize size, int scale, const Draw& draw) {
  QImage image(size * scale, QImage::Format_RGB32);
  if (image.isNull()) return false;
  image.setDevicePixelRatio(scale);
  {
    QCPPainter painter(&image);
    draw(painter);
  }
  return image.save(&device, "PNG");
}

bool draw_svg(QIODevice& device, QSize size, int, const Draw& draw) {
  QSvgGenerator generator;
  generator.setOutputDevice(&device);
  generator.setSize(size);
  generator.setViewBox(QRect({0, 0}, size));
  generator.setTitle(QStringLiteral("Driftscope"));
  QCPPainter painter(&generator);
  painter.setMode(QCPPainter::pmVectorized);
  draw(painter);
  return painter.end();
}

bool draw_pdf(QIODevice& device, QSize size, int, const Draw& draw) {
  QPdfWriter writer(&device);
  constexpr int kUnitsPerInch = 96;
  writer.setResolution(kUnitsPerInch);
  writer.setPageMargins(QMarginsF());
  writer.setPageSize(
      QPageSize(QSizeF(size.width() * 72.0 / kUnitsPerInch, size.height() * 72.0 / kUnitsPerInch),
                QPageSize::Point, QString(), QPageSize::ExactMatch));
  writer.setTitle(QStringLiteral("Driftscope"));
  QCPPainter painter(&writer);
  painter.setMode(QCPPainter::pmVectorized);
  draw(painter);
  return painter.end();
}

struct Writer {
  const char* format;
  bool (*write)(QIODevice&, QSize, int scale, const Draw&);
};
constexpr std::array kWriters{Writer{"png", draw_png}, Writer{"svg", draw_svg},
                              Writer{"pdf", draw_pdf}};

Result<const Writer*> writer_for(const RenderRequest& request) {
  const auto writer = std::find_if(kWriters.begin(), kWriters.end(), [&](const Writer& w) {
    return request.format == QLatin1String(w.format);
  });
  if (writer != kWriters.end()) return &*writer;
  return fail(ErrorKind::usage,
              fmt::format("--format {}: choose png, svg or pdf", request.format.toStdString()));
}

Result<void> write_drawing(QSize size, const Draw& draw, const Writer& writer,
                           const RenderRequest& request) {
  QSaveFile file(request.path);
  const auto cannot_write = [&] {
    return fail(ErrorKind::output,
                fmt::format("{}: cannot write: {}; choose another path", request.path.toStdString(),
                            file.errorString().toStdString()));
  };
  if (!file.open(QIODevice::WriteOnly)) return cannot_write();
  const bool written = writer.write(file, size, request.scale, draw);
  if (!written && file.error() == QFileDevice::NoError) {
    return fail(ErrorKind::output,
                fmt::format("--size {}x{}: the picture cannot be drawn, there is not enough memory "
                            "for it; choose a smaller size",
                            size.width(), size.height()));
  }
  if (!written || !file.commit()) return cannot_write();
  return {};
}

Result<void> write_sheet(const Sheet& sheet, const Writer& writer, const RenderRequest& request) {
  const auto draw = [&](QCPPainter& painter) {
    draw_sheet(painter, sheet, theme_of(request.theme));
  };
  return write_drawing(sheet.size, draw, writer, request);
}

}  // namespace

Result<void> render_plot(const ComparisonPointer& comparison, const RenderRequest& request) {
  const auto writer = writer_for(request);
  if (!writer) return tl::unexpected(writer.error());
  const auto chosen = chosen_plots(*comparison, request);
  if (!chosen) return tl::unexpected(chosen.error());
  const auto sheet =
      empty_sheet(*chosen, verdict_summary(*comparison), step_count(*comparison), request);
  if (!sheet) return tl::unexpected(sheet.error());
  for (const auto& plot : sheet->plots) {
    plot->set_comparison(comparison);
    plot->set_selected_step(first_difference(*comparison).value_or(-1));
  }
  return write_sheet(*sheet, **writer, request);
}

Result<void> render_responses(const ResponsePairPointer& pair, const RenderRequest& request) {
  const auto writer = writer_for(request);
  if (!writer) return tl::unexpected(writer.error());
  const auto chosen = named_plots(response_plot_catalogue(), request);
  if (!chosen) return tl::unexpected(chosen.error());
  const auto columns = static_cast<std::int64_t>(pair->columns.columns.size());
  const auto sheet = empty_sheet(*chosen, response_verdict(*pair), columns, request);
  if (!sheet) return tl::unexpected(sheet.error());
  for (const auto& plot : sheet->plots) {
    if (auto* shown = qobject_cast<ResponsePlot*>(plot.get())) shown->set_pair(pair);
    plot->set_selected_step(pair->columns.divergence);
  }
  return write_sheet(*sheet, **writer, request);
}

Result<void> render_populations(const PopulationPointer& population, int row,
                                const RenderRequest& request) {
  const auto writer = writer_for(request);
  if (!writer) return tl::unexpected(writer.error());
  const QSize size(request.size.width(),
                   request.size.height() > 0 ? request.size.height() : kPopulationHeight);
  if (auto fits = check_size(size, request.scale); !fits) return fits;
  const Theme& theme = theme_of(request.theme);
  PopulationPlots plots(nullptr);
  plots.set_theme(theme);
  const QSize figures(size.width(), size.height() - kCaptionHeight);
  plots.resize(figures);
  plots.show(population, row);
  const auto draw = [&](QCPPainter& painter) {
    painter.fillRect(QRect({0, 0}, size), theme.surface);
    draw_caption(painter, *population, row, size.width(), theme);
    painter.translate(0, kCaptionHeight);
    plots.draw_into(painter, figures);
  };
  return write_drawing(size, draw, **writer, request);
}

}  // namespace driftscope::ui
