// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the event stream on its own thread: lines in, snapshots out. At most a few per second,
// never more than one that the window has not shown, and never more than a fifth of the thread's
// time.
#pragma once

#include <QByteArray>
#include <QElapsedTimer>
#include <QObject>
#include <memory>

#include "analysis/report/events.h"
#include "ui/bridge/run_events.h"

namespace driftscope::ui {

class EventWorker final : public QObject {
  Q_OBJECT
 public:
  // A line longer than this is not an event: the stream is given up with an error.
  static constexpr qsizetype kLongestLine = 16 * 1024 * 1024;
  static constexpr qint64 kSnapshotInterval_ms = 120;
  EventWorker() = default;

 public slots:
  void begin(driftscope::ui::Generation generation);
  // Any piece of the stream; lines may be cut anywhere.
  void feed(driftscope::ui::Generation generation, const QByteArray& bytes);
  // The stream has ended: the last snapshot follows, then `drained`.
  void end(driftscope::ui::Generation generation);
  // The window has shown the last snapshot: it is ready for the next.
  void taken();

 signals:
  void snapshot(driftscope::ui::Generation generation, driftscope::ComparisonPointer comparison);
  void progress(driftscope::ui::Generation generation, const QString& phase, qint64 done,
                qint64 total);
  void error(driftscope::ui::Generation generation, const QString& message);
  void capture_written(driftscope::ui::Generation generation, const QString& path, int exit_code);
  void drained(driftscope::ui::Generation generation);

 private:
  void take_line(const QByteArray& line);
  void publish();
  void publish_when_due();
  Generation m_generation = 0;
  QByteArray m_rest;
  std::unique_ptr<EventReader> m_reader;
  QElapsedTimer m_since_snapshot;
  qint64 m_interval_ms = kSnapshotInterval_ms;
  bool m_dirty = false;
  bool m_on_its_way = false;  // a snapshot that the window has not shown yet
  bool m_timed = false;       // a later publish_when_due() is set
  bool m_broken = false;
};

}  // namespace driftscope::ui
