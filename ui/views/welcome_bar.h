// SPDX-License-Identifier: GPL-3.0-or-later
// What to do while nothing is open: open a capture or responses, set up a run, look at the sample.
#pragma once

#include <QWidget>

namespace driftscope::ui {

class WelcomeBar final : public QWidget {
  Q_OBJECT
 public:
  // `sample`: path of a capture that comes with the program; empty: it is not offered.
  WelcomeBar(const QString& sample, QWidget* parent);

 signals:
  void open_requested();
  void responses_requested();
  void run_requested();
  void sample_requested(const QString& path);
};

}  // namespace driftscope::ui
