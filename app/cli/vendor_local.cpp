// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_local.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/responses/answer_copies.h"
#include "analysis/responses/local_ranking.h"
#include "analysis/responses/local_sides.h"
#include "app/cli/interrupt.h"
#include "app/cli/local_library.h"
#include "app/cli/prompt_notes.h"
#include "app/cli/vendor_tokens.h"
#include "engine/config/knob.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

using Json = nlohmann::ordered_json;

// Rows of all answers are held for one configuration at a time.
constexpr std::size_t kMostRowBytes = std::size_t{1} << 30U;

struct Sequence {
  std::string name;
  Prompt prompt;  // its ids, then the answer's
  std::int64_t prompt_length = 0;
  MappedAnswer answer;
  std::string prompt_from;
  // A prompt, each token of which but the first is taken as an answer to those before it: the rows
  // are those of the pass that puts it in.
  bool is_prompt = false;
};

class RowSink final : public TraceSink {
 public:
  RowSink(CandidateBuilder& builder, std::int64_t rows) : m_builder(builder), m_rows(rows) {}
  [[nodiscard]] Result<void> accept(const StepRecord& record) override {
    if (record.step < m_rows) m_builder.add_row(record.logits);
    return {};
  }

 private:
  CandidateBuilder& m_builder;
  std::int64_t m_rows;
};

// The answers of one file against every configuration.
class LocalComparison {
 public:
  LocalComparison(const LocalOptions& options, const LoadedModel& model,
                  const std::vector<LibraryEntry>& library)
      : m_options(options), m_model(model), m_library(library) {}

  // `label`: in front of the progress of a file among several. Errors: inconclusive, where no
  // answer can be given to the model; the others of rank_locally().
  Result<void> run(const std::vector<Response>& responses, const std::string& label,
                   const InterruptGuard& interrupt, ProgressLine& progress) {
    if (auto read = read_answers(responses); !read) return read;
    for (std::size_t i = 0; i < m_library.size(); ++i) {
      auto candidate = score(m_library[i], interrupt, [&](std::int64_t done, std::int64_t total) {
        progress.update(
            fmt::format("{}{} ({} of {})", label, m_library[i].name, i + 1, m_library.size()), done,
            total);
      });
      if (!candidate) return tl::unexpected(candidate.error());
      m_side.candidates.push_back(std::move(*candidate));
    }
    progress.clear();
    const bool none = std::none_of(m_side.candidates.begin(), m_side.candidates.end(),
                                   [](const LocalCandidate& c) { return c.problem.empty(); });
    if (none) {
      return fail(ErrorKind::engine,
                  fmt::format("none of the configurations can run; the first: {}",
                              m_side.candidates.front().problem));
    }
    m_side.ranking = rank_candidates(m_evidence, m_side.candidates);
    return {};
  }

  // Without a ranking: why there is none.
  void note_unobservable(const Error& error) { m_side.ranking.sentence = error.message; }
  void set_name(std::string name) { m_side.name = std::move(name); }
  [[nodiscard]] const LocalSide& side() const { return m_side; }

  [[nodiscard]] Json json() const {
    Json answers = Json::array();
    for (const Sequence& sequence : m_sequences) {
      answers.push_back({{"answer", escape_for_display(sequence.name)},
                         {"prompt_tokens", sequence.prompt_length},
                         {"prompt_from", sequence.prompt_from},
                         {"tokens", sequence.answer.ids.size()},
                         {"tokens_by", std::string(name_of(sequence.answer.mapping))},
                         {"is_prompt", sequence.is_prompt}});
    }
    Json out = ranking_json(m_side.ranking, m_side.candidates);
    out["answers"] = answers;
    out["copies_left_out"] = m_copies.count();
    out["notes"] = notes();
    return out;
  }
  [[nodiscard]] std::string text() const {
    std::string out = ranking_text(m_side.ranking, m_side.candidates);
    for (const std::string& note : notes()) out += fmt::format("  note: {}\n", note);
    return out;
  }

 private:
  [[nodiscard]] std::int64_t vocabulary() const {
    return m_model.checkpoint->description().vocabulary;
  }

