// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/response_snapshot.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "analysis/responses/response_lint.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

bool all_have_custom_ids(const std::vector<Response>& responses) {
  return !responses.empty() &&
         std::all_of(responses.begin(), responses.end(), [](const Response& r) {
           return !r.custom_id.empty() || r.format == "unreadable";
         });
}

bool have_samples(const ResponseFiles& files) {
  if (files.files.size() != 2) return false;
  for (std::size_t file = 0; file < 2; ++file) {
    std::size_t count = 0;
    for (const Response& response : files.files[file]) count += response.choices.size();
    if (count < 2) return false;
  }
  const SampleSides sides = sample_sides(files.files[0], files.files[1]);
  return std::any_of(sides.a.begin(), sides.a.end(), [&](const SampleGroup& a) {
    return a.sequences.size() >= 2 &&
           std::any_of(sides.b.begin(), sides.b.end(), [&](const SampleGroup& b) {
             return b.prompt == a.prompt && b.sequences.size() >= 2;
           });
  });
}

std::string failure_of(const Response& response) {
  std::string text = response.source + ": ";
  text += response.error.empty() ? "holds no answer" : "is an error, not an answer: ";
  return text + response.error;
}

// Where an answer stands in its file: by custom_id or by number, and which choice it is. The same
// key twice gets a number, as on the command line.
using AnswerKey = std::pair<std::string, std::int64_t>;
std::vector<AnswerKey> keys_of(const ResponseFiles& files, std::size_t file, bool by_id) {
  std::map<std::string, int> seen;
  std::map<const Response*, std::string> key_of;
  const auto& responses = files.files[file];
  for (std::size_t i = 0; i < responses.size(); ++i) {
    std::string key = by_id ? responses[i].custom_id : std::to_string(i);
    if (key.empty()) key = responses[i].source;
    if (const int count = ++seen[key]; count > 1) key += "#" + std::to_string(count);
    key_of.emplace(&responses[i], std::move(key));
  }
  std::vector<AnswerKey> keys;
  for (std::size_t i = 0; i < files.answers.size(); ++i) {
    if (files.file_of[i] != file) continue;
    const Answer& answer = files.answers[i];
    keys.emplace_back(key_of.at(answer.response), files.choice_of(i).index);
  }
  return keys;
}

std::vector<std::size_t> answers_in(const ResponseFiles& files, std::size_t file) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < files.answers.size(); ++i) {
    if (files.file_of[i] == file) list.push_back(i);
  }
  return list;
}

std::vector<AnswerChoice> joined_answers(const ResponseFiles& files) {
  if (files.files.size() != 2) return {};
  const bool by_id = all_have_custom_ids(files.files[0]) && all_have_custom_ids(files.files[1]);
  const auto left = answers_in(files, 0);
  const auto right = answers_in(files, 1);
  const auto left_keys = keys_of(files, 0, by_id);
  const auto right_keys = keys_of(files, 1, by_id);
  std::map<AnswerKey, std::size_t> place;
  for (std::size_t i = 0; i < right.size(); ++i) place.emplace(right_keys[i], right[i]);
  std::vector<AnswerChoice> pairs;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto found = place.find(left_keys[i]);
    if (found != place.end()) pairs.push_back({left[i], found->second});
  }
  return pairs;
}

bool other_questions(const ResponseFiles& files, AnswerChoice choice) {
  return answer_other_questions(*files.answers[choice.a].response,
                                *files.answers[choice.b].response);
}

ResponseComparison nothing_compared(const Response& a, const Response& b, std::string reason) {
  ResponseComparison comparison;
  comparison.source_a = a.source;
  comparison.source_b = b.source;
  comparison.verdict = std::move(reason);
  return comparison;
}

// Says what the command says; the columns are those of the side that answered.
void show_failed(ResponsePairView& view) {
  const Answer& a = view.files->answers[view.choice.a];
  const Answer& b = view.files->answers[view.choice.b];
  PairedSides sides;
  pair_choices({}, *a.response, *b.response, sides);
  view.comparison = std::move(sides.pairs.front().comparison);
  if (!view.files->is_error(view.choice.a)) {
    view.columns = columns_of_one(*a.response, a.choice);
  } else if (!view.files->is_error(view.choice.b)) {
    view.columns = columns_of_one(*b.response, b.choice);
    std::swap(view.columns.steps_a, view.columns.steps_b);
    for (ResponseColumn& column : view.columns.columns) std::swap(column.a, column.b);
  }
}

}  // namespace

QString other_questions_text(const ResponseFiles& files, AnswerChoice choice) {
  return QStringLiteral("not compared: the custom_ids %1 and %2 are other questions")
      .arg(escaped_text(files.answers[choice.a].response->custom_id),
           escaped_text(files.answers[choice.b].response->custom_id));
}

QStringList without_common_folder(const QStringList& names) {
  if (names.isEmpty()) return {};
  qsizetype shared = names.front().lastIndexOf(QLatin1Char('/')) + 1;
  for (const QString& name : names) {
    while (shared > 0 && !name.startsWith(names.front().left(shared))) {
      shared = names.front().left(shared - 1).lastIndexOf(QLatin1Char('/')) + 1;
    }
  }
  QStringList result;
  for (const QString& name : names) result << name.mid(shared);
  return result;
}

QString ResponseFiles::label(std::size_t answer) const {
  const QString name = names.value(static_cast<qsizetype>(answer));
  const QString said = is_error(answer) ? name + QStringLiteral(" (error)") : name;
  return answers.size() > 2 ? QStringLiteral("%1 · %2").arg(answer + 1).arg(said) : said;
}

bool ResponseFiles::is_error(std::size_t answer) const {
  const Response* response = answers[answer].response;
  return response != nullptr && response->choices.empty();
}

