// SPDX-License-Identifier: GPL-3.0-or-later
// Immutable snapshots of what was read and compared: all that the views of answers see.
#pragma once

#include <QString>
#include <QStringList>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/responses/populations.h"
#include "analysis/responses/response_set.h"
#include "analysis/responses/sample_groups.h"
#include "ui/models/response_columns.h"

namespace driftscope::ui {

// The answers of some files. `answers` point into `files`, so it is never copied.
struct ResponseFiles {
  ResponseFiles() = default;
  ResponseFiles(const ResponseFiles&) = delete;
  ResponseFiles& operator=(const ResponseFiles&) = delete;
  QStringList paths;
  std::vector<std::vector<Response>> files;  // [paths]
  // Of all files, in their order; behind the `answered` first ones stand the entries that are
  // errors or hold nothing, as answers without a choice.
  std::vector<Answer> answers;
  std::size_t answered = 0;
  std::vector<std::size_t> file_of;  // [answers]
  QStringList names;                 // [answers]; without the folder that all share
  // The name, behind its number where there are more than two: "3 · c.json", as in the matrix.
  // An error says so behind its name.
  [[nodiscard]] QString label(std::size_t answer) const;
  [[nodiscard]] bool is_error(std::size_t answer) const;
  // One without content for an error.
  [[nodiscard]] const ResponseChoice& choice_of(std::size_t answer) const;
  std::vector<AnswerCluster> clusters;
  QStringList failures;  // entries without an answer, and what they say instead
  bool samples = false;  // see is_population
};
using ResponseFilesPointer = std::shared_ptr<const ResponseFiles>;

// Fills everything but `paths` and `files` from them.
void index_answers(ResponseFiles& files);
// Names without the longest folder that all of them begin with.
[[nodiscard]] QStringList without_common_folder(const QStringList& names);

struct AnswerChoice {
  std::size_t a = 0;
  std::size_t b = 0;
  bool operator==(const AnswerChoice&) const = default;
};
// Which two to show first: the first answer of the first file, and its partner in the second file
// (by custom_id, else by order); of one file the first two that answer one question, else its first
// two. Empty: fewer than two answers.
[[nodiscard]] std::optional<AnswerChoice> first_choice(const ResponseFiles& files);
// The pairs that two files of many answers form, by custom_id where all have one, else by order.
// Empty unless there are two files with two or more partners.
[[nodiscard]] std::vector<AnswerChoice> partners(const ResponseFiles& files);
// Whether there are more than two answers, or two partners, to show together.
[[nodiscard]] bool is_set(const ResponseFiles& files);
// How many responses are in none of the pairs.
[[nodiscard]] std::size_t unpaired(const ResponseFiles& files,
                                   const std::vector<AnswerChoice>& pairs);

// Two answers side by side.
struct ResponsePairView {
  ResponseFilesPointer files;
  AnswerChoice choice;
  ResponseComparison comparison;
  ResponseColumns columns;
  // Of the pair, then of each answer alone ("A: …"), the most severe first.
  std::vector<Finding> findings = {};
  // Their custom_ids are other questions: `comparison` says nothing but that.
  bool other_questions = false;
  // There is no B: `choice` names one answer twice, `comparison` says nothing, no column has a b.
  bool alone = false;
  [[nodiscard]] const Response& response_a() const { return *files->answers[choice.a].response; }
  [[nodiscard]] const Response& response_b() const { return *files->answers[choice.b].response; }
  [[nodiscard]] const ResponseChoice& answer_a() const { return files->choice_of(choice.a); }
  [[nodiscard]] const ResponseChoice& answer_b() const { return files->choice_of(choice.b); }
  // A side is an error: there is nothing to compare.
  [[nodiscard]] bool failed() const {
    return files->is_error(choice.a) || files->is_error(choice.b);
  }
};
// Without tokens on one side or both, the columns are pieces of the texts.
[[nodiscard]] bool neither_lists_tokens(const ResponsePairView& pair);
using ResponsePairPointer = std::shared_ptr<const ResponsePairView>;
[[nodiscard]] ResponsePairPointer view_pair(const ResponseFilesPointer& files, AnswerChoice choice);

// One answer and what can be said of it without another.
[[nodiscard]] ResponsePairPointer view_alone(const ResponseFilesPointer& files, std::size_t answer);

// What became of one pair.
struct PairOutcome {
  AnswerChoice choice;
  // Answers to other questions are not compared; nothing below is known of them.
  bool other_questions = false;
  Tier tier = Tier::inconclusive;
  std::int64_t step = -1;  // of the first divergence; -1: none, or not known by token
  std::optional<std::int64_t> byte = {};  // of the text, where they part and `step` is not known
  std::optional<ResponseCause> cause = {};
  std::optional<double> max_abs = {};  // largest logprob difference; empty: not known
};
[[nodiscard]] PairOutcome outcome_of(const ResponseFiles& files, AnswerChoice choice);

struct PairSurvey {
  ResponseFilesPointer files;
  std::size_t shown = 0;              // answers in the matrix; 0: there is none
  std::size_t total = 0;              // answers that there are
  std::size_t unpaired = 0;           // of partners: responses that have none
  bool partners_only = false;         // of two files, not everyone with everyone
  std::vector<PairOutcome> outcomes;  // i < j, by rows; else the partners in their order
  // The outcome of answers i and j of the matrix, in either order; null on the diagonal.
  [[nodiscard]] const PairOutcome* at(std::size_t i, std::size_t j) const;
};
// "not compared: the custom_ids q1 and q2 are other questions".
[[nodiscard]] QString other_questions_text(const ResponseFiles& files, AnswerChoice choice);
using PairSurveyPointer = std::shared_ptr<const PairSurvey>;
inline constexpr std::size_t kMostInMatrix = 64;

// Two files of many samples of the same prompts.
struct PopulationView {
  ResponseFilesPointer files;
  SampleSides sides;
  PopulationComparison comparison;
  std::int64_t permutations = 0;
};
using PopulationPointer = std::shared_ptr<const PopulationView>;
// Whether some prompt has two or more samples on both sides of two files, as sample_sides groups
// them.
[[nodiscard]] bool is_population(const ResponseFiles& files);

}  // namespace driftscope::ui
