// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/run_process.h"

#include <signal.h>

#include "ui/models/run_request.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

// The last line that says something: errors of the headless program are one line.
QString last_line(const QByteArray& messages) {
  const QList<QByteArray> lines = messages.trimmed().split('\n');
  const QByteArray& line = lines.back();
  return escaped_text(std::string_view(line.constData(), static_cast<std::size_t>(line.size())));
}

}  // namespace

RunProcess::RunProcess(QObject* parent) : QObject(parent) {
  qRegisterMetaType<ComparisonPointer>("driftscope::ComparisonPointer");
  qRegisterMetaType<Generation>("driftscope::ui::Generation");
  m_worker.moveToThread(&m_thread);
  connect(this, &RunProcess::begin_reading, &m_worker, &EventWorker::begin);
  connect(this, &RunProcess::bytes_read, &m_worker, &EventWorker::feed);
  connect(this, &RunProcess::end_reading, &m_worker, &EventWorker::end);
  connect(this, &RunProcess::snapshot_taken, &m_worker, &EventWorker::taken);
  // A stale generation stops here, whatever was queued when a newer run began.
  connect(&m_worker, &EventWorker::snapshot, this,
          [this](Generation g, const ComparisonPointer& c) {
            if (g == m_generation) m_seen = true;
            if (g == m_generation) emit snapshot(g, c);
            emit snapshot_taken();
          });
  connect(&m_worker, &EventWorker::progress, this,
          [this](Generation g, const QString& phase, qint64 done, qint64 total) {
            if (g == m_generation) m_seen = true;
            if (g == m_generation) emit progress(g, phase, done, total);
          });
  connect(&m_worker, &EventWorker::error, this, [this](Generation g, const QString& message) {
    if (g != m_generation) return;
    m_reported = true;
    emit failed(g, message);
  });
  connect(&m_worker, &EventWorker::capture_written, this,
          [this](Generation g, const QString& path, int) {
            if (g == m_generation) m_capture = path;
          });
  connect(&m_worker, &EventWorker::drained, this, &RunProcess::on_drained);
  connect(&m_process, &QProcess::readyReadStandardOutput, this, &RunProcess::read_output);
  connect(&m_process, &QProcess::readyReadStandardError, this, &RunProcess::read_messages);
  connect(&m_process, &QProcess::finished, this, &RunProcess::on_exit);
  connect(&m_process, &QProcess::errorOccurred, this, &RunProcess::on_process_error);
  m_grace.setSingleShot(true);
  m_grace.setInterval(kGrace_ms);
  connect(&m_grace, &QTimer::timeout, &m_process, &QProcess::kill);
  m_thread.start();
}

RunProcess::~RunProcess() {
  stop_silently();
  m_thread.quit();
  m_thread.wait();
}

void RunProcess::stop_silently() {
  if (!running()) return;
  const QSignalBlocker blocked(m_process);
  m_grace.stop();
  if (m_process.processId() > 0) ::kill(static_cast<pid_t>(m_process.processId()), SIGINT);
  if (!m_process.waitForFinished(2000)) {
    m_process.kill();
    m_process.waitForFinished(1000);
  }
}

Generation RunProcess::start(const QString& program, const QStringList& arguments,
                             const QStringList& prefix) {
  stop_silently();
  ++m_generation;
  m_messages.clear();
  m_capture.clear();
  m_reported = false;
  m_seen = false;
  m_prefix = prefix;
  emit begin_reading(m_generation);
  QStringList words =
      prefixed(prefix, QStringList{program} + arguments + QStringList{QStringLiteral("--events")});
  const QString first = words.takeFirst();
  m_process.start(first, words, QIODevice::ReadOnly);
  return m_generation;
}

void RunProcess::cancel() {
  if (!running()) return;
  if (m_process.processId() > 0) ::kill(static_cast<pid_t>(m_process.processId()), SIGINT);
  m_grace.start();
}

void RunProcess::read_output() { emit bytes_read(m_generation, m_process.readAllStandardOutput()); }

void RunProcess::read_messages() {
  m_messages += m_process.readAllStandardError();
  if (m_messages.size() > kMessagesKept) m_messages = m_messages.right(kMessagesKept);
}

void RunProcess::on_exit() {
  m_grace.stop();
  read_output();
  read_messages();
  emit end_reading(m_generation);
}

void RunProcess::on_drained(Generation generation) {
  if (generation != m_generation) return;
  const bool crashed = m_process.exitStatus() == QProcess::CrashExit;
  const int code = crashed ? 5 : m_process.exitCode();
  const bool bad = crashed || code == 2 || code == 4 || code == 5 || code == 6;
  const bool silent = !m_seen && code != 130;  // whatever ran, it was no run
  if ((bad || silent) && !m_reported) emit failed(generation, failure_text(crashed, code));
  emit finished(generation, code, m_capture);
}

QString RunProcess::failure_text(bool crashed, int code) const {
  const QString said = last_line(m_messages);
  if (!m_prefix.isEmpty() && !m_seen) {
    return tr("Command prefix “%1”: %2; check the prefix")
        .arg(m_prefix.join(QLatin1Char(' ')),
             said.isEmpty() ? tr("no run was started (exit code %1)").arg(code) : said);
  }
  if (!said.isEmpty()) return said;
  return crashed ? tr("The run ended unexpectedly; what it saved can be opened")
                 : tr("The run ended with exit code %1").arg(code);
}

void RunProcess::on_process_error(QProcess::ProcessError error) {
  if (error != QProcess::FailedToStart) return;
  emit failed(m_generation,
              m_prefix.isEmpty()
                  ? tr("%1 cannot be started: %2; check the path and DRIFTSCOPE_CLI")
                        .arg(m_process.program(), m_process.errorString())
                  : tr("The command prefix begins with “%1”, which cannot be started: give a "
                       "program, for example ssh host, or leave the prefix empty")
                        .arg(m_process.program()));
  emit finished(m_generation, 5, {});
}

}  // namespace driftscope::ui
