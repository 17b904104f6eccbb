// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/run_request.h"

#include <QRegularExpression>

#include "engine/config/knob.h"

namespace driftscope::ui {
namespace {

Result<void> add_side(const QString& side, const QString& preset, const RunConfig& edited,
                      QStringList& arguments) {
  const auto base = load_config(preset.toStdString());
  if (!base) return tl::unexpected(base.error());
  arguments << QStringLiteral("--%1").arg(side) << preset;
  for (const KnobDifference& difference : config_difference(*base, edited)) {
    arguments << QStringLiteral("--set-%1").arg(side)
              << QString::fromStdString(difference.id + "=" + difference.b);
  }
  return {};
}

}  // namespace

Result<QStringList> run_arguments(const RunRequest& request) {
  if (request.model.isEmpty()) {
    return fail(ErrorKind::usage, "No model is chosen: choose a checkpoint folder");
  }
  if (request.prompt.isEmpty()) {
    return fail(ErrorKind::usage, "The prompt is empty: type the text to continue");
  }
  if (request.output.isEmpty()) {
    return fail(ErrorKind::usage, "No capture file is named: choose where to save the run");
  }
  QStringList arguments{QStringLiteral("run"), QStringLiteral("--model"), request.model};
  if (!request.model_b.isEmpty()) arguments << QStringLiteral("--model-b") << request.model_b;
  // One word, so that a prompt that begins with a dash is not taken for a flag.
  arguments << QStringLiteral("--prompt=") + request.prompt;
  if (const auto added =
          add_side(QStringLiteral("a"), request.preset_a, request.config_a, arguments);
      !added) {
    return tl::unexpected(added.error());
  }
  if (const auto added =
          add_side(QStringLiteral("b"), request.preset_b, request.config_b, arguments);
      !added) {
    return tl::unexpected(added.error());
  }
  arguments << QStringLiteral("--steps") << QString::number(request.steps);
  if (request.control) arguments << QStringLiteral("--control");
  if (request.taps != QLatin1String("logits"))
    arguments << QStringLiteral("--taps") << request.taps;
  arguments << QStringLiteral("-o") << request.output;
  return arguments;
}

QString shell_quoted(const QString& word) {
  static const QRegularExpression safe(QStringLiteral("\\A[A-Za-z0-9_./:=,@%+-]+\\z"));
  if (safe.match(word).hasMatch()) return word;
  QString quoted = word;
  quoted.replace(QLatin1Char('\''), QStringLiteral("'\\''"));
  return QLatin1Char('\'') + quoted + QLatin1Char('\'');
}

QString shell_command(const QString& program, const QStringList& arguments) {
  QStringList words{shell_quoted(program)};
  for (const QString& argument : arguments) words << shell_quoted(argument);
  return words.join(QLatin1Char(' '));
}

}  // namespace driftscope::ui
