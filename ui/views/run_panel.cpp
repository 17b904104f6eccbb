// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/run_panel.h"

#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>

#include "engine/config/knob.h"
#include "ui/theme/theme.h"
#include "ui/views/knob_editor.h"

namespace driftscope::ui {
namespace {

QComboBox* preset_box(QWidget* parent, const QString& name) {
  auto* box = new QComboBox(parent);
  box->setAccessibleName(name);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  for (const Preset& preset : presets()) {
    box->addItem(QString::fromUtf8(preset.name.data(), static_cast<qsizetype>(preset.name.size())));
    box->setItemData(
        box->count() - 1,
        QString::fromUtf8(preset.help.data(), static_cast<qsizetype>(preset.help.size())),
        Qt::ToolTipRole);
  }
  return box;
}

}  // namespace

RunPanel::RunPanel(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("run_panel"));
  setAccessibleName(tr("Start a run"));
  make_fields();
  lay_out();
  connect(m_preset_a, &QComboBox::currentTextChanged, this, &RunPanel::preset_changed);
  connect(m_preset_b, &QComboBox::currentTextChanged, this, &RunPanel::preset_changed);
  for (QLineEdit* field : {m_model, m_model_b, m_output, m_remote}) {
    connect(field, &QLineEdit::textChanged, this, &RunPanel::update_command);
  }
  connect(m_prompt, &QPlainTextEdit::textChanged, this, &RunPanel::update_command);
  connect(m_steps, &QSpinBox::valueChanged, this, &RunPanel::update_command);
  connect(m_taps, &QComboBox::currentTextChanged, this, &RunPanel::update_command);
  connect(m_control, &QCheckBox::toggled, this, &RunPanel::update_command);
  connect(m_replace, &QCheckBox::toggled, this, &RunPanel::update_command);
  connect(&m_knobs->model(), &KnobModel::edited, this, &RunPanel::update_command);
  connect(m_copy, &QPushButton::clicked, this,
          [this] { QApplication::clipboard()->setText(command_text()); });
  connect(m_run, &QPushButton::clicked, this, [this] {
    if (m_running) {
      emit cancel_requested();
    } else {
      emit run_requested();
    }
  });
  set_request(RunRequest{});
  preset_changed();
  suggest_output();
}

void RunPanel::make_fields() {
  const auto line = [this](const QString& name, const QString& hint) {
    auto* field = new QLineEdit(this);
    field->setAccessibleName(name);
    field->setPlaceholderText(hint);
    return field;
  };
  m_model = line(tr("Model"), tr("folder with config.json"));
  m_model_b = line(tr("Model of B"), tr("the same"));
  m_output = line(tr("Capture file"), tr("where to save the run"));
  m_replace = new QCheckBox(tr("Replace"), this);
  m_replace->setAccessibleName(tr("Replace an existing capture file"));
  m_replace->setToolTip(tr("Replace the capture file if it exists (--force)"));
  m_remote = line(tr("Command prefix"), tr("none; or for example: ssh host"));
  m_remote->setToolTip(
      tr("Words put before the command, for example “ssh host” or “nice”. Behind ssh the command "
         "runs on that machine: it needs driftscope in its PATH, and paths are that machine's."));
  m_prompt = new QPlainTextEdit(this);
  m_prompt->setAccessibleName(tr("Prompt"));
  m_prompt->setPlaceholderText(tr("Text to continue"));
  m_prompt->setTabChangesFocus(true);
  m_prompt->setFixedHeight(58);
  m_steps = new QSpinBox(this);
  m_steps->setAccessibleName(tr("Steps"));
  m_steps->setRange(1, 1000000);
  m_taps = new QComboBox(this);
  m_taps->setAccessibleName(tr("What to record"));
  m_taps->addItems({QStringLiteral("logits"), QStringLiteral("layers"), QStringLiteral("all")});
  m_control = new QCheckBox(tr("control"), this);
  m_control->setToolTip(tr("Run A a second time, to see that A repeats itself"));
  m_control->setAccessibleName(tr("Run A a second time as control"));
  m_preset_a = preset_box(this, tr("Preset of A"));
  m_preset_b = preset_box(this, tr("Preset of B"));
  m_knobs = new KnobEditor(this);
  make_outcome();
}

void RunPanel::make_outcome() {
  m_command = new QPlainTextEdit(this);
  m_command->setAccessibleName(tr("Command"));
  m_command->setReadOnly(true);
  m_command->setFont(monospace_font(8.5));
  m_command->setFixedHeight(64);
  m_run = new QPushButton(tr("Run"), this);
  m_run->setAccessibleName(tr("Run or stop"));
  m_copy = new QPushButton(tr("Copy as command"), this);
  m_copy->setAccessibleName(tr("Copy as command"));
  m_status = new QLabel(this);
  m_status->setAccessibleName(tr("State of the run"));
  m_status->setWordWrap(true);
  m_status->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  // Always as high as a message of three lines: one that appears moves nothing under the mouse.
  m_status->setFixedHeight(3 * m_status->fontMetrics().lineSpacing() + 2);
}

QWidget* RunPanel::output_row() {
  QWidget* row = with_button(m_output, tr("Choose the capture file"), false);
  row->layout()->addWidget(m_replace);
  return row;
}

