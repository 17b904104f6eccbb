// SPDX-License-Identifier: GPL-3.0-or-later
// What the run panel asks for, as the arguments that a person would type; and what a capture asked
// for.
#pragma once

#include <QString>
#include <QStringList>

#include "analysis/compare/comparison.h"
#include "engine/config/run_config.h"
#include "kernels/base/result.h"

namespace driftscope::ui {

struct RunRequest {
  QString model;
  QString model_b;  // empty: the same checkpoint
  QString prompt;
  int steps = 64;
  QString taps = QStringLiteral("layers");  // logits, layers, all
  QString preset_a = QStringLiteral("reference-f32");
  QString preset_b = QStringLiteral("bf16-shape-dependent");
  RunConfig config_a;  // the edited configurations; flags name only what differs from the preset
  RunConfig config_b;
  bool control = true;
  QString output;
  bool replace = false;  // an existing capture file
};
// "run --model … -o FILE", without the program's name and without --events. Errors (usage): no
// model, no output, unknown preset.
[[nodiscard]] Result<QStringList> run_arguments(const RunRequest& request);
// The request that would repeat the run of this comparison, with the edited configurations; output
// is left empty. Each side names its preset, or the preset nearest to it. `capture` helps to find a
// model that was named relative to another folder; may be empty.
[[nodiscard]] RunRequest request_of(const Comparison& comparison, const QString& capture);
// "out/run.h5", "out/run-2.h5", … below `folder`: the first that does not exist, relative to it.
[[nodiscard]] QString free_capture_name(const QString& folder);

// Whether the prefix hands its words to a shell on another machine, as ssh does.
[[nodiscard]] bool runs_elsewhere(const QStringList& prefix);
// The command with its prefix, as it is started: words behind ssh are quoted for the other shell.
[[nodiscard]] QStringList prefixed(const QStringList& prefix, const QStringList& command);
// For a POSIX shell: words are quoted where they must be.
[[nodiscard]] QString shell_command(const QStringList& words);
[[nodiscard]] QString shell_quoted(const QString& word);

}  // namespace driftscope::ui