  // The prompt that was given, or the one that the answer repeats.
  Result<Prompt> prompt_of(const Response& response, std::string& from) {
    PromptOptions options = m_options.prompt;
    const bool given = options.text || options.file || options.ids || options.chat.given();
    from = "options";
    if (!given && !response.prompt_ids.empty()) {
      from = "ids in the answer";
      std::string list;
      for (const std::int64_t id : response.prompt_ids) list += fmt::format("{},", id);
      options.ids = std::move(list);
    } else if (!given && response.prompt_text && m_model.tokenizer) {
      from = "text in the answer";
      options.text = response.prompt_text;
      m_notes.push_back(
          fmt::format("{}: the prompt is the text that the answer repeats, tokenised "
                      "anew; --prompt-ids says it exactly",
                      escape_for_display(response.source)));
    } else if (!given) {
      return fail(ErrorKind::usage,
                  fmt::format("{}: does not hold its prompt; give --prompt-ids 1,2,3, --prompt "
                              "TEXT or --messages F.json",
                              escape_for_display(response.source)));
    }
    return make_prompt(options, m_model);
  }

  Result<void> read_answers(const std::vector<Response>& responses) {
    const VendorVocabulary tokens(m_model.tokenizer.get(), vocabulary());
    const std::size_t most_rows =
        kMostRowBytes / (sizeof(float) * static_cast<std::size_t>(vocabulary()));
    for (const Answer& answer : answers_of(responses)) {
      const Response& response = *answer.response;
      if (!response.error.empty()) continue;
      auto mapped = tokens.map(answer);
      if (!mapped) {
        if (mapped.error().kind != ErrorKind::inconclusive) return tl::unexpected(mapped.error());
        m_notes.push_back(
            fmt::format("{}: {}", escape_for_display(answer.name()), mapped.error().message));
        continue;
      }
      Sequence sequence{.name = answer.name(),
                        .prompt = {},
                        .prompt_length = 0,
                        .answer = std::move(*mapped),
                        .prompt_from = {}};
      auto prompt = prompt_of(response, sequence.prompt_from);
      if (!prompt) return tl::unexpected(prompt.error());
      sequence.prompt = std::move(*prompt);
      if (const auto place = other_prompt(response, sequence.prompt.ids)) {
        m_notes.push_back(
            fmt::format("{}: lists other ids for its prompt than those given, from "
                        "token {} on; what follows is of those given",
                        escape_for_display(response.source), *place));
      }
      for (const std::string& note : sequence.answer.notes) {
        m_notes.push_back(fmt::format("{}: {}", escape_for_display(sequence.name), note));
      }
      add_prompt(response, tokens, sequence, most_rows);
      add_sequence(response, std::move(sequence), most_rows);
    }
    if (m_sequences.empty()) {
      return fail(ErrorKind::inconclusive,
                  fmt::format("unobservable: no answer whose tokens can be given to the model{}{}",
                              m_notes.empty() ? "" : "; ", m_notes.empty() ? "" : m_notes[0]));
    }
    return {};
  }

  // The logprobs of the prompt's own tokens, where the answer lists them, as a sequence of its own:
  // answers to one prompt then repeat it, and it counts once.
  void add_prompt(const Response& response, const VendorVocabulary& tokens, const Sequence& answer,
                  std::size_t most_rows) {
    const std::vector<TokenId>& ids = answer.prompt.ids;
    if (response.prompt_steps.empty()) return;
    const auto leave_out = [&](const std::string& why) {
      m_notes.push_back(fmt::format("{}: the logprobs of its prompt are left out: {}",
                                    escape_for_display(response.source), why));
    };
    auto values = tokens.map_prompt(response, ids);
    if (!values) return leave_out(values.error().message);
    if (values->empty()) return;
    if (std::cmp_greater(ids.size(), m_model.checkpoint->description().max_positions))
      return leave_out("it is longer than the model's context");
    if (ids.size() > most_rows - std::min(most_rows, m_evidence.tokens.size()))
      return leave_out("too many tokens to hold");
    Sequence sequence;
    sequence.name = fmt::format("prompt of {}", response.source);
    sequence.prompt = answer.prompt;
    sequence.prompt_length = 1;
    sequence.answer.ids.assign(ids.begin() + 1, ids.end());
    sequence.answer.values = std::move(*values);
    sequence.prompt_from = answer.prompt_from;
    sequence.is_prompt = true;
    if (m_prompts.note(numbers(ids), {}, sequence.answer.values)) return;
    take_evidence(sequence);
    m_sequences.push_back(std::move(sequence));
  }

