// SPDX-License-Identifier: GPL-3.0-or-later
// One run: the headless program as a child process, its events, progress and cancellation.
#pragma once

#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QThread>
#include <QTimer>

#include "ui/bridge/event_worker.h"
#include "ui/bridge/run_events.h"

namespace driftscope::ui {

class RunProcess final : public QObject {
  Q_OBJECT
 public:
  explicit RunProcess(QObject* parent = nullptr);
  ~RunProcess() override;

  // `arguments` as of run_arguments(); --events is added. The program is started directly, never
  // through a shell. `prefix`: words to put before it, as {"ssh", "host"} or {"nice"}; may be
  // empty. A run that is going on is stopped first. Returns the generation of everything that
  // follows.
  Generation start(const QString& program, const QStringList& arguments, const QStringList& prefix);
  // Asks the child to end cleanly (SIGINT: it closes the capture), and ends it after the grace.
  void cancel();
  [[nodiscard]] bool running() const { return m_process.state() != QProcess::NotRunning; }
  [[nodiscard]] Generation generation() const { return m_generation; }

 signals:
  void snapshot(driftscope::ui::Generation generation, driftscope::ComparisonPointer comparison);
  void progress(driftscope::ui::Generation generation, const QString& phase, qint64 done,
                qint64 total);
  void failed(driftscope::ui::Generation generation, const QString& message);
  // After the last snapshot. `capture` is empty if none was written.
  void finished(driftscope::ui::Generation generation, int exit_code, const QString& capture);

  // Towards the worker's thread.
  void begin_reading(driftscope::ui::Generation generation);
  void bytes_read(driftscope::ui::Generation generation, const QByteArray& bytes);
  void end_reading(driftscope::ui::Generation generation);
  void snapshot_taken();

 private:
  void stop_silently();
  void read_output();
  void read_messages();
  void on_exit();
  void on_drained(Generation generation);
  void on_process_error(QProcess::ProcessError error);
  [[nodiscard]] QString failure_text(bool crashed, int code) const;

  static constexpr int kGrace_ms = 5000;
  static constexpr qsizetype kMessagesKept = 4096;  // bytes of stderr, the newest
  QProcess m_process;
  QThread m_thread;
  EventWorker m_worker;
  QTimer m_grace;
  Generation m_generation = 0;
  QByteArray m_messages;
  QString m_capture;
  QStringList m_prefix;
  bool m_reported = false;  // an error event has been shown
  bool m_seen = false;      // an event has come
};

}  // namespace driftscope::ui
