// SPDX-License-Identifier: GPL-3.0-or-later
// The program driftscope-gui itself, where it has been built: displays that are not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QFile>
#include <QImage>
#include <QProcess>
#include <QTemporaryDir>
#include <algorithm>

namespace driftscope::ui {
namespace {

struct Ended {
  int code = -1;
  std::string said;
};

// Runs the program with DISPLAY set so (null: not set), without a platform chosen for it.
Ended run_with_display(const char* display) {
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"QT_QPA_PLATFORM", "WAYLAND_DISPLAY", "DISPLAY"}) {
    environment.remove(QLatin1String(name));
  }
  if (display != nullptr) environment.insert(QStringLiteral("DISPLAY"), QLatin1String(display));
  QProcess process;
  process.setProcessEnvironment(environment);
  process.start(QStringLiteral(DRIFTSCOPE_BINARY_DIR "/app/gui/driftscope-gui"), QStringList());
  EXPECT_TRUE(process.waitForFinished(60000));
  EXPECT_EQ(process.exitStatus(), QProcess::NormalExit);
  return {process.exitCode(), process.readAllStandardError().toStdString()};
}

class Program : public testing::Test {
 protected:
  void SetUp() override {
    if (!QFile::exists(QStringLiteral(DRIFTSCOPE_BINARY_DIR "/app/gui/driftscope-gui"))) {
      GTEST_SKIP() << "needs the built program driftscope-gui";
    }
  }
};

TEST_F(Program, ADisplayThatDoesNotAnswerIsOneClearLine) {
  const Ended ended = run_with_display(":64123");  // no such server
  EXPECT_EQ(ended.code, 5);
  EXPECT_THAT(ended.said, testing::HasSubstr("the display :64123 cannot be used"));
  EXPECT_THAT(ended.said, testing::HasSubstr("driftscope export FILE.h5 --to png -o F.png"));
  EXPECT_THAT(ended.said, testing::Not(testing::HasSubstr("einstall")));
  EXPECT_EQ(std::count(ended.said.begin(), ended.said.end(), '\n'), 1);
}

TEST_F(Program, ASizeThatTheWindowDoesNotGetIsSaid) {
  QTemporaryDir folder;
  const auto said = [&](const char* size) {
    const QString path = folder.filePath(QStringLiteral("w.png"));
    QProcess process;
    process.start(
        QStringLiteral(DRIFTSCOPE_BINARY_DIR "/app/gui/driftscope-gui"),
        {QStringLiteral("--screenshot"), path, QStringLiteral("--size"), QLatin1String(size)});
    EXPECT_TRUE(process.waitForFinished(60000));
    EXPECT_EQ(process.exitCode(), 0);
    const QImage image(path);
    return std::pair{QStringLiteral("%1x%2").arg(image.width()).arg(image.height()).toStdString(),
                     process.readAllStandardError().toStdString()};
  };
  const auto [small, words] = said("200x100");
  EXPECT_NE(small, "200x100");
  EXPECT_THAT(words, testing::HasSubstr("--size 200x100; the picture is " + small));
  const auto [large, nothing] = said("1600x1000");
  EXPECT_EQ(large, "1600x1000");
  EXPECT_EQ(nothing, "");
}

TEST_F(Program, NoDisplayNamesTheCommandThatNeedsNone) {
  const Ended ended = run_with_display(nullptr);
  EXPECT_EQ(ended.code, 5);
  EXPECT_THAT(ended.said, testing::HasSubstr("driftscope export FILE.h5 --to png -o F.png"));
  EXPECT_EQ(std::count(ended.said.begin(), ended.said.end(), '\n'), 1);
}

}  // namespace
}  // namespace driftscope::ui
