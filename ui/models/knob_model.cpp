// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/knob_model.h"

#include <QStringList>
#include <algorithm>

namespace driftscope::ui {
namespace {

QString utf8_text(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

// The values that the editor offers; what the host does not honour is left out.
QStringList choices_of(const KnobSpec& spec) {
  if (spec.kind == KnobKind::boolean) return {QStringLiteral("true"), QStringLiteral("false")};
  QStringList names;
  for (const std::string_view choice : spec.choices) names << utf8_text(choice);
  return names;
}

QString help_of(const KnobSpec& spec) {
  QString help = QStringLiteral("%1: %2").arg(utf8_text(spec.id), utf8_text(spec.help));
  const bool number = spec.kind == KnobKind::integer || spec.kind == KnobKind::real;
  if (number && spec.maximum > spec.minimum) {
    help += QStringLiteral("\nRange: %1 … %2%3")
                .arg(spec.minimum)
                .arg(spec.maximum)
                .arg(spec.power_of_two ? QStringLiteral(", a power of two") : QString());
  }
  return help;
}

}  // namespace

KnobModel::KnobModel(QObject* parent) : QAbstractTableModel(parent) { rebuild(); }

const KnobSpec& KnobModel::spec(int row) const {
  return knob_registry()[m_rows[static_cast<std::size_t>(row)]];
}

bool KnobModel::differs(const KnobSpec& knob_spec) const {
  return get_knob(m_a, knob_spec) != get_knob(m_b, knob_spec);
}

void KnobModel::rebuild() {
  beginResetModel();
  m_rows.clear();
  for (std::size_t i = 0; i < knob_registry().size(); ++i) {
    if (!m_differences_only || differs(knob_registry()[i])) m_rows.push_back(i);
  }
  endResetModel();
}

void KnobModel::set_configs(const RunConfig& a, const RunConfig& b) {
  m_a = a;
  m_b = b;
  rebuild();
  emit edited();
}

void KnobModel::set_differences_only(bool on) {
  m_differences_only = on;
  rebuild();
}

int KnobModel::difference_count() const {
  const auto registry = knob_registry();
  return static_cast<int>(std::count_if(registry.begin(), registry.end(),
                                        [this](const KnobSpec& s) { return differs(s); }));
}

int KnobModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int KnobModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : column_total;
}

QVariant KnobModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const KnobSpec& row = spec(index.row());
  switch (role) {
    case Qt::DisplayRole:
    case Qt::EditRole:
      if (index.column() == knob) return utf8_text(row.title);
      return QString::fromStdString(get_knob(index.column() == side_a ? m_a : m_b, row));
    case Qt::ToolTipRole:
      return help_of(row);
    case Qt::AccessibleDescriptionRole:
      return help_of(row);
    case kDiffersRole:
      return differs(row);
    case kChoicesRole:
      return choices_of(row);
    default:
      return {};
  }
}

bool KnobModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || role != Qt::EditRole || index.column() == knob) return false;
  RunConfig& config = index.column() == side_a ? m_a : m_b;
  const auto done =
      set_knob(config, spec(index.row()).id, value.toString().trimmed().toStdString());
  if (!done) {
    emit rejected(QString::fromStdString(done.error().message));
    return false;
  }
  emit dataChanged(this->index(index.row(), 0), this->index(index.row(), column_total - 1));
  emit edited();
  return true;
}

Qt::ItemFlags KnobModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  return index.isValid() && index.column() != knob ? flags | Qt::ItemIsEditable : flags;
}

QVariant KnobModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case knob:
      return QStringLiteral("Knob");
    case side_a:
      return QStringLiteral("A");
    case side_b:
      return QStringLiteral("B");
    default:
      return {};
  }
}

}  // namespace driftscope::ui