const ResponseChoice& ResponseFiles::choice_of(std::size_t answer) const {
  static const ResponseChoice none;
  return is_error(answer) ? none : answers[answer].response->choices[answers[answer].choice];
}

void index_answers(ResponseFiles& files) {
  QStringList names, failed_names;
  std::vector<Answer> failed;
  std::vector<std::size_t> failed_in;
  for (std::size_t file = 0; file < files.files.size(); ++file) {
    for (const Response& response : files.files[file]) {
      if (response.choices.empty()) {
        files.failures << escaped_text(failure_of(response));
        failed.push_back({&response, 0});
        failed_in.push_back(file);
        failed_names << escaped_text(response.source);
      }
    }
    for (const Answer& answer : answers_of(files.files[file])) {
      files.answers.push_back(answer);
      files.file_of.push_back(file);
      names << escaped_text(answer.name());
    }
  }
  files.answered = files.answers.size();
  files.clusters = cluster_answers(files.answers);
  files.answers.insert(files.answers.end(), failed.begin(), failed.end());
  files.file_of.insert(files.file_of.end(), failed_in.begin(), failed_in.end());
  files.names = without_common_folder(names + failed_names);
  files.samples = have_samples(files);
}

std::optional<AnswerChoice> first_choice(const ResponseFiles& files) {
  if (files.answers.size() < 2) return std::nullopt;
  const auto joined = joined_answers(files);
  if (!joined.empty()) return joined.front();
  for (std::size_t i = 1; i < files.answers.size(); ++i) {
    if (files.file_of[i] != files.file_of[0] && !other_questions(files, {0, i}))
      return AnswerChoice{0, i};
  }
  const std::size_t searched = std::min(files.answers.size(), kMostInMatrix);
  for (std::size_t i = 0; i < searched; ++i) {
    for (std::size_t j = i + 1; j < searched; ++j) {
      if (!other_questions(files, {i, j})) return AnswerChoice{i, j};
    }
  }
  return AnswerChoice{0, 1};
}

std::vector<AnswerChoice> partners(const ResponseFiles& files) {
  auto pairs = joined_answers(files);
  if (pairs.size() < 2) return {};
  return pairs;
}

bool is_set(const ResponseFiles& files) { return files.answered > 2 || !partners(files).empty(); }

std::size_t unpaired(const ResponseFiles& files, const std::vector<AnswerChoice>& pairs) {
  std::set<const Response*> paired;
  for (const AnswerChoice pair : pairs) {
    paired.insert(files.answers[pair.a].response);
    paired.insert(files.answers[pair.b].response);
  }
  std::size_t responses = 0;
  for (const auto& file : files.files) responses += file.size();
  return responses - paired.size();
}

ResponsePairPointer view_pair(const ResponseFilesPointer& files, AnswerChoice choice) {
  const Answer& a = files->answers[choice.a];
  const Answer& b = files->answers[choice.b];
  auto view = std::make_shared<ResponsePairView>();
  view->files = files;
  view->choice = choice;
  view->other_questions = other_questions(*files, choice);
  if (view->failed()) {
    show_failed(*view);
  } else {
    view->comparison = compare_responses(*a.response, a.choice, *b.response, b.choice);
    view->columns =
        response_columns(*a.response, a.choice, *b.response, b.choice, view->comparison);
  }
  if (view->other_questions) {
    view->comparison = nothing_compared(*a.response, *b.response,
                                        other_questions_text(*files, choice).toStdString());
  }
  view->findings = view->comparison.findings;
  for (Finding& finding : findings_of_sides(*a.response, *b.response))
    view->findings.push_back(std::move(finding));
  std::stable_sort(view->findings.begin(), view->findings.end(),
                   [](const Finding& x, const Finding& y) { return x.severity > y.severity; });
  return view;
}

bool neither_lists_tokens(const ResponsePairView& pair) {
  return pair.answer_a().content.steps.empty() && pair.answer_b().content.steps.empty();
}

ResponsePairPointer view_alone(const ResponseFilesPointer& files, std::size_t answer) {
  const Answer& shown = files->answers[answer];
  auto view = std::make_shared<ResponsePairView>();
  view->files = files;
  view->choice = {answer, answer};
  view->alone = true;
  view->columns = columns_of_one(*shown.response, shown.choice);
  view->findings = lint_response(*shown.response);
  return view;
}

PairOutcome outcome_of(const ResponseFiles& files, AnswerChoice choice) {
  const Answer& a = files.answers[choice.a];
  const Answer& b = files.answers[choice.b];
  if (other_questions(files, choice)) return {.choice = choice, .other_questions = true};
  if (files.is_error(choice.a) || files.is_error(choice.b)) return {.choice = choice};
  const ResponseComparison c = compare_responses(*a.response, a.choice, *b.response, b.choice);
  PairOutcome outcome{.choice = choice, .tier = c.tier};
  if (c.divergence) {
    outcome.step = c.divergence->step;
    if (outcome.step < 0) outcome.byte = c.divergence->byte;
    outcome.cause = c.divergence->cause;
  }
  if (c.drift.count > 0) outcome.max_abs = c.drift.max_abs;
  return outcome;
}

const PairOutcome* PairSurvey::at(std::size_t i, std::size_t j) const {
  if (partners_only || i == j || i >= shown || j >= shown) return nullptr;
  if (i > j) std::swap(i, j);
  // Row i begins behind the rows before it, of shown - 1, shown - 2, … pairs.
  const std::size_t place = i * shown - i * (i + 1) / 2 + (j - i - 1);
  return place < outcomes.size() ? &outcomes[place] : nullptr;
}

bool is_population(const ResponseFiles& files) { return files.samples; }

}  // namespace driftscope::ui
