// SPDX-License-Identifier: GPL-3.0-or-later
// Loads captures in the background, in the one thread that does HDF5. The newest request wins.
#pragma once

#include <QObject>
#include <QString>
#include <QThread>
#include <atomic>

#include "ui/bridge/run_events.h"

namespace driftscope::ui {

class CaptureLoader;

class LoadWorker final : public QObject {
  Q_OBJECT
 public:
  explicit LoadWorker(const std::atomic<Generation>& newest) : m_newest(newest) {}

 public slots:
  void load(driftscope::ui::Generation generation, const QString& path);

 signals:
  void loaded(driftscope::ui::Generation generation, driftscope::ComparisonPointer comparison);
  void failed(driftscope::ui::Generation generation, const QString& message);

 private:
  const std::atomic<Generation>& m_newest;
};

class CaptureLoader final : public QObject {
  Q_OBJECT
 public:
  explicit CaptureLoader(QObject* parent = nullptr);
  ~CaptureLoader() override;
  // Returns at once; `loaded` or `failed` follows, unless a newer request overtakes this one.
  Generation load(const QString& path);
  // Drops whatever is on its way.
  void forget() { ++m_newest; }

 signals:
  void loaded(driftscope::ComparisonPointer comparison);
  void failed(const QString& message);
  void requested(driftscope::ui::Generation generation, const QString& path);

 private:
  std::atomic<Generation> m_newest{0};
  QThread m_thread;
  LoadWorker m_worker;
};

}  // namespace driftscope::ui
