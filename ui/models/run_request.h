// SPDX-License-Identifier: GPL-3.0-or-later
// What the run panel asks for, as the arguments that a person would type.
#pragma once

#include <QString>
#include <QStringList>

#include "engine/config/run_config.h"
#include "kernels/base/result.h"

namespace driftscope::ui {

struct RunRequest {
  QString model;
  QString model_b;  // empty: the same checkpoint
  QString prompt;
  int steps = 64;
  QString taps = QStringLiteral("logits");  // logits, layers, all
  QString preset_a = QStringLiteral("reference-f32");
  QString preset_b = QStringLiteral("bf16-shape-dependent");
  RunConfig config_a;  // the edited configurations; flags name only what differs from the preset
  RunConfig config_b;
  bool control = true;
  QString output;
};
// "run --model … -o FILE", without the program's name and without --events. Errors (usage): no
// model, no output, unknown preset.
[[nodiscard]] Result<QStringList> run_arguments(const RunRequest& request);
// For a POSIX shell: words are quoted where they must be.
[[nodiscard]] QString shell_command(const QString& program, const QStringList& arguments);
[[nodiscard]] QString shell_quoted(const QString& word);

}  // namespace driftscope::ui
