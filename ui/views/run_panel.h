// SPDX-License-Identifier: GPL-3.0-or-later
// Starts a run: model, prompt, steps, two configurations; shows the exact command.
#pragma once

#include <QWidget>

#include "kernels/base/result.h"
#include "ui/models/run_request.h"

class QCheckBox;
class QComboBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;

namespace driftscope::ui {

class KnobEditor;

class RunPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit RunPanel(QWidget* parent);
  [[nodiscard]] RunRequest request() const;
  // Every field but the edited knobs: those follow the presets.
  void set_request(const RunRequest& request);
  // Every field and the edited knobs, as of a capture; an empty output keeps the name shown.
  void show_request(const RunRequest& request);
  // Proposes the first free name, unless someone has typed another.
  void suggest_output();
  // Words before the program, as "ssh host" or "nice"; empty: none.
  [[nodiscard]] QStringList remote() const;
  void set_remote(const QStringList& words);
  void set_running(bool running);
  void set_progress(const QString& text);
  void set_error(const QString& text);
  // Fields and knobs of A and B exchanged.
  void swap_sides();
  [[nodiscard]] QString command_text() const;
  [[nodiscard]] KnobEditor& knobs() { return *m_knobs; }

 signals:
  void run_requested();
  void cancel_requested();

 private:
  void make_fields();
  void make_outcome();
  void lay_out();
  QWidget* with_button(QLineEdit* field, const QString& name, bool folder);
  void preset_changed();
  void update_command();
  QWidget* output_row();
  QLineEdit* m_model;
  QLineEdit* m_model_b;
  QPlainTextEdit* m_prompt;
  QSpinBox* m_steps;
  QComboBox* m_taps;
  QCheckBox* m_control;
  QComboBox* m_preset_a;
  QComboBox* m_preset_b;
  KnobEditor* m_knobs;
  QLineEdit* m_output;
  QCheckBox* m_replace;
  QString m_suggested;  // the last proposed name of the capture
  QLineEdit* m_remote;
  QPlainTextEdit* m_command;
  QPushButton* m_run;
  QPushButton* m_copy;
  QLabel* m_status;
  bool m_running = false;
};

}  // namespace driftscope::ui
