// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/welcome_bar.h"

#include <QHBoxLayout>
#include <QPushButton>

namespace driftscope::ui {

WelcomeBar::WelcomeBar(const QString& sample, QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("welcome_bar"));
  setAccessibleName(tr("Where to begin"));
  setAutoFillBackground(true);
  setBackgroundRole(QPalette::Base);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(10, 4, 10, 8);
  const auto add = [this, row](const QString& text, const char* name) {
    auto* button = new QPushButton(text, this);
    button->setObjectName(QLatin1String(name));
    button->setAccessibleName(text);
    row->addWidget(button);
    return button;
  };
  connect(add(tr("Open capture …"), "welcome_open"), &QPushButton::clicked, this,
          &WelcomeBar::open_requested);
  auto* responses = add(tr("Open responses …"), "welcome_responses");
  responses->setToolTip(tr("Two or more saved answers of servers (JSON, JSON Lines, SSE, HAR)"));
  connect(responses, &QPushButton::clicked, this, &WelcomeBar::responses_requested);
  connect(add(tr("New run …"), "welcome_run"), &QPushButton::clicked, this,
          &WelcomeBar::run_requested);
  if (!sample.isEmpty()) {
    auto* button = add(tr("Open sample"), "welcome_sample");
    button->setToolTip(sample);
    connect(button, &QPushButton::clicked, this, [this, sample] { emit sample_requested(sample); });
  }
  row->addStretch();
}

}  // namespace driftscope::ui
