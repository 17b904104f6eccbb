// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/event_worker.h"

#include <QTimer>
#include <algorithm>
#include <type_traits>
#include <utility>

#include "ui/models/token_text.h"

namespace driftscope::ui {

void EventWorker::begin(Generation generation) {
  m_generation = generation;
  m_rest.clear();
  m_reader = std::make_unique<EventReader>();
  m_since_snapshot.invalidate();
  m_interval_ms = kSnapshotInterval_ms;
  m_dirty = false;
  m_on_its_way = false;
  m_broken = false;
}

void EventWorker::feed(Generation generation, const QByteArray& bytes) {
  if (generation != m_generation || m_broken) return;
  m_rest += bytes;
  qsizetype begin = 0;
  for (qsizetype end = m_rest.indexOf('\n'); end >= 0 && !m_broken;
       end = m_rest.indexOf('\n', begin)) {
    take_line(m_rest.mid(begin, end - begin));
    begin = end + 1;
  }
  m_rest.remove(0, begin);
  if (m_rest.size() > kLongestLine) {
    m_broken = true;
    m_rest.clear();
    emit error(m_generation, tr("The run sent a line of more than 16 MiB; its output is not an "
                                "event stream. Check DRIFTSCOPE_CLI."));
  }
  publish_when_due();
}

void EventWorker::publish_when_due() {
  if (!m_dirty || m_on_its_way) return;
  const qint64 waited = m_since_snapshot.isValid() ? m_since_snapshot.elapsed() : m_interval_ms;
  if (waited >= m_interval_ms) {
    publish();
  } else if (!m_timed) {
    m_timed = true;
    QTimer::singleShot(static_cast<int>(m_interval_ms - waited), this, [this] {
      m_timed = false;
      publish_when_due();
    });
  }
}

void EventWorker::taken() {
  m_on_its_way = false;
  publish_when_due();
}

void EventWorker::take_line(const QByteArray& line) {
  if (line.trimmed().isEmpty()) return;
  const auto event =
      m_reader->push(std::string_view(line.constData(), static_cast<std::size_t>(line.size())));
  if (!event) {
    m_broken = true;
    emit error(m_generation, escaped_text(event.error().message));
    return;
  }
  m_dirty = true;
  std::visit(
      [this](const auto& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, EventReader::Progress>) {
          emit progress(m_generation, escaped_text(what.phase), what.done, what.total);
        } else if constexpr (std::is_same_v<What, EventReader::Done>) {
          emit capture_written(m_generation, QString::fromStdString(what.capture_path),
                               what.exit_code);
        } else if constexpr (std::is_same_v<What, Error>) {
          emit error(m_generation, escaped_text(what.message));
        }
      },
      *event);
}

void EventWorker::publish() {
  m_dirty = false;
  m_since_snapshot.start();
  auto comparison = m_reader->snapshot();
  // A snapshot of a long run takes longer: then they come less often.
  m_interval_ms = std::max(kSnapshotInterval_ms, 4 * m_since_snapshot.elapsed());
  m_since_snapshot.start();
  if (!comparison) return;
  m_on_its_way = true;
  emit snapshot(m_generation, std::move(comparison));
}

void EventWorker::end(Generation generation) {
  if (generation != m_generation || !m_reader) return;
  if (!m_rest.isEmpty() && !m_broken) take_line(std::exchange(m_rest, {}));
  publish();
  emit drained(generation);
}

}  // namespace driftscope::ui