  void take_evidence(const Sequence& sequence) {
    const std::size_t before = m_evidence.tokens.size();
    for (VendorValue value : sequence.answer.values) {
      value.step += before;
      m_evidence.values.push_back(value);
    }
    for (const TokenId id : sequence.answer.ids) m_evidence.tokens.push_back(id.value);
  }

  void add_sequence(const Response& response, Sequence sequence, std::size_t most_rows) {
    auto& ids = sequence.answer.ids;
    sequence.prompt_length = static_cast<std::int64_t>(sequence.prompt.ids.size());
    const std::int64_t room =
        m_model.checkpoint->description().max_positions - sequence.prompt_length + 1;
    const std::size_t before = m_evidence.tokens.size();
    std::size_t keep = std::min({ids.size(), static_cast<std::size_t>(m_options.tokens),
                                 static_cast<std::size_t>(std::max<std::int64_t>(0, room)),
                                 most_rows - std::min(most_rows, before)});
    if (keep < ids.size()) {
      m_notes.push_back(fmt::format("{}: the first {} of {} tokens are used",
                                    escape_for_display(sequence.name), keep, ids.size()));
    }
    if (keep == 0) return;
    ids.resize(keep);
    std::erase_if(sequence.answer.values,
                  [&](const VendorValue& value) { return value.step >= keep; });
    if (is_copy(sequence)) return;
    take_evidence(sequence);
    // The last token's own row is not needed: it is fed to nobody.
    sequence.prompt.ids.insert(sequence.prompt.ids.end(), ids.begin(), ids.end() - 1);
    if (m_evidence.no_values.empty()) m_evidence.no_values = unusable_numbers(response);
    const bool first = std::all_of(m_sequences.begin(), m_sequences.end(),
                                   [](const Sequence& one) { return one.is_prompt; });
    if (first && response.temperature && *response.temperature > 0.0 &&
        *response.temperature != 1.0) {
      m_evidence.temperature = response.temperature;
    }
    m_sequences.push_back(std::move(sequence));
  }

  static std::vector<std::int32_t> numbers(const std::vector<TokenId>& ids) {
    std::vector<std::int32_t> out;
    for (const TokenId id : ids) out.push_back(id.value);
    return out;
  }

  bool is_copy(const Sequence& sequence) {
    return m_copies.note(numbers(sequence.prompt.ids), numbers(sequence.answer.ids),
                         sequence.answer.values);
  }

  template <class Report>
  Result<LocalCandidate> score(const LibraryEntry& entry, const InterruptGuard& interrupt,
                               const Report& report) {
    CandidateBuilder builder(m_evidence, entry.name, entry.description);
    const auto unable = [&](const Error& error) {
      LocalCandidate candidate;
      candidate.name = entry.name;
      candidate.description = entry.description;
      candidate.problem = error.message;
      return candidate;
    };
    if (auto fits = check_config(entry.config); !fits) return unable(fits.error());
    std::int64_t done = 0;
    for (const Sequence& sequence : m_sequences) {
      Side side{
          .model = m_model, .prompt = sequence.prompt, .config = entry.config, .neighbours = {}};
      if (sequence.is_prompt) side.config.scoring = Scoring::prefill;
      auto neighbours = make_neighbours(entry.config.neighbours, "", m_model, side.prompt);
      if (!neighbours) return unable(neighbours.error());
      side.neighbours = std::move(*neighbours);
      const auto rows = static_cast<std::int64_t>(sequence.answer.ids.size());
      RowSink sink(builder, rows);
      auto summary = score_continuation(
          side.lane_input(), sequence.prompt_length, TapLevel::logits, sink,
          [&](const RunProgress& at) {
            report(done + (at.phase == "score" ? at.done : 0),
                   static_cast<std::int64_t>(m_evidence.tokens.size()));
          },
          interrupt.token());
      if (!summary) return unable(summary.error());
      if (summary->cancelled) return fail(ErrorKind::interrupted, "stopped on request");
      done += rows;
    }
    return builder.finish();
  }

  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> notes = m_notes;
    if (m_copies.count() > 0) {
      notes.push_back(
          fmt::format("{} {} (same prompt, tokens and logprobs as another answer) left out: equal "
                      "answers count once",
                      m_copies.count(), m_copies.count() == 1 ? "copy is" : "copies are"));
    }
    return notes;
  }

  const LocalOptions& m_options;
  const LoadedModel& m_model;
  const std::vector<LibraryEntry>& m_library;
  std::vector<Sequence> m_sequences;
  VendorEvidence m_evidence;
  AnswerCopies m_copies, m_prompts;
  LocalSide m_side;
  std::vector<std::string> m_notes;
};

