// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/run_request.h"

#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

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

QString text_of(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

// "hf-eager-like" of the label "hf-eager-like + neighbours=7".
std::string_view base_name(std::string_view label) { return label.substr(0, label.find(" + ")); }

// The preset that a configuration came from; where its name is a file's or none, the one that
// differs least.
QString preset_of(const std::string& label, const RunConfig& config) {
  const std::string_view name = base_name(label);
  std::string_view best;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const Preset& preset : presets()) {
    if (preset.name == name) return text_of(preset.name);
    const std::size_t differences = config_difference(preset.make(), config).size();
    if (differences < fewest) {
      fewest = differences;
      best = preset.name;
    }
  }
  return text_of(best);
}

// A configuration that was not kept, or that another version wrote, is taken as its preset.
RunConfig config_of(const std::string& json_text, const std::string& name) {
  const auto json = nlohmann::ordered_json::parse(json_text, nullptr, false);
  if (!json.is_discarded() && json.is_object()) {
    if (auto config = config_from_json(json, "the capture")) return *config;
  }
  return load_config(base_name(name)).value_or(RunConfig{});
}

// A model that was named relative to the folder in which the run was started.
QString found_model(const QString& model, const QString& capture) {
  const QFileInfo named(model);
  if (model.isEmpty() || capture.isEmpty() || named.isAbsolute() || named.exists()) return model;
  QDir folder = QFileInfo(capture).absoluteDir();
  for (int level = 0; level < 4; ++level) {
    if (folder.exists(model)) return QDir::cleanPath(folder.filePath(model));
    if (!folder.cdUp()) break;
  }
  return model;
}

// The places that --taps layers keeps; any other says "all".
bool is_layer_output(const TapDrift& tap) {
  const std::string& operation = tap.spec.operation;
  return operation == "embd" || operation == "l_out" || operation == "result_norm";
}

QString taps_of(const Comparison& comparison) {
  return std::all_of(comparison.taps.begin(), comparison.taps.end(), is_layer_output)
             ? QStringLiteral("layers")
             : QStringLiteral("all");
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
  if (!request.control) arguments << QStringLiteral("--no-control");
  if (request.taps != QLatin1String("logits"))
    arguments << QStringLiteral("--taps") << request.taps;
  if (request.replace) arguments << QStringLiteral("--force");
  arguments << QStringLiteral("-o") << request.output;
  return arguments;
}

RunRequest request_of(const Comparison& comparison, const QString& capture) {
  RunRequest request;
  if (comparison.imported_a || comparison.imported_b) {
    // Another program answered: no model and no configuration of ours repeats that.
    request.prompt = text_of(comparison.prompt_text);
    return request;
  }
  request.model = found_model(text_of(comparison.model_a), capture);
  if (comparison.model_b != comparison.model_a) {
    request.model_b = found_model(text_of(comparison.model_b), capture);
  }
  request.prompt = text_of(comparison.prompt_text);
  if (comparison.planned_steps > 0) {
    request.steps = static_cast<int>(std::min<std::int64_t>(comparison.planned_steps, 1'000'000));
  }
  request.taps = taps_of(comparison);
  request.control = comparison.control.present;
  request.config_a = config_of(comparison.config_a_json, comparison.config_a_name);
  request.config_b = config_of(comparison.config_b_json, comparison.config_b_name);
  request.preset_a = preset_of(comparison.config_a_name, request.config_a);
  request.preset_b = preset_of(comparison.config_b_name, request.config_b);
  return request;
}

QString free_capture_name(const QString& folder) {
  const QDir base(folder);
  QString name = QStringLiteral("out/run.h5");
  for (int i = 2; base.exists(name) || base.exists(name + QStringLiteral(".part")); ++i) {
    name = QStringLiteral("out/run-%1.h5").arg(i);
  }
  return name;
}

bool runs_elsewhere(const QStringList& prefix) {
  static const QStringList shells{QStringLiteral("ssh"), QStringLiteral("autossh"),
                                  QStringLiteral("rsh")};
  return std::any_of(prefix.begin(), prefix.end(), [](const QString& word) {
    return shells.contains(word.section(QLatin1Char('/'), -1));
  });
}

QStringList prefixed(const QStringList& prefix, const QStringList& command) {
  if (!runs_elsewhere(prefix)) return prefix + command;
  QStringList words = prefix;
  for (const QString& word : command) words << shell_quoted(word);
  return words;
}

QString shell_quoted(const QString& word) {
  static const QRegularExpression safe(QStringLiteral("\\A[A-Za-z0-9_./:=,@%+-]+\\z"));
  if (safe.match(word).hasMatch()) return word;
  QString quoted = word;
  quoted.replace(QLatin1Char('\''), QStringLiteral("'\\''"));
  return QLatin1Char('\'') + quoted + QLatin1Char('\'');
}

QString shell_command(const QStringList& words) {
  QStringList quoted;
  for (const QString& word : words) quoted << shell_quoted(word);
  return quoted.join(QLatin1Char(' '));
}

}  // namespace driftscope::ui
