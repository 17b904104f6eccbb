// SPDX-License-Identifier: GPL-3.0-or-later
// The two configuration editors, generated from the knob registry: one row per knob, a column for
// each side.
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <vector>

#include "engine/config/knob.h"
#include "engine/config/run_config.h"

namespace driftscope::ui {

class KnobModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { knob, side_a, side_b, column_total };
  static constexpr int kDiffersRole = Qt::UserRole + 2;
  static constexpr int kChoicesRole = Qt::UserRole + 3;  // QStringList; empty: free text
  explicit KnobModel(QObject* parent = nullptr);

  void set_configs(const RunConfig& a, const RunConfig& b);
  [[nodiscard]] const RunConfig& config_a() const { return m_a; }
  [[nodiscard]] const RunConfig& config_b() const { return m_b; }
  // Shows only knobs whose values differ.
  void set_differences_only(bool on);
  [[nodiscard]] int difference_count() const;

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation,
                                    int role = Qt::DisplayRole) const override;

 signals:
  void edited();
  void rejected(const QString& reason);

 private:
  [[nodiscard]] const KnobSpec& spec(int row) const;
  [[nodiscard]] bool differs(const KnobSpec& spec) const;
  void rebuild();
  RunConfig m_a;
  RunConfig m_b;
  bool m_differences_only = false;
  std::vector<std::size_t> m_rows;  // indices into the registry
};

}  // namespace driftscope::ui