// "A (a.json)" of two files, else the file's name.
std::string side_name(std::size_t index, std::size_t count, const std::string& file) {
  const std::string shown = escape_for_display(file);
  return count == 2 ? fmt::format("{} ({})", index == 0 ? 'A' : 'B', shown) : shown;
}

constexpr int kUnobservable = 3;

LocalOutcome conclude_one(const LocalComparison& comparison, Json head) {
  head.update(comparison.json());
  const bool told = comparison.side().ranking.verdict != LocalVerdict::unobservable;
  return {
      .json = std::move(head), .text = comparison.text(), .exit_code = told ? 0 : kUnobservable};
}

LocalOutcome conclude_several(const std::vector<LocalComparison>& comparisons,
                              const std::vector<LocalFile>& files, Json head) {
  std::vector<LocalSide> sides;
  for (const LocalComparison& comparison : comparisons) sides.push_back(comparison.side());
  const SidesComparison verdict = compare_local_sides(sides);
  LocalOutcome outcome;
  outcome.json = std::move(head);
  outcome.json.update(sides_json(verdict));
  outcome.text = verdict.sentence + "\n";
  Json list = Json::array();
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    Json entry{{"file", escape_for_display(files[i].name)}};
    entry.update(comparisons[i].json());
    list.push_back(std::move(entry));
    outcome.text += fmt::format("\n{}: {}", sides[i].name, comparisons[i].text());
    if (sides[i].ranking.verdict == LocalVerdict::unobservable) outcome.exit_code = kUnobservable;
  }
  outcome.json["files"] = std::move(list);
  return outcome;
}

}  // namespace

void declare_local(CLI::App& app, LocalOptions& options) {
  auto* model = app.add_option(
      "--model,-m", options.model,
      "Score the vendor's tokens with this model under a library of local configurations, and say "
      "which of them gave these logprobs. " +
          std::string(kModelHelp));
  declare_prompt(app, options.prompt);
  app.add_option("--config", options.configs,
                 "With --model: a configuration instead of the library's (preset, JSON file, or a "
                 "name of the library); may be repeated")
      ->allow_extra_args(false)
      ->needs(model);
  app.add_option("--configs-file", options.configs_file,
                 "With --model: JSON list of configurations, each with a \"name\"")
      ->needs(model);
  app.add_option("--tokens", options.tokens, "With --model: tokens of each answer, at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
}

Result<void> check_local(const LocalOptions& options) {
  const PromptOptions& prompt = options.prompt;
  if (options.given() ||
      !(prompt.text || prompt.file || prompt.ids || prompt.chat.given() || prompt.no_special)) {
    return {};
  }
  return fail(ErrorKind::usage,
              "a prompt is for --model, which scores the answer with a local model; give both or "
              "neither");
}

Result<LocalOutcome> rank_locally(const LocalOptions& options, const std::vector<LocalFile>& files,
                                  CommandContext& context) {
  note_prompt_naming_a_file(options.prompt, context.console);
  auto library = make_library(options.configs, options.configs_file);
  if (!library) return tl::unexpected(library.error());
  auto model = load_model(options.model, context.console);
  if (!model) return tl::unexpected(model.error());
  const bool several = files.size() > 1;
  std::vector<LocalComparison> comparisons;
  {
    InterruptGuard interrupt;
    ProgressLine progress(context.console);
    for (std::size_t i = 0; i < files.size(); ++i) {
      LocalComparison& comparison = comparisons.emplace_back(options, *model, *library);
      comparison.set_name(side_name(i, files.size(), files[i].name));
      const std::string label =
          several ? fmt::format("file {} of {}, ", i + 1, files.size()) : std::string();
      auto done = comparison.run(files[i].responses, label, interrupt, progress);
      if (done) continue;
      // A file without evidence leaves the others theirs.
      if (!several || done.error().kind != ErrorKind::inconclusive)
        return tl::unexpected(done.error());
      comparison.note_unobservable(done.error());
    }
  }
  Json head{{"model", escape_for_display(options.model)}, {"model_sha256", model->sha256}};
  return several ? conclude_several(comparisons, files, std::move(head))
                 : conclude_one(comparisons.front(), std::move(head));
}

}  // namespace driftscope::cli
