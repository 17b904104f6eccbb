// SPDX-License-Identifier: GPL-3.0-or-later
// Tables printed as text, tokens escaped, ranks, keys, and the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <nlohmann/json.hpp>

#include "engine/config/knob.h"
#include "tests/ui/synthetic_comparison.h"
#include "ui/models/cursor_delta.h"
#include "ui/models/finding_models.h"
#include "ui/models/knob_model.h"
#include "ui/models/metric_table_model.h"
#include "ui/models/navigation.h"
#include "ui/models/rank_flips.h"
#include "ui/models/run_request.h"
#include "ui/models/token_ribbon.h"
#include "ui/models/token_text.h"
#include "ui/models/top_k_model.h"
#include "ui/models/verdict_summary.h"

namespace driftscope::ui {
namespace {

std::string utf8(const QString& text) { return text.toStdString(); }

TEST(EscapedText, ControlsBrokenBytesAndInvisibleCharacters) {
  EXPECT_EQ(utf8(escaped_text("a\nb\t\\")), "a\\nb\\t\\\\");
  EXPECT_EQ(utf8(escaped_text(std::string_view("\x00\x1b[31m", 6))), "\\x00\\x1B[31m");
  EXPECT_EQ(utf8(escaped_text("gr\xC3\xBC")), "gr\xC3\xBC");
  EXPECT_EQ(utf8(escaped_text("\xE2\x82")), "\\xE2\\x82");           // cut off
  EXPECT_EQ(utf8(escaped_text("\xC0\xAF")), "\\xC0\\xAF");           // overlong
  EXPECT_EQ(utf8(escaped_text("\xED\xA0\x80")), "\\xED\\xA0\\x80");  // surrogate
  EXPECT_EQ(utf8(escaped_text("\xE2\x80\xAE")), "\\u202E");          // turns the direction
  EXPECT_EQ(utf8(escaped_text("\xF0\x9F\x98\x80")), "\xF0\x9F\x98\x80");
}

// Two tokens change places; one leaves B's list and another enters it.
std::shared_ptr<Comparison> one_step() {
  auto c = std::make_shared<Comparison>();
  auto row = step_row(0);
  row->metrics.top_a = {{TokenId{1}, 4.0F}, {TokenId{2}, 3.5F}, {TokenId{3}, 1.0F}};
  row->metrics.top_b = {{TokenId{2}, 3.75F}, {TokenId{1}, 3.5F}, {TokenId{4}, 1.25F}};
  row->token_a = TokenId{1};
  row->choice_b = TokenId{2};
  row->token_b = TokenId{2};
  row->flipped = true;
  row->flips = {{.x = TokenId{1}, .y = TokenId{2}}};
  c->steps = {row};
  c->pieces = {{TokenId{1}, " the"}, {TokenId{2}, "a|b"}, {TokenId{3}, "\n"}};
  c->lanes.resize(2);
  c->lanes[0].state = c->lanes[1].state = TraceState::complete;
  c->lanes[0].tokens = {TokenId{1}};
  c->lanes[1].lane = Lane::b;
  c->lanes[1].tokens = {TokenId{2}};
  return c;
}

TEST(TopKModel, PrintsRanksLogitsAndDeltas) {
  TopKModel model;
  model.show(one_step(), 0);
  EXPECT_EQ(utf8(to_tsv(model)),
            "Token\tId\tRank A\tRank B\tLogit A\tLogit B\tB − A\n"
            "‘ the’\t1\t1\t2\t4\t3.5\t-0.5\n"
            "‘a|b’\t2\t2\t1\t3.5\t3.75\t0.25\n"
            "‘\\n’\t3\t3\t–\t1\t–\t–\n"
            "#4\t4\t–\t3\t–\t1.25\t–\n");
  EXPECT_THAT(utf8(to_markdown(model)), testing::HasSubstr("| ‘a\\|b’ | 2 | 2 | 1 |"));
  EXPECT_EQ(model.index(0, TopKModel::token).data(TableModel::kEmphasisRole).toInt(),
            static_cast<int>(Emphasis::side_a));
  model.show(one_step(), 7);
  EXPECT_EQ(model.rowCount(), 0);
  EXPECT_THAT(utf8(model.empty_text()), testing::HasSubstr("Step 7"));
}

TEST(StepRanks, PathsLeaveAndEnterThroughTheRail) {
  const auto c = one_step();
  EXPECT_EQ(rank_depth(*c), 3);
  const StepRanks ranks = step_ranks(*c->steps[0], 3);
  ASSERT_EQ(ranks.paths.size(), 4U);
  EXPECT_EQ(ranks.paths[0].rank_b, 1);
  EXPECT_EQ(ranks.paths[2].rank_b, 3);  // left the list
  EXPECT_EQ(ranks.paths[3].rank_a, 3);  // entered it
  EXPECT_EQ(ranks.best_moved, 0);
  EXPECT_EQ(ranks.flips, 1);
  EXPECT_TRUE(ranks.flipped);
}

TEST(MetricTable, OneRowPerRegisteredMetric) {
  MetricTableModel model;
  EXPECT_EQ(model.rowCount(), 0);
  model.show(with_metric("max_abs", {0.25, 0.0}), 0);
  ASSERT_EQ(model.rowCount(), static_cast<int>(metric_registry().size()));
  const int row = static_cast<int>(metric_index("max_abs").value());
  EXPECT_EQ(model.index(row, MetricTableModel::at_step).data().toString(), QStringLiteral("0.25"));
  EXPECT_EQ(model.index(row, MetricTableModel::median).data().toString(), QStringLiteral("–"));
}

TEST(Findings, DifferencesNameKnobsByTitleAndKnobsComeFirst) {
  auto c = std::make_shared<Comparison>();
  c->envelope_difference = {
      {.field = "runtime.cpu", .a = "x", .b = "y"},
      {.field = "knob.matmul_policy", .a = "invariant", .b = "shape_dependent"}};
  c->findings = {{.id = "nan_in_logits",
                  .severity = Severity::error,
                  .text = "A line\nand more",
                  .evidence = "{}"}};
  DifferenceModel differences;
  EXPECT_EQ(differences.rowCount(), 0);
  differences.show(c);
  ASSERT_EQ(differences.rowCount(), 2);
  const auto title = find_knob("matmul_policy")->title;
  EXPECT_EQ(utf8(differences.index(0, 0).data().toString()), std::string(title));
  EXPECT_EQ(utf8(differences.index(0, 2).data().toString()), "shape_dependent");
  FindingsModel findings;
  findings.show(c);
  EXPECT_EQ(utf8(to_tsv(findings)), "Severity\tFinding\nerror\tA line\\nand more\n");
}

TEST(Navigation, NextPreviousAndFirst) {
  const auto c = synthetic_comparison({.steps = 48, .divergence = 20});  // flips at 20, 29, 38, 47
  EXPECT_EQ(next_flip(*c, -1), 20);
  EXPECT_EQ(next_flip(*c, 20), 29);
  EXPECT_EQ(next_flip(*c, 47), std::nullopt);
  EXPECT_EQ(previous_flip(*c, 30), 29);
  EXPECT_EQ(previous_flip(*c, 20), std::nullopt);
  EXPECT_EQ(first_difference(*c), 20);
  EXPECT_EQ(step_count(*c), 48);
}

TEST(TokenRibbon, EndedSidesAndDivergence) {
  auto c = one_step();
  c->lanes[0].tokens = {TokenId{1}, TokenId{3}};
  const TokenRibbon ribbon = token_ribbon(*c);
  ASSERT_EQ(ribbon.items.size(), 2U);
  EXPECT_TRUE(ribbon.items[0].differs);
  EXPECT_TRUE(ribbon.items[0].flipped);
  EXPECT_EQ(utf8(ribbon.items[0].choice_b), "a|b");
  EXPECT_TRUE(ribbon.items[1].text_b.isNull());
  EXPECT_TRUE(ribbon.items[1].differs);  // B has ended
  EXPECT_THAT(utf8(step_tooltip(*c, 0)), testing::HasSubstr("a|b"));
  c->lanes[1].state = TraceState::partial;  // still on its way: nothing is known of step 1
  EXPECT_FALSE(token_ribbon(*c).items[1].differs);
}

TEST(VerdictSummary, NamesStepTokensMarginsCauseAndReason) {
  const auto c = synthetic_comparison({.steps = 48, .divergence = 20});
  const VerdictSummary summary = verdict_summary(*c);
  EXPECT_EQ(utf8(summary.tier), "DIFFERENT");
  EXPECT_THAT(utf8(summary.headline), testing::HasSubstr("step 20"));
  EXPECT_EQ(utf8(summary.cause), "near tie");
  // The cause stands before it in the bar: said once.
  EXPECT_THAT(utf8(summary.reason), testing::StartsWith("A's margin"));
  const std::string text = utf8(to_text(summary));
  for (const char* part : {"Margin A: 0.004 logit", "Margin B: 0.006 logit",
                           "Drift here: 0.0061 logit", "× 1.11", "20 of 48", "same bits"}) {
    EXPECT_THAT(text, testing::HasSubstr(part));
  }
  EXPECT_THAT(utf8(to_markdown(summary)), testing::StartsWith("**DIFFERENT**: First divergence"));
  const auto same =
      verdict_summary(*synthetic_comparison({.steps = 5, .divergence = -1, .identical = true}));
  EXPECT_TRUE(same.good);
  EXPECT_EQ(utf8(same.headline), "No divergence in 5 steps");
}

TEST(VerdictSummary, ARunThatGoesOnIsNoVerdict) {
  auto c = synthetic_comparison({.steps = 6, .divergence = -1});
  c->state = TraceState::partial;
  c->planned_steps = 40;
  c->verdict = Tier::inconclusive;
  c->tokens_equal = 0;  // B's own text is not there yet
  c->lanes.resize(1);
  const VerdictSummary live = verdict_summary(*c, true);
  EXPECT_EQ(utf8(live.tier), "RUNNING");
  EXPECT_TRUE(live.running);
  EXPECT_FALSE(live.inconclusive);
  EXPECT_THAT(utf8(to_text(live)), testing::HasSubstr("Steps: 6 of 40 planned"));
  EXPECT_THAT(utf8(to_text(live)), testing::Not(testing::HasSubstr("Equal tokens")));
  const VerdictSummary ended = verdict_summary(*c);
  EXPECT_EQ(utf8(ended.tier), "INCONCLUSIVE");
}

TEST(VerdictSummary, StepsAndEqualTokensAreTwoFigures) {
  auto c = synthetic_comparison({.steps = 34, .divergence = -1});
  c->planned_steps = 40;
  const std::string text = utf8(to_text(verdict_summary(*c)));
  EXPECT_THAT(text, testing::HasSubstr("Steps: 34 of 40 planned"));
  EXPECT_THAT(text, testing::HasSubstr("Equal tokens: 34 of 34\n"));
  EXPECT_THAT(text, testing::HasSubstr("Prompt: ‘In the beginning’"));
}

TEST(UnbrokenQuotes, NoLineEndsInsideAToken) {
  EXPECT_EQ(utf8(unbroken_quotes(QStringLiteral("at 4: A ‘ / and’, B ‘x’"))),
            "at 4: A\u00A0‘\u00A0/\u00A0and’, B\u00A0‘x’");
}

RunRequest request() {
  RunRequest request;
  request.model = QStringLiteral("samples/model");
  request.prompt = QStringLiteral("It's -o late");
  request.steps = 12;
  request.preset_a = QStringLiteral("bf16-invariant");
  request.preset_b = QStringLiteral("bf16-invariant");
  request.config_a = *load_config("bf16-invariant");
  request.config_b = request.config_a;
  request.config_b.neighbours = 3;
  request.output = QStringLiteral("out.h5");
  return request;
}

TEST(RunArguments, NameOnlyWhatDiffersFromThePreset) {
  const auto arguments = run_arguments(request());
  ASSERT_TRUE(arguments.has_value());
  EXPECT_EQ(utf8(shell_command(*arguments)),
            "run --model samples/model '--prompt=It'\\''s -o late' --a bf16-invariant "
            "--b bf16-invariant --set-b neighbours=3 --steps 12 --taps layers -o out.h5");
}

TEST(RunArguments, ControlOffLogitsOnlyAndReplaceAreSaid) {
  RunRequest changed = request();
  changed.control = false;
  changed.taps = QStringLiteral("logits");
  changed.replace = true;
  const QString text = shell_command(run_arguments(changed).value());
  EXPECT_THAT(utf8(text), testing::EndsWith("--steps 12 --no-control --force -o out.h5"));
}

TEST(CommandPrefix, WordsBehindSshAreQuotedForTheOtherShell) {
  const QStringList command{QStringLiteral("driftscope"), QStringLiteral("--prompt=a b")};
  EXPECT_EQ(utf8(shell_command(prefixed({QStringLiteral("nice")}, command))),
            "nice driftscope '--prompt=a b'");
  const QStringList there =
      prefixed({QStringLiteral("/usr/bin/ssh"), QStringLiteral("host")}, command);
  EXPECT_EQ(there.back(), QStringLiteral("'--prompt=a b'"));
  EXPECT_EQ(prefixed({}, command), command);
}

// A capture's run as a request: presets by name, edited knobs kept, files with other names nearest.
TEST(RequestOf, RepeatsTheRunOfTheCapture) {
  Comparison c;
  c.model_a = c.model_b = "samples/model";
  c.prompt_text = "Blessed are they that";
  c.planned_steps = 96;
  c.taps.resize(2);
  c.taps[0].spec = {.layer = 3, .operation = "l_out", .width = 4};
  c.taps[1].spec = {.layer = 4, .operation = "result_norm", .width = 4};
  c.control.present = true;
  RunConfig a = *load_config("hf-eager-like");
  RunConfig b = a;
  b.neighbours = 7;
  c.config_a_name = "my.json";
  c.config_b_name = "hf-eager-like + neighbours=7";  // as labels name it
  c.config_a_json = config_to_json(a).dump();
  c.config_b_json = config_to_json(b).dump();
  RunRequest made = request_of(c, {});
  EXPECT_EQ(utf8(made.preset_a), "hf-eager-like");  // no knob away, every other preset is further
  EXPECT_EQ(made.config_b.neighbours, 7);
  made.output = QStringLiteral("o.h5");
  EXPECT_EQ(utf8(shell_command(run_arguments(made).value())),
            "run --model samples/model '--prompt=Blessed are they that' --a hf-eager-like "
            "--b hf-eager-like --set-b neighbours=7 --steps 96 --taps layers -o o.h5");
}

TEST(RequestOf, FindsAModelNamedFromAFolderAboveTheCapture) {
  const QTemporaryDir folder;
  const QDir base(folder.path());
  ASSERT_TRUE(base.mkpath(QStringLiteral("kept/model-x")));
  ASSERT_TRUE(base.mkpath(QStringLiteral("kept/captures")));
  Comparison c;
  c.model_a = c.model_b = "kept/model-x";
  EXPECT_EQ(request_of(c, base.filePath(QStringLiteral("kept/captures/a.h5"))).model,
            base.filePath(QStringLiteral("kept/model-x")));
  EXPECT_EQ(utf8(request_of(c, {}).model), "kept/model-x");
}

TEST(FreeCaptureName, CountsPastWhatIsThere) {
  const QTemporaryDir folder;
  EXPECT_EQ(utf8(free_capture_name(folder.path())), "out/run.h5");
  ASSERT_TRUE(QDir(folder.path()).mkpath(QStringLiteral("out")));
  for (const char* name : {"out/run.h5", "out/run-2.h5.part"}) {
    QFile file(folder.filePath(QLatin1String(name)));
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
  }
  EXPECT_EQ(utf8(free_capture_name(folder.path())), "out/run-3.h5");
}

TEST(CursorDelta, NamesBothValuesAndTheChange) {
  const auto c = with_metric("max_abs", {0.25, 1.0, 0.5});
  EXPECT_THAT(utf8(cursor_delta_text(*c, 1, 2)),
              testing::StartsWith("steps 1 → 2 (Δ 1): largest 1 → 0.5 (-0.5), centred RMS – → –,"));
  EXPECT_THAT(utf8(cursor_delta_text(*c, 0, 1)), testing::HasSubstr("0.25 → 1 (+0.75)"));
  EXPECT_TRUE(cursor_delta_text(*c, 0, 3).isEmpty());
}

TEST(RunArguments, MissingFieldsAreUsageErrors) {
  RunRequest none = request();
  none.model.clear();
  ASSERT_FALSE(run_arguments(none).has_value());
  EXPECT_EQ(run_arguments(none).error().kind, ErrorKind::usage);
  none = request();
  none.preset_a = QStringLiteral("no-such-preset");
  ASSERT_FALSE(run_arguments(none).has_value());
  EXPECT_EQ(run_arguments(none).error().kind, ErrorKind::usage);
}

TEST(ShellQuoting, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(utf8(shell_quoted(QStringLiteral("a/b-c.h5"))), "a/b-c.h5");
  EXPECT_EQ(utf8(shell_quoted(QStringLiteral("$(rm x)"))), "'$(rm x)'");
  EXPECT_EQ(utf8(shell_quoted(QString())), "''");
}

TEST(KnobModel, EditsThroughTheRegistryAndShowsDifferences) {
  KnobModel model;
  model.set_configs(RunConfig{}, RunConfig{});
  EXPECT_EQ(model.rowCount(), static_cast<int>(knob_registry().size()));
  EXPECT_EQ(model.difference_count(), 0);
  int row = 0;
  while (knob_registry()[static_cast<std::size_t>(row)].id != "neighbours") ++row;
  QString reason;
  QObject::connect(&model, &KnobModel::rejected, [&](const QString& why) { reason = why; });
  EXPECT_FALSE(model.setData(model.index(row, KnobModel::side_b), QStringLiteral("-1")));
  EXPECT_FALSE(reason.isEmpty());
  EXPECT_TRUE(model.setData(model.index(row, KnobModel::side_b), QStringLiteral("5")));
  EXPECT_EQ(model.config_b().neighbours, 5);
  EXPECT_TRUE(model.index(row, 0).data(KnobModel::kDiffersRole).toBool());
  model.set_differences_only(true);
  EXPECT_EQ(model.rowCount(), 1);
}

}  // namespace
}  // namespace driftscope::ui
