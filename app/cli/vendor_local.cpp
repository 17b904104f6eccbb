// SPDX-License-Identifier: Apache-2.0
#include "app/cli/vendor_local.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/responses/answer_copies.h"
#include "analysis/responses/local_ranking.h"
#include "app/cli/interrupt.h"
#include "app/cli/local_library.h"
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

class LocalComparison {
 public:
  LocalComparison(const LocalOptions& options, CommandContext& context)
      : m_options(options), m_context(context) {}

  Result<LocalOutcome> run(const std::vector<Response>& responses) {
    auto library = make_library(m_options.configs, m_options.configs_file);
    if (!library) return tl::unexpected(library.error());
    auto model = load_model(m_options.model, m_context.console);
    if (!model) return tl::unexpected(model.error());
    m_model = std::move(*model);
    if (auto read = read_answers(responses); !read) return tl::unexpected(read.error());
    InterruptGuard interrupt;
    ProgressLine progress(m_context.console);
    for (std::size_t i = 0; i < library->size(); ++i) {
      auto candidate = score((*library)[i], interrupt, [&](std::int64_t done, std::int64_t total) {
        progress.update(fmt::format("{} ({} of {})", (*library)[i].name, i + 1, library->size()),
                        done, total);
      });
      if (!candidate) return tl::unexpected(candidate.error());
      m_candidates.push_back(std::move(*candidate));
    }
    progress.clear();
    const bool none = std::none_of(m_candidates.begin(), m_candidates.end(),
                                   [](const LocalCandidate& c) { return c.problem.empty(); });
    if (none) {
      return fail(ErrorKind::engine,
                  fmt::format("none of the configurations can run; the first: {}",
                              m_candidates.front().problem));
    }
    return conclude();
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
      for (const std::string& note : sequence.answer.notes) {
        m_notes.push_back(fmt::format("{}: {}", escape_for_display(sequence.name), note));
      }
      add_sequence(response, std::move(sequence), most_rows);
    }
    if (m_sequences.empty()) {
      return fail(ErrorKind::inconclusive,
                  fmt::format("unobservable: no answer whose tokens can be given to the model{}{}",
                              m_notes.empty() ? "" : "; ", m_notes.empty() ? "" : m_notes[0]));
    }
    return {};
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
    for (VendorValue value : sequence.answer.values) {
      value.step += before;
      m_evidence.values.push_back(value);
    }
    for (const TokenId id : ids) m_evidence.tokens.push_back(id.value);
    // The last token's own row is not needed: it is fed to nobody.
    sequence.prompt.ids.insert(sequence.prompt.ids.end(), ids.begin(), ids.end() - 1);
    if (m_evidence.no_values.empty()) m_evidence.no_values = unusable_numbers(response);
    if (response.temperature && *response.temperature > 0.0 && *response.temperature != 1.0 &&
        m_sequences.empty()) {
      m_evidence.temperature = response.temperature;
    }
    m_sequences.push_back(std::move(sequence));
  }

  bool is_copy(const Sequence& sequence) {
    const auto numbers = [](const std::vector<TokenId>& ids) {
      std::vector<std::int32_t> out;
      for (const TokenId id : ids) out.push_back(id.value);
      return out;
    };
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

  Result<LocalOutcome> conclude() {
    const LocalRanking ranking = rank_candidates(m_evidence, m_candidates);
    LocalOutcome outcome;
    Json answers = Json::array();
    for (const Sequence& sequence : m_sequences) {
      answers.push_back({{"answer", escape_for_display(sequence.name)},
                         {"prompt_tokens", sequence.prompt_length},
                         {"prompt_from", sequence.prompt_from},
                         {"tokens", sequence.answer.ids.size()},
                         {"tokens_by", std::string(name_of(sequence.answer.mapping))}});
    }
    outcome.json = {{"model", escape_for_display(m_options.model)},
                    {"model_sha256", m_model.sha256}};
    outcome.json.update(ranking_json(ranking, m_candidates));
    outcome.json["answers"] = answers;
    outcome.json["copies_left_out"] = m_copies.count();
    if (m_copies.count() > 0) {
      m_notes.push_back(
          fmt::format("{} {} (same prompt, tokens and logprobs as another answer) left out: equal "
                      "answers count once",
                      m_copies.count(), m_copies.count() == 1 ? "copy is" : "copies are"));
    }
    outcome.json["notes"] = m_notes;
    outcome.text = ranking_text(ranking, m_candidates);
    for (const std::string& note : m_notes) outcome.text += fmt::format("  note: {}\n", note);
    outcome.exit_code = ranking.verdict == LocalVerdict::unobservable ? 3 : 0;
    return outcome;
  }

  const LocalOptions& m_options;
  CommandContext& m_context;
  LoadedModel m_model;
  std::vector<Sequence> m_sequences;
  VendorEvidence m_evidence;
  AnswerCopies m_copies;
  std::vector<LocalCandidate> m_candidates;
  std::vector<std::string> m_notes;
};

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

Result<LocalOutcome> rank_locally(const LocalOptions& options,
                                  const std::vector<Response>& responses, CommandContext& context) {
  return LocalComparison(options, context).run(responses);
}

}  // namespace driftscope::cli
