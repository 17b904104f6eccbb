// SPDX-License-Identifier: GPL-3.0-or-later
// driftscope-gui: the window; and, without a display, plots and pictures of the window as files.
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <QApplication>
#include <QCommandLineParser>
#include <QEventLoop>
#include <QRegularExpression>
#include <QSettings>
#include <algorithm>
#include <atomic>
#include <optional>

#include "ui/bridge/capture_loader.h"
#include "ui/bridge/response_loader.h"
#include "ui/plots/render.h"
#include "ui/shell/main_window.h"
#include "ui/views/responses_view.h"

namespace driftscope::ui {
namespace {

int complain(ErrorKind kind, const std::string& message) {
  fmt::print(stderr, "driftscope-gui: {}\n", message);
  return exit_code(kind);
}
int complain(const Error& error) { return complain(error.kind, error.message); }

struct Options {
  QStringList files;  // one capture, or answers
  QString page;       // of the answers, in a screenshot
  bool render = false;
  QString screenshot;  // path; empty: none
  RenderRequest request;
  std::optional<ThemeKind> theme;
  bool size_given = false;
  std::int64_t step = -1;  // to select in a screenshot
};

Result<QSize> parse_size(const QString& text) {
  static const QRegularExpression form(QStringLiteral("\\A(\\d{1,5})x(\\d{1,5})\\z"));
  const auto match = form.match(text);
  if (!match.hasMatch()) {
    return fail(ErrorKind::usage,
                fmt::format("--size {}: write WIDTHxHEIGHT, as 1280x800", text.toStdString()));
  }
  return QSize(match.captured(1).toInt(), match.captured(2).toInt());
}

Result<ThemeKind> parse_theme(const QString& text) {
  if (text == QLatin1String("light")) return ThemeKind::light;
  if (text == QLatin1String("dark")) return ThemeKind::dark;
  return fail(ErrorKind::usage,
              fmt::format("--theme {}: choose light or dark", text.toStdString()));
}

void declare(QCommandLineParser& parser) {
  parser.setApplicationDescription(QStringLiteral(
      "Shows where two runs of one prompt, or two saved answers of servers, part.\n\n"
      "  driftscope-gui out.h5\n"
      "  driftscope-gui a.json b.json\n"
      "  driftscope-gui --render out.h5 --plot overview --format svg -o overview.svg"));
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addPositionalArgument(
      QStringLiteral("files"),
      QStringLiteral("A capture to open, or saved answers of servers to compare."),
      QStringLiteral("[FILE …]"));
  const auto option = [&parser](const QStringList& names, const char* help, const char* value) {
    parser.addOption(QCommandLineOption(names, QLatin1String(help), QLatin1String(value)));
  };
  parser.addOption(QCommandLineOption(
      QStringLiteral("render"),
      QStringLiteral("Write a plot of the capture to a file and end; needs no display.")));
  option({QStringLiteral("plot")}, "overview, or the id of one plot (default: overview).", "ID");
  option({QStringLiteral("format")}, "png, svg or pdf (default: as the name of the file ends).",
         "FORMAT");
  option({QStringLiteral("o"), QStringLiteral("output")}, "File to write.", "PATH");
  option({QStringLiteral("screenshot")},
         "Write a picture (PNG) of the window and end; needs no display.", "PATH");
  option({QStringLiteral("size")}, "Size in pixels, as 1280x800; plots at most 5000 a side.",
         "WxH");
  option({QStringLiteral("scale")},
         "Of a plot as PNG: pixels for each pixel of --size, 1 to 4 (default: 1).", "N");
  option({QStringLiteral("theme")}, "light or dark.", "THEME");
  option({QStringLiteral("page")},
         "Of answers, to show in a screenshot: pair, all or population (default: as they open).",
         "PAGE");
  option({QStringLiteral("step")}, "Step to select (default: the first divergence).", "N");
}

Result<Options> read_options(const QCommandLineParser& parser) {
  Options options;
  options.files = parser.positionalArguments();
  const auto captures = std::count_if(options.files.begin(), options.files.end(), is_capture_file);
  if (captures > 0 && options.files.size() > 1) {
    return fail(ErrorKind::usage, captures == options.files.size()
                                      ? "more than one capture is named; name one"
                                      : "a capture is named among responses; name it alone");
  }
  options.page = parser.value(QStringLiteral("page"));
  const QStringList pages{QString(), QStringLiteral("pair"), QStringLiteral("all"),
                          QStringLiteral("population")};
  if (!pages.contains(options.page))
    return fail(ErrorKind::usage, "--page: write pair, all or population");
  options.render = parser.isSet(QStringLiteral("render"));
  options.screenshot = parser.value(QStringLiteral("screenshot"));
  options.request.path = parser.value(QStringLiteral("output"));
  if (parser.isSet(QStringLiteral("plot")))
    options.request.plot = parser.value(QStringLiteral("plot"));
  options.request.format = parser.isSet(QStringLiteral("format"))
                               ? parser.value(QStringLiteral("format"))
                               : options.request.path.section(QLatin1Char('.'), -1).toLower();
  if (parser.isSet(QStringLiteral("size"))) {
    const auto size = parse_size(parser.value(QStringLiteral("size")));
    if (!size) return tl::unexpected(size.error());
    options.request.size = *size;
    options.size_given = true;
  }
  options.request.scale = 1;
  if (parser.isSet(QStringLiteral("scale"))) {
    bool number = false;
    options.request.scale = parser.value(QStringLiteral("scale")).toInt(&number);
    if (!number) return fail(ErrorKind::usage, "--scale: write a number from 1 to 4");
  }
  if (parser.isSet(QStringLiteral("theme"))) {
    const auto theme = parse_theme(parser.value(QStringLiteral("theme")));
    if (!theme) return tl::unexpected(theme.error());
    options.theme = options.request.theme = *theme;
  }
  if (parser.isSet(QStringLiteral("step"))) {
    bool number = false;
    options.step = parser.value(QStringLiteral("step")).toLongLong(&number);
    if (!number || options.step < 0) return fail(ErrorKind::usage, "--step: write a number from 0");
  }
  if (options.render && options.files.isEmpty()) {
    return fail(ErrorKind::usage, "--render needs a capture or responses; name a file");
  }
  if (options.render && options.request.path.isEmpty()) {
    return fail(ErrorKind::usage, "--render needs a file to write; add -o PATH");
  }
  return options;
}

bool are_responses(const QStringList& files) {
  return !files.isEmpty() && !is_capture_file(files.front());
}

int render_answers(const Options& options) {
  const std::atomic<Generation> newest{0};
  const auto files = read_response_files(options.files, 0, newest);
  if (!files) return complain(files.error());
  const auto choice = first_choice(**files);
  if (!choice) {
    return complain(ErrorKind::inconclusive, "there is one answer only; name a second file");
  }
  const auto done = render_responses(view_pair(*files, *choice), options.request);
  return done ? 0 : complain(done.error());
}

int run_render(const Options& options) {
  if (are_responses(options.files)) return render_answers(options);
  CaptureLoader loader;
  QEventLoop loop;
  ComparisonPointer comparison;
  std::optional<QString> failure;
  QObject::connect(&loader, &CaptureLoader::loaded, &loop, [&](const ComparisonPointer& loaded) {
    comparison = loaded;
    loop.quit();
  });
  QObject::connect(&loader, &CaptureLoader::failed, &loop, [&](const QString& message) {
    failure = message;
    loop.quit();
  });
  loader.load(options.files.front());
  loop.exec();
  if (failure) return complain(ErrorKind::malformed, failure->toStdString());
  const auto done = render_plot(comparison, options.request);
  return done ? 0 : complain(done.error());
}

// A page that these answers do not have would be waited for without end.
Result<void> check_page(const Options& options) {
  if (options.page.isEmpty() || options.page == QLatin1String("pair")) return {};
  const std::atomic<Generation> newest{0};
  const auto files = read_response_files(options.files, 0, newest);
  if (!files) return tl::unexpected(files.error());
  if (options.page == QLatin1String("population") && !is_population(**files)) {
    return fail(ErrorKind::usage,
                "--page population: needs two files of which one has several samples of a prompt");
  }
  if (options.page == QLatin1String("all") && !is_set(**files))
    return fail(ErrorKind::usage, "--page all: needs more than two answers");
  return {};
}

// Ends with what the page in view needs, or with an error.
void wait_for_answers(MainWindow& window, const Options& options) {
  using Page = ResponsesView::Page;
  QEventLoop loop;
  bool pair = false, all = false, population = false;
  const auto end = [&] {
    const Page page = window.responses().page();
    if (pair && (page == Page::pair || (page == Page::all ? all : population))) loop.quit();
  };
  const auto note = [&](bool& fact) {
    return [&] {
      fact = true;
      end();
    };
  };
  QObject::connect(&window, &MainWindow::error_shown, &loop, &QEventLoop::quit);
  QObject::connect(&window, &MainWindow::responses_shown, &loop, [&] {
    if (options.page == QLatin1String("pair")) window.responses().show_page(Page::pair);
    if (options.page == QLatin1String("all")) window.responses().show_page(Page::all);
    if (options.page == QLatin1String("population")) window.responses().show_page(Page::population);
    pair = true;
    end();
  });
  QObject::connect(&window, &MainWindow::survey_shown, &loop, note(all));
  QObject::connect(&window, &MainWindow::population_shown, &loop, note(population));
  window.open_files(options.files);
  loop.exec();
  if (options.step >= 0) window.responses().select_column(options.step);
}

void wait_for_capture(MainWindow& window, const Options& options) {
  window.findChild<QWidget*>(QStringLiteral("dock_run_panel"))->hide();
  QEventLoop loop;
  QObject::connect(&window, &MainWindow::capture_shown, &loop, &QEventLoop::quit);
  QObject::connect(&window, &MainWindow::error_shown, &loop, &QEventLoop::quit);
  window.open_capture(options.files.front());
  loop.exec();
  if (options.step >= 0) window.select_step(options.step);
}

int run_screenshot(const Options& options) {
  if (are_responses(options.files)) {
    if (const auto checked = check_page(options); !checked) return complain(checked.error());
  }
  MainWindow window(nullptr);
  window.resize(options.size_given ? options.request.size : QSize(1280, 800));
  window.show();
  if (are_responses(options.files)) {
    wait_for_answers(window, options);
  } else if (!options.files.isEmpty()) {
    wait_for_capture(window, options);
  }
  if (!window.last_error().isEmpty()) {
    return complain(ErrorKind::malformed, window.last_error().toStdString());
  }
  QApplication::processEvents();  // layouts settle, then queued replots run
  QApplication::processEvents();
  if (options.size_given && window.size() != options.request.size) {
    fmt::print(stderr,
               "driftscope-gui: the window does not get as small as --size {}x{}; the picture is "
               "{}x{}\n",
               options.request.size.width(), options.request.size.height(), window.width(),
               window.height());
  }
  if (!window.grab().save(options.screenshot, "PNG")) {
    return complain(ErrorKind::output, fmt::format("{}: cannot write; choose another path",
                                                   options.screenshot.toStdString()));
  }
  return 0;
}

int run_window(const Options& options) {
  QSettings settings;
  if (!options.theme &&
      settings.value(QStringLiteral("theme")).toString() == QLatin1String("dark")) {
    apply_theme(ThemeKind::dark);
  }
  MainWindow window(&settings);
  if (options.size_given) window.resize(options.request.size);
  window.open_files(options.files);
  window.show();
  return QApplication::exec();
}

bool has_display() {
  return !qEnvironmentVariableIsEmpty("DISPLAY") ||
         !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY") ||
         !qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM");
}

// What the offscreen platform says of itself; it says nothing about the picture.
void drop_platform_notes(QtMsgType type, const QMessageLogContext&, const QString& message) {
  const bool note = message.contains(QLatin1String("propagateSizeHints")) ||
                    message.contains(QLatin1String("XDG_RUNTIME_DIR"));
  if (type != QtDebugMsg && !note)
    fmt::print(stderr, "driftscope-gui: {}\n", message.toStdString());
}

const char* const kWithoutDisplay =
    "use a desktop session or ssh -X, or write plots to files with "
    "driftscope export FILE.h5 --to png -o F.png";

// Until there is a window: Qt's own words on a display that does not answer are several lines and
// advise to reinstall; then it aborts.
void explain_platform(QtMsgType type, const QMessageLogContext& context, const QString& message) {
  const bool platform = QLatin1String(context.category).startsWith(QLatin1String("qt.qpa"));
  if (type == QtFatalMsg) {
    const QString display = qEnvironmentVariableIsEmpty("DISPLAY")
                                ? qEnvironmentVariable("WAYLAND_DISPLAY")
                                : qEnvironmentVariable("DISPLAY");
    const bool forced = !qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM");
    fmt::print(stderr, "driftscope-gui: the display {}{} cannot be used; {}\n",
               display.isEmpty() ? "(none)" : display.toStdString(),
               forced ? fmt::format(" (QT_QPA_PLATFORM={})",
                                    qEnvironmentVariable("QT_QPA_PLATFORM").toStdString())
                      : "",
               kWithoutDisplay);
    std::fflush(stderr);
    _exit(exit_code(ErrorKind::engine));
  }
  if (type == QtDebugMsg || type == QtInfoMsg || platform) return;
  fmt::print(stderr, "driftscope-gui: {}\n", message.toStdString());
}

int run(int argc, char** argv) {
  QCommandLineParser parser;
  declare(parser);
  QStringList words;
  for (int i = 0; i < argc; ++i) words << QString::fromLocal8Bit(argv[i]);
  // Before there is a QApplication: that would abort the program where there is no display.
  if (!parser.parse(words)) {
    return complain(ErrorKind::usage,
                    parser.errorText().toStdString() + "; see driftscope-gui --help");
  }
  const bool quiet =
      parser.isSet(QStringLiteral("render")) || parser.isSet(QStringLiteral("screenshot")) ||
      parser.isSet(QStringLiteral("help")) || parser.isSet(QStringLiteral("version"));
  if (quiet) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    qInstallMessageHandler(drop_platform_notes);
  } else if (!has_display()) {
    return complain(ErrorKind::engine,
                    fmt::format("there is no display (DISPLAY and WAYLAND_DISPLAY are not set); {}",
                                kWithoutDisplay));
  } else {
    qInstallMessageHandler(explain_platform);
  }
  QApplication application(argc, argv);
  if (!quiet) qInstallMessageHandler(nullptr);
  QApplication::setApplicationName(QStringLiteral("driftscope-gui"));
  QApplication::setOrganizationName(QStringLiteral("Driftscope"));
  QApplication::setApplicationVersion(QStringLiteral(DRIFTSCOPE_VERSION));
  if (parser.isSet(QStringLiteral("help"))) parser.showHelp(0);
  if (parser.isSet(QStringLiteral("version"))) parser.showVersion();
  const auto options = read_options(parser);
  if (!options) return complain(options.error());
  apply_theme(options->theme.value_or(ThemeKind::light));
  if (options->render) return run_render(*options);
  if (!options->screenshot.isEmpty()) return run_screenshot(*options);
  return run_window(*options);
}

}  // namespace
}  // namespace driftscope::ui

int main(int argc, char** argv) { return driftscope::ui::run(argc, argv); }