QWidget* RunPanel::with_button(QLineEdit* field, const QString& name, bool folder) {
  auto* holder = new QWidget(this);
  auto* row = new QHBoxLayout(holder);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(2);
  auto* button = new QToolButton(holder);
  button->setText(QStringLiteral("…"));
  button->setAccessibleName(name);
  row->addWidget(field);
  row->addWidget(button);
  connect(button, &QToolButton::clicked, this, [this, field, name, folder] {
    const QString chosen =
        folder ? QFileDialog::getExistingDirectory(this, name, field->text())
               : QFileDialog::getSaveFileName(this, name, field->text(), tr("Captures (*.h5)"));
    if (chosen.isEmpty()) return;
    field->setText(chosen);
    // The dialog has asked whether an existing file may be replaced.
    if (!folder) m_replace->setChecked(QFileInfo::exists(chosen));
  });
  return holder;
}

void RunPanel::lay_out() {
  auto* form = new QFormLayout;
  form->setContentsMargins(0, 0, 0, 0);
  form->setVerticalSpacing(4);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->addRow(tr("&Model"), with_button(m_model, tr("Choose the model"), true));
  form->addRow(tr("Model of B"), with_button(m_model_b, tr("Choose the model of B"), true));
  form->addRow(tr("&Prompt"), m_prompt);
  auto* amounts = new QHBoxLayout;
  amounts->setSpacing(8);
  amounts->addWidget(m_steps);
  amounts->addWidget(new QLabel(tr("record"), this));
  amounts->addWidget(m_taps);
  amounts->addWidget(m_control);
  amounts->addStretch();
  form->addRow(tr("Steps"), amounts);
  form->addRow(tr("A"), m_preset_a);
  form->addRow(tr("B"), m_preset_b);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(m_run);
  buttons->addWidget(m_copy);
  buttons->addStretch();
  auto* ends = new QFormLayout;
  ends->setContentsMargins(0, 0, 0, 0);
  ends->setVerticalSpacing(4);
  ends->addRow(tr("Save &as"), output_row());
  ends->addRow(tr("Command prefix"), m_remote);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 6, 8, 6);
  layout->setSpacing(5);
  layout->addLayout(form);
  layout->addWidget(m_knobs, 1);
  layout->addLayout(ends);
  layout->addWidget(m_command);
  layout->addLayout(buttons);
  layout->addWidget(m_status);
}

void RunPanel::preset_changed() {
  const auto config_of = [](const QComboBox* box) {
    return load_config(box->currentText().toStdString()).value_or(RunConfig{});
  };
  m_knobs->model().set_configs(config_of(m_preset_a), config_of(m_preset_b));
}

RunRequest RunPanel::request() const {
  return {.model = m_model->text(),
          .model_b = m_model_b->text(),
          .prompt = m_prompt->toPlainText(),
          .steps = m_steps->value(),
          .taps = m_taps->currentText(),
          .preset_a = m_preset_a->currentText(),
          .preset_b = m_preset_b->currentText(),
          .config_a = m_knobs->model().config_a(),
          .config_b = m_knobs->model().config_b(),
          .control = m_control->isChecked(),
          .output = m_output->text(),
          .replace = m_replace->isChecked()};
}

void RunPanel::show_request(const RunRequest& request) {
  RunRequest shown = request;
  if (shown.output.isEmpty()) shown.output = m_output->text();
  set_request(shown);
  m_knobs->model().set_configs(request.config_a, request.config_b);
  suggest_output();
}

void RunPanel::suggest_output() {
  if (!m_output->text().isEmpty() && m_output->text() != m_suggested) return;
  m_suggested = free_capture_name(QDir::currentPath());
  m_output->setText(m_suggested);
}

void RunPanel::set_request(const RunRequest& request) {
  m_model->setText(request.model);
  m_model_b->setText(request.model_b);
  m_prompt->setPlainText(request.prompt);
  m_steps->setValue(request.steps);
  m_taps->setCurrentText(request.taps);
  m_control->setChecked(request.control);
  m_preset_a->setCurrentText(request.preset_a);
  m_preset_b->setCurrentText(request.preset_b);
  m_output->setText(request.output);
  m_replace->setChecked(request.replace);
}

QStringList RunPanel::remote() const {
  return m_remote->text().split(QLatin1Char(' '), Qt::SkipEmptyParts);
}
void RunPanel::set_remote(const QStringList& words) {
  m_remote->setText(words.join(QLatin1Char(' ')));
}

QString RunPanel::command_text() const {
  const auto arguments = run_arguments(request());
  if (!arguments) return QString::fromStdString(arguments.error().message);
  return shell_command(prefixed(remote(), QStringList{QStringLiteral("driftscope")} + *arguments));
}

void RunPanel::update_command() {
  const auto arguments = run_arguments(request());
  m_command->setPlainText(command_text());
  m_copy->setEnabled(arguments.has_value());
  m_run->setEnabled(m_running || arguments.has_value());
}

void RunPanel::set_running(bool running) {
  m_running = running;
  m_run->setText(running ? tr("Stop") : tr("Run"));
  if (running) set_progress(tr("Starting …"));
  update_command();
}

void RunPanel::set_progress(const QString& text) {
  m_status->setStyleSheet({});
  m_status->setText(text);
  m_status->setToolTip(text);
}

void RunPanel::set_error(const QString& text) {
  m_status->setStyleSheet(QStringLiteral("color:%1").arg(theme_of(palette()).divergence.name()));
  m_status->setText(text);
  m_status->setToolTip(text);
}

void RunPanel::swap_sides() {
  const RunRequest old = request();
  const QString preset_a = m_preset_a->currentText();
  if (!m_model_b->text().isEmpty()) {
    m_model->setText(old.model_b);
    m_model_b->setText(old.model);
  }
  m_preset_a->setCurrentText(m_preset_b->currentText());
  m_preset_b->setCurrentText(preset_a);
  m_knobs->model().set_configs(old.config_b, old.config_a);
}

}  // namespace driftscope::ui
