// SPDX-License-Identifier: GPL-3.0-or-later
// Live runs: a child process that prints a recorded event stream, its progress, its errors, its
// end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QFile>
#include <QPlainTextEdit>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "analysis/report/events.h"
#include "tests/ui/synthetic_comparison.h"
#include "ui/shell/main_window.h"

namespace driftscope::ui {
namespace {

// The stream of a run of `steps` steps, as the headless program writes it.
std::string recorded_events(const Comparison& source, std::int64_t steps) {
  ExperimentFacts facts;
  facts.vocabulary = source.vocabulary;
  facts.planned_steps = steps;
  facts.model_a = facts.model_b = "sample";
  const auto piece = [&](TokenId id) {
    const TokenPiece* found = source.piece(id);
    return found == nullptr ? std::string() : found->bytes;
  };
  std::string text = started_event(facts, ComparePolicy{}) + "\n";
  for (std::int64_t i = 0; i < steps; ++i) {
    text += progress_event("decode", i + 1, steps) + "\n";
    text += step_event(*source.steps[static_cast<std::size_t>(i)], {}, piece) + "\n";
  }
  return text;
}

class LiveRun : public testing::Test {
 protected:
  QString write(const QString& name, const std::string& text, bool executable) {
    QFile file(m_folder.filePath(name));
    EXPECT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(text.data(), static_cast<qint64>(text.size()));
    if (executable) file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return file.fileName();
  }
  // A stand-in for the headless program: prints `events`, then does `after`.
  QString program(const QString& name, const std::string& events, const std::string& after) {
    const QString recorded = write(name + QStringLiteral(".jsonl"), events, false);
    return write(name, "#!/bin/sh\ncat '" + recorded.toStdString() + "'\n" + after + "\n", true);
  }
  void prepare(MainWindow& window, const QString& stand_in) {
    qputenv("DRIFTSCOPE_CLI", stand_in.toUtf8());
    RunRequest request = window.run_panel().request();
    request.model = QStringLiteral("model");
    request.prompt = QStringLiteral("In the beginning");
    request.output = m_folder.filePath(QStringLiteral("out.h5"));
    window.run_panel().set_request(request);
  }
  void TearDown() override { qunsetenv("DRIFTSCOPE_CLI"); }
  QTemporaryDir m_folder;
  std::shared_ptr<Comparison> m_source =
      synthetic_comparison({.steps = 24, .divergence = 9, .taps = false});
};

TEST_F(LiveRun, EventsReachTheWindow) {
  const std::string done = done_event(*m_source, "out.h5", 0) + "\n";
  MainWindow window(nullptr);
  prepare(window,
          program(QStringLiteral("child"), recorded_events(*m_source, 24) + done, "exit 0"));
  QSignalSpy ended(&window, &MainWindow::run_ended);
  window.start_run();
  ASSERT_TRUE(ended.wait(30000));
  EXPECT_EQ(ended[0][0].toInt(), 0);
  EXPECT_EQ(window.last_error().toStdString(), "");
  ASSERT_NE(window.comparison(), nullptr);
  ASSERT_EQ(window.comparison()->steps.size(), 24U);
  EXPECT_EQ(window.comparison()->steps[9]->token_a, m_source->steps[9]->token_a);
  EXPECT_EQ(window.comparison()->steps[9]->metrics.top_b, m_source->steps[9]->metrics.top_b);
  EXPECT_FALSE(window.running());
}

// The headless program itself, where it has been built, on the sample model.
TEST_F(LiveRun, TheHeadlessProgramItselfFillsTheWindow) {
  const QString real = QStringLiteral(DRIFTSCOPE_BINARY_DIR "/app/cli/driftscope");
  const QString model = QStringLiteral(DRIFTSCOPE_SOURCE_DIR "/samples/model");
  if (!QFile::exists(real) || !QFile::exists(model + QStringLiteral("/model.safetensors"))) {
    GTEST_SKIP() << "needs the built program driftscope and samples/model";
  }
  MainWindow window(nullptr);
  prepare(window, real);
  RunRequest request = window.run_panel().request();
  request.model = model;
  request.steps = 4;
  request.taps = QStringLiteral("layers");
  window.run_panel().set_request(request);
  QSignalSpy ended(&window, &MainWindow::run_ended);
  window.start_run();
  ASSERT_TRUE(ended.wait(120000));
  EXPECT_EQ(window.last_error().toStdString(), "");
  EXPECT_EQ(ended[0][0].toInt(), 0);
  ASSERT_NE(window.comparison(), nullptr);
  EXPECT_EQ(window.comparison()->steps.size(), 4U);
  EXPECT_FALSE(window.comparison()->taps.empty());
  EXPECT_TRUE(QFile::exists(request.output));
  // The capture says the same as the stream did.
  const ComparisonPointer live = window.comparison();
  QSignalSpy shown(&window, &MainWindow::capture_shown);
  window.open_capture(request.output);
  ASSERT_TRUE(shown.wait(120000));
  ASSERT_EQ(window.comparison()->steps.size(), 4U);
  EXPECT_EQ(window.comparison()->verdict, live->verdict);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(window.comparison()->steps[i]->metrics.top_a, live->steps[i]->metrics.top_a);
    EXPECT_EQ(window.comparison()->steps[i]->flips, live->steps[i]->flips);
  }
}

TEST_F(LiveRun, TheChildGetsTheShownCommandAndEvents) {
  MainWindow window(nullptr);
  const QString log = m_folder.filePath(QStringLiteral("arguments"));
  prepare(window, write(QStringLiteral("child"),
                        "#!/bin/sh\nfor a in \"$@\"; do printf '%s\\n' \"$a\"; done > '" +
                            log.toStdString() + "'\n",
                        true));
  QSignalSpy ended(&window, &MainWindow::run_ended);
  window.start_run();
  ASSERT_TRUE(ended.wait(30000));
  QFile file(log);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  const QStringList words = QString::fromUtf8(file.readAll()).split(u'\n', Qt::SkipEmptyParts);
  EXPECT_EQ(words, run_arguments(window.run_panel().request()).value()
                       << QStringLiteral("--events"));
}

TEST_F(LiveRun, CancelKeepsWhatCameAndReports130) {
  MainWindow window(nullptr);
  prepare(window, program(QStringLiteral("child"), recorded_events(*m_source, 6),
                          "trap 'kill $!; exit 130' INT\ntail -f /dev/null &\nwait"));
  QSignalSpy ended(&window, &MainWindow::run_ended);
  window.start_run();
  ASSERT_TRUE(QTest::qWaitFor([&] { return window.comparison() != nullptr; }, 30000));
  // A snapshot may hold fewer steps than were printed: the rest comes with the end of the stream.
  window.cancel_run();
  ASSERT_TRUE(ended.wait(30000));
  EXPECT_EQ(ended[0][0].toInt(), 130);
  EXPECT_GE(window.comparison()->steps.size(), 1U);
}

TEST_F(LiveRun, FailureOfTheChildIsItsOneLine) {
  MainWindow window(nullptr);
  prepare(window,
          write(QStringLiteral("child"),
                "#!/bin/sh\necho 'config.json: missing; choose a folder' >&2\nexit 4\n", true));
  QSignalSpy ended(&window, &MainWindow::run_ended);
  window.start_run();
  ASSERT_TRUE(ended.wait(30000));
  EXPECT_EQ(window.last_error().toStdString(), "config.json: missing; choose a folder");
}

TEST_F(LiveRun, OutputThatIsNoEventStreamIsAnError) {
  MainWindow window(nullptr);
  prepare(window, write(QStringLiteral("child"), "#!/bin/sh\necho hello\n", true));
  QSignalSpy ended(&window, &MainWindow::run_ended);
  window.start_run();
  ASSERT_TRUE(ended.wait(30000));
  EXPECT_NE(window.last_error().toStdString(), "");
  EXPECT_EQ(window.comparison(), nullptr);
}

TEST_F(LiveRun, AProgramThatCannotStartIsAnError) {
  MainWindow window(nullptr);
  prepare(window, m_folder.filePath(QStringLiteral("absent")));
  QSignalSpy ended(&window, &MainWindow::run_ended);
  window.start_run();
  if (ended.isEmpty()) {
    ASSERT_TRUE(ended.wait(30000));
  }
  EXPECT_THAT(window.last_error().toStdString(), testing::HasSubstr("cannot be started"));
}

TEST_F(LiveRun, ARunThatSaysNothingIsAnErrorThatNamesThePrefix) {
  MainWindow window(nullptr);
  prepare(window, QStringLiteral("unused"));
  window.run_panel().set_remote(
      {write(QStringLiteral("prefix"), "#!/bin/sh\nexit 1\n", true), QStringLiteral("word")});
  QSignalSpy ended(&window, &MainWindow::run_ended);
  window.start_run();
  ASSERT_TRUE(ended.wait(30000));
  EXPECT_THAT(window.last_error().toStdString(), testing::StartsWith("Command prefix “"));
  EXPECT_THAT(window.last_error().toStdString(), testing::HasSubstr("exit code 1"));
}

TEST_F(LiveRun, AnExistingCaptureIsReplacedOnlyWhenAsked) {
  MainWindow window(nullptr);
  prepare(window, program(QStringLiteral("child"), recorded_events(*m_source, 3), "exit 0"));
  write(QStringLiteral("out.h5"), "kept", false);
  window.start_run();
  EXPECT_FALSE(window.running());
  RunRequest request = window.run_panel().request();
  request.replace = true;
  window.run_panel().set_request(request);
  EXPECT_TRUE(window.run_panel().command_text().contains(QLatin1String(" --force ")));
  QSignalSpy ended(&window, &MainWindow::run_ended);
  window.start_run();
  EXPECT_TRUE(window.running());
  ASSERT_TRUE(ended.wait(30000));
}

// After the end no line goes on telling of progress, whatever the exit code says of the texts.
TEST_F(LiveRun, TheStateLineEndsWithTheRun) {
  for (const char* end : {"exit 0", "exit 1", "exit 130"}) {
    MainWindow window(nullptr);
    prepare(window, program(QStringLiteral("child"), recorded_events(*m_source, 6), end));
    QSignalSpy ended(&window, &MainWindow::run_ended);
    window.start_run();
    ASSERT_TRUE(ended.wait(30000));
    EXPECT_THAT(window.state_text().toStdString(), testing::HasSubstr("out.h5")) << end;
    EXPECT_FALSE(window.state_text().contains(QLatin1String("decode"))) << end;
  }
}

TEST_F(LiveRun, AnOlderGenerationIsDropped) {
  RunProcess run;
  std::vector<Generation> seen;
  QObject::connect(
      &run, &RunProcess::snapshot, &run,
      [&](Generation generation, const ComparisonPointer&) { seen.push_back(generation); });
  QSignalSpy finished(&run, &RunProcess::finished);
  const QString waiting = program(QStringLiteral("old"), recorded_events(*m_source, 6),
                                  "trap 'kill $!; exit 130' INT\ntail -f /dev/null &\nwait");
  const QString quick = program(QStringLiteral("new"), recorded_events(*m_source, 3), "exit 0");
  const Generation old_generation = run.start(waiting, {}, {});
  ASSERT_TRUE(QTest::qWaitFor([&] { return !seen.empty(); }, 30000));
  const Generation new_generation = run.start(quick, {}, {});
  seen.clear();
  // Pieces of the old stream that arrive late.
  emit run.bytes_read(old_generation, QByteArray("not an event\n"));
  ASSERT_TRUE(finished.wait(30000));
  ASSERT_EQ(finished.size(), 1);  // the old run's end is stale as well
  EXPECT_EQ(finished[0][0].value<Generation>(), new_generation);
  EXPECT_FALSE(seen.empty());
  for (const Generation generation : seen) EXPECT_EQ(generation, new_generation);
}

TEST_F(LiveRun, RemotePrefixQuotesWordsForTheOtherShell) {
  MainWindow window(nullptr);
  const QString log = m_folder.filePath(QStringLiteral("arguments"));
  const QString ssh =
      write(QStringLiteral("ssh"),
            "#!/bin/sh\nprintf '%s\\n' \"$*\" > '" + log.toStdString() + "'\n", true);
  prepare(window, QStringLiteral("unused"));
  window.run_panel().set_remote({ssh, QStringLiteral("host")});
  QSignalSpy ended(&window, &MainWindow::run_ended);
  window.start_run();
  ASSERT_TRUE(ended.wait(30000));
  QFile file(log);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  EXPECT_THAT(file.readAll().toStdString(),
              testing::StartsWith("host driftscope run --model model '--prompt=In the beginning'"));
}

}  // namespace
}  // namespace driftscope::ui
