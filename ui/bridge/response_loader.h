// SPDX-License-Identifier: GPL-3.0-or-later
// Reads and compares saved answers in the background. The newest request wins; what it overtakes
// stops at the next answer, and its result is dropped.
#pragma once

#include <QObject>
#include <QStringList>
#include <QThread>
#include <atomic>

#include "kernels/base/result.h"
#include "ui/bridge/run_events.h"
#include "ui/models/response_snapshot.h"

namespace driftscope::ui {

// Whether the file is a capture: by its first bytes; by its name where it cannot be read.
[[nodiscard]] bool is_capture_file(const QString& path);
// Reads, grades and indexes the files in the calling thread. Gives up (with some error) as soon as
// `newest` is no longer `generation`. Errors: input (cannot be read), malformed, with the file.
[[nodiscard]] Result<ResponseFilesPointer> read_response_files(
    const QStringList& paths, Generation generation, const std::atomic<Generation>& newest);

class ResponseReader final : public QObject {
  Q_OBJECT
 public:
  ResponseReader(const std::atomic<Generation>& newest, const std::atomic<Generation>& newest_pair)
      : m_newest(newest), m_newest_pair(newest_pair) {}

 public slots:
  void read(driftscope::ui::Generation generation, const QStringList& paths);
  void compare(driftscope::ui::Generation generation, driftscope::ui::ResponseFilesPointer files,
               driftscope::ui::AnswerChoice choice);

 signals:
  void opened(driftscope::ui::Generation generation, driftscope::ui::ResponseFilesPointer files);
  void failed(driftscope::ui::Generation generation, const QString& message);
  void compared(driftscope::ui::Generation generation, driftscope::ui::ResponsePairPointer pair);

 private:
  const std::atomic<Generation>& m_newest;
  const std::atomic<Generation>& m_newest_pair;
};

// Every pair, and the populations: may take longer, in a thread of its own.
class ResponseSurveyor final : public QObject {
  Q_OBJECT
 public:
  explicit ResponseSurveyor(const std::atomic<Generation>& newest) : m_newest(newest) {}

 public slots:
  void survey(driftscope::ui::Generation generation, driftscope::ui::ResponseFilesPointer files);

 signals:
  void surveyed(driftscope::ui::Generation generation, driftscope::ui::PairSurveyPointer survey);
  void populated(driftscope::ui::Generation generation,
                 driftscope::ui::PopulationPointer population);

 private:
  const std::atomic<Generation>& m_newest;
};

class ResponseLoader final : public QObject {
  Q_OBJECT
 public:
  explicit ResponseLoader(QObject* parent = nullptr);
  ~ResponseLoader() override;
  // Return at once. After `load`: `opened` or `failed`, then `surveyed` where there are more than
  // two answers and `populated` where there are samples. After `compare`: `compared`.
  Generation load(const QStringList& paths);
  Generation compare(const ResponseFilesPointer& files, AnswerChoice choice);

 signals:
  void opened(driftscope::ui::ResponseFilesPointer files);
  void failed(const QString& message);
  void compared(driftscope::ui::ResponsePairPointer pair);
  void surveyed(driftscope::ui::PairSurveyPointer survey);
  void populated(driftscope::ui::PopulationPointer population);
  // To the workers:
  void read_requested(driftscope::ui::Generation generation, const QStringList& paths);
  void compare_requested(driftscope::ui::Generation generation,
                         driftscope::ui::ResponseFilesPointer files,
                         driftscope::ui::AnswerChoice choice);
  void survey_requested(driftscope::ui::Generation generation,
                        driftscope::ui::ResponseFilesPointer files);

 private:
  void take_opened(Generation generation, const ResponseFilesPointer& files);
  void connect_workers();
  void take_failed(Generation generation, const QString& message);
  ResponseFilesPointer m_open;  // the last that could be read
  bool m_settled = true;        // all is known of them
  std::atomic<Generation> m_newest{0};
  std::atomic<Generation> m_newest_pair{0};
  QThread m_reading;
  QThread m_surveying;
  ResponseReader m_reader;
  ResponseSurveyor m_surveyor;
};

}  // namespace driftscope::ui
