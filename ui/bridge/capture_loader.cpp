// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/capture_loader.h"

#include "analysis/capture/capture.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {

void LoadWorker::load(Generation generation, const QString& path) {
  if (generation != m_newest) return;  // overtaken while it waited
  const auto reader = CaptureReader::open(path.toStdString());
  if (!reader) {
    emit failed(generation, escaped_text(reader.error().message));
    return;
  }
  auto comparison = compare_capture(**reader, ComparePolicy{});
  if (!comparison) {
    emit failed(generation, escaped_text(comparison.error().message));
    return;
  }
  emit loaded(generation, std::move(*comparison));
}

CaptureLoader::CaptureLoader(QObject* parent) : QObject(parent), m_worker(m_newest) {
  qRegisterMetaType<ComparisonPointer>("driftscope::ComparisonPointer");
  qRegisterMetaType<Generation>("driftscope::ui::Generation");
  m_worker.moveToThread(&m_thread);
  connect(this, &CaptureLoader::requested, &m_worker, &LoadWorker::load);
  connect(&m_worker, &LoadWorker::loaded, this, [this](Generation g, const ComparisonPointer& c) {
    if (g == m_newest) emit loaded(c);
  });
  connect(&m_worker, &LoadWorker::failed, this, [this](Generation g, const QString& message) {
    if (g == m_newest) emit failed(message);
  });
  m_thread.start();
}

CaptureLoader::~CaptureLoader() {
  ++m_newest;
  m_thread.quit();
  m_thread.wait();
}

Generation CaptureLoader::load(const QString& path) {
  const Generation generation = ++m_newest;
  emit requested(generation, path);
  return generation;
}

}  // namespace driftscope::ui
