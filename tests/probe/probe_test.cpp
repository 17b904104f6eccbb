// SPDX-License-Identifier: Apache-2.0
// Each way in which a live server misbehaves, and what the probe concludes.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/probe/ladder_parts.h"
#include "app/probe/prober.h"
#include "tests/probe/loopback_server.h"

namespace driftscope {
namespace {

// With a character that URLs and JSON spell in other ways.
constexpr const char* kKey = "sk-test/0123456789+abc";

struct Outcome {
  std::vector<Exchange> exchanges;
  ProbeReport report;
  Result<void> result;
};

ProbePlan plan_for(const std::vector<std::string>& urls) {
  ProbePlan plan;
  plan.endpoints = urls;
  plan.request.messages = R"([{"role":"user","content":"Capital of France?"}])";
  plan.samples = 4;
  plan.concurrency = {4};
  plan.first_pause_seconds = 0.001;
  plan.most_pause_seconds = 0.01;
  plan.limits.total_seconds = 20.0;
  plan.key = kKey;
  return plan;
}

Outcome probe_by(const ProbePlan& plan, const std::vector<Exchange>& earlier = {}) {
  Outcome outcome;
  Prober prober(plan, earlier, [&](Exchange&& exchange) -> Result<void> {
    outcome.exchanges.push_back(std::move(exchange));
    return {};
  });
  outcome.result = prober.run({}, {});
  outcome.report = climb_ladder(outcome.exchanges);
  return outcome;
}

Outcome probe(LoopbackBehaviour behaviour) {
  LoopbackServer server(std::move(behaviour));
  return probe_by(plan_for({server.url()}));
}

bool has_finding(const ProbeReport& report, std::string_view id) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& finding) { return finding.id == id; });
}

TEST(Probe, SteadyServerShowsNothing) {
  const Outcome outcome = probe({});
  ASSERT_TRUE(outcome.result);
  EXPECT_EQ(outcome.report.cause, ProbeCause::none_seen);
  ASSERT_EQ(outcome.report.groups.size(), 2U);
  EXPECT_EQ(outcome.report.groups[0].answered, 4);
  EXPECT_FALSE(outcome.report.not_ruled_out.empty());
}

TEST(Probe, CompanyChangesTheAnswer) {
  const Outcome outcome = probe({.answer_in_company = "Lyon."});
  EXPECT_EQ(outcome.report.cause, ProbeCause::batch_composition) << outcome.report.sentence;
}

TEST(Probe, SwappedBackendsAreSeen) {
  const Outcome outcome = probe({.second_fingerprint = "fp_two"});
  EXPECT_EQ(outcome.report.cause, ProbeCause::hidden_backends) << outcome.report.sentence;
}

TEST(Probe, ServerThatSamplesIsSeen) {
  const Outcome outcome = probe({.samples = true});
  EXPECT_EQ(outcome.report.cause, ProbeCause::sampling) << outcome.report.sentence;
}

TEST(Probe, DriftAloneIsNotCalledBatch) {
  const Outcome outcome = probe({.drifts_alone = true});
  EXPECT_EQ(outcome.report.cause, ProbeCause::unstable_alone) << outcome.report.sentence;
  EXPECT_FALSE(outcome.report.not_ruled_out.empty());
}

TEST(Probe, ReplicasThatDiffer) {
  LoopbackServer a({});
  LoopbackServer same_version({.answer = "Lyon."});
  EXPECT_EQ(probe_by(plan_for({a.url(), same_version.url()})).report.cause, ProbeCause::replica);
  LoopbackServer other_version({.fingerprint = "fp_two", .answer = "Lyon."});
  EXPECT_EQ(probe_by(plan_for({a.url(), other_version.url()})).report.cause, ProbeCause::version);
}

TEST(Probe, RoutesThatNameAnotherBuild) {
  LoopbackServer a({.server_version = "0.9.1"});
  LoopbackServer b({.answer = "Lyon.", .server_version = "0.10.0"});
  const Outcome outcome = probe_by(plan_for({a.url(), b.url()}));
  EXPECT_EQ(outcome.report.cause, ProbeCause::version) << outcome.report.sentence;
  EXPECT_NE(outcome.report.sentence.find("0.10.0"), std::string::npos);
  EXPECT_TRUE(has_finding(outcome.report, "replicas_differ_in_version"));
}

TEST(Probe, BothReplicasAreAskedInTurnsToo) {
  LoopbackServer a({});
  LoopbackServer b({});
  const Outcome outcome = probe_by(plan_for({a.url(), b.url()}));
  EXPECT_EQ(outcome.report.cause, ProbeCause::none_seen) << outcome.report.sentence;
  const auto across = std::count_if(
      outcome.report.groups.begin(), outcome.report.groups.end(),
      [](const ProbeGroup& g) { return g.stage == ProbeStage::across && g.answered == 2; });
  EXPECT_EQ(across, 2);
}

TEST(Probe, NumbersThatMoveUnderEqualTexts) {
  const Outcome alone = probe({.shift_in_turns = 0.01});
  EXPECT_EQ(alone.report.cause, ProbeCause::unstable_alone) << alone.report.sentence;
  EXPECT_TRUE(alone.report.numbers_only);
  EXPECT_NE(alone.report.sentence.find("0.01"), std::string::npos) << alone.report.sentence;
  const Outcome company = probe({.shift_in_company = -0.02});
  EXPECT_EQ(company.report.cause, ProbeCause::batch_composition) << company.report.sentence;
  EXPECT_TRUE(company.report.numbers_only);
  EXPECT_NE(company.report.sentence.find("0.02"), std::string::npos) << company.report.sentence;
}

TEST(Probe, FewOddAnswersInCompanySupportNoCause) {
  // One of four differs: by chance that one is among the four in company in 1 of 2 probes.
  const Outcome outcome = probe({.answer_in_company = "Lyon.", .odd_in_company = 4});
  EXPECT_EQ(outcome.report.cause, ProbeCause::unresolved) << outcome.report.sentence;
  EXPECT_NE(outcome.report.sentence.find("0.5"), std::string::npos) << outcome.report.sentence;
}

TEST(Probe, FirstAnswerWithoutACacheIsToldFromDrift) {
  LoopbackServer server({.answer_uncached = "Lyon."});
  ProbePlan plan = plan_for({server.url()});
  plan.samples = 40;  // one answer of 40 stands apart by chance in 2 of 40 probes
  const Outcome outcome = probe_by(plan);
  EXPECT_EQ(outcome.report.cause, ProbeCause::prompt_cache) << outcome.report.sentence;
}

TEST(Probe, TemperatureThatWasAskedForIsNoFault) {
  LoopbackServer server({.drifts_alone = true});
  ProbePlan plan = plan_for({server.url()});
  plan.request.temperature = 0.8;
  const Outcome outcome = probe_by(plan);
  EXPECT_EQ(outcome.report.cause, ProbeCause::sampling);
  EXPECT_NE(outcome.report.sentence.find("0.8 was asked for"), std::string::npos);
}

TEST(Probe, StreamsAreReadToTheirEnd) {
  LoopbackServer whole({});
  ProbePlan plan = plan_for({whole.url()});
  plan.request.stream = true;
  const Outcome good = probe_by(plan);
  EXPECT_EQ(good.report.cause, ProbeCause::none_seen) << good.report.sentence;
  ASSERT_FALSE(good.report.groups.empty());
  EXPECT_EQ(good.report.groups[0].responses[0].choices[0].content.text, "Paris.");
  for (const LoopbackBehaviour& behaviour :
       {LoopbackBehaviour{.ends_stream_early = true}, LoopbackBehaviour{.cuts_answers = true}}) {
    LoopbackServer cut(behaviour);
    plan.endpoints = {cut.url()};
    const Outcome outcome = probe_by(plan);
    EXPECT_EQ(outcome.report.cause, ProbeCause::not_enough) << outcome.report.sentence;
    EXPECT_EQ(outcome.report.groups[0].failed, 4);
  }
}

TEST(Probe, ReasoningThatChangesIsAChange) {
  const Outcome outcome = probe({.reasoning_in_turns = "Hm."});
  EXPECT_EQ(outcome.report.cause, ProbeCause::unstable_alone) << outcome.report.sentence;
  EXPECT_NE(outcome.report.sentence.find("reasoning"), std::string::npos);
}

TEST(Probe, WhatIsRefusedForGoodIsAskedOnce) {
  LoopbackServer server({.refuses_all = 401});
  const Outcome outcome = probe_by(plan_for({server.url()}));
  ASSERT_FALSE(outcome.result);
  EXPECT_EQ(server.requests(), 1);
  EXPECT_NE(outcome.result.error().message.find("no such luck"), std::string::npos);
  EXPECT_NE(outcome.result.error().message.find("the key was sent"), std::string::npos);
  ProbePlan without = plan_for({server.url()});
  without.key.clear();
  const Outcome unknown = probe_by(without);
  ASSERT_FALSE(unknown.result);
  EXPECT_NE(unknown.result.error().message.find("--key-env"), std::string::npos);
}

TEST(Probe, ErrorsInBodiesAreAskedAgain) {
  LoopbackServer server({.error_bodies = true});
  const ProbePlan plan = plan_for({server.url()});
  const Outcome first = probe_by(plan);
  EXPECT_EQ(first.report.cause, ProbeCause::not_enough);
  const std::int64_t asked = server.requests();
  static_cast<void>(probe_by(plan, first.exchanges));
  EXPECT_EQ(server.requests(), 2 * asked);
}

TEST(Probe, AnswersOfAnotherServerAreNotMixedIn) {
  LoopbackServer one({});
  LoopbackServer other({});
  const Outcome first = probe_by(plan_for({one.url()}));
  const Prober prober(plan_for({other.url()}), {}, {});
  const auto same = prober.check_same_question(first.exchanges.back());
  ASSERT_FALSE(same);
  EXPECT_NE(same.error().message.find(one.url()), std::string::npos);
}

Exchange alone(std::int64_t index, const std::string& logprob) {
  Exchange exchange;
  exchange.stage = ProbeStage::alone;
  exchange.index = index;
  exchange.status = 200;
  exchange.body = R"({"object":"chat.completion","choices":[{"index":0,"message":{"content":"x"},)"
                  R"("finish_reason":"stop","logprobs":{"content":[{"token":"x","logprob":)" +
                  logprob + R"(,"top_logprobs":[]}]}}]})";
  return exchange;
}

TEST(Ladder, AShortNumberHidesNothingWhateverTheOrder) {
  // One server prints all to the digits of the longest: four different values.
  const std::vector<std::string> values{"-0.1", "-0.1004", "-0.0996", "-0.12"};
  for (std::size_t turn = 0; turn < values.size(); ++turn) {
    std::vector<Exchange> exchanges;
    for (std::size_t i = 0; i < values.size(); ++i)
      exchanges.push_back(alone(static_cast<std::int64_t>(i), values[(i + turn) % 4]));
    const ProbeReport report = climb_ladder(exchanges);
    EXPECT_EQ(report.cause, ProbeCause::unstable_alone) << report.sentence;
    EXPECT_EQ(report.groups.at(0).unique_numbers, 4);
  }
}

TEST(Ladder, ChancesAreThoseOfCounting) {
  // Two classes in two groups of 4: two of the 8-choose-4 ways.
  EXPECT_NEAR(chance_of_separation({4, 4}), 2.0 / 70.0, 1e-15);
  EXPECT_NEAR(chance_of_separation({1, 39}), 2.0 / 40.0, 1e-15);
  EXPECT_EQ(chance_of_separation({1, 1}), 1.0);
  // 3 odd ones of 10 alone and 32 together: (32*31*30)/(42*41*40).
  EXPECT_NEAR(chance_of_company(10, 32, 3), 29760.0 / 68880.0, 1e-15);
  EXPECT_NEAR(chance_of_company(4, 4, 4), 1.0 / 70.0, 1e-15);
  // One of four in company: 1/2, 0.233, 0.109, 0.0506, and at five times as many 0.0236.
  const auto company = [](std::int64_t times) {
    return chance_of_company(4 * times, 4 * times, times);
  };
  std::vector<ProbeGroup> groups(1);
  groups[0].asked = 4;
  EXPECT_EQ(more_samples(company, 0.05, groups), " 20, if they go on like this");
  EXPECT_EQ(more_samples([](std::int64_t) { return 0.5; }, 0.05, groups), "");
}

TEST(Probe, RefusedFieldsAreLeftOut) {
  const Outcome outcome = probe({.refuses_logprobs = true, .refuses_seed = true});
  EXPECT_EQ(outcome.report.cause, ProbeCause::none_seen) << outcome.report.sentence;
  EXPECT_TRUE(has_finding(outcome.report, "field_refused"));
  EXPECT_EQ(outcome.exchanges.back().given_up, (std::vector<std::string>{"logprobs", "seed"}));
  EXPECT_EQ(outcome.exchanges.back().request.find("seed"), std::string::npos);
}

TEST(Probe, BusyAndBrokenServersAreAskedAgain) {
  for (const LoopbackBehaviour& behaviour :
       {LoopbackBehaviour{.too_many_requests = 2}, LoopbackBehaviour{.server_errors = 2}}) {
    const Outcome outcome = probe(behaviour);
    EXPECT_EQ(outcome.report.cause, ProbeCause::none_seen) << outcome.report.sentence;
    EXPECT_TRUE(has_finding(outcome.report, "retried"));
  }
}

TEST(Probe, CutAnswersAreNoAnswers) {
  const Outcome outcome = probe({.cuts_answers = true});
  EXPECT_EQ(outcome.report.cause, ProbeCause::not_enough);
  EXPECT_TRUE(has_finding(outcome.report, "request_failed"));
}

TEST(Probe, StalledServerTimesOut) {
  LoopbackServer server({.stalls = true});
  ProbePlan plan = plan_for({server.url()});
  plan.samples = 2;
  plan.concurrency = {2};
  plan.most_attempts = 1;
  plan.limits.total_seconds = 0.3;
  const Outcome outcome = probe_by(plan);
  EXPECT_EQ(outcome.report.cause, ProbeCause::not_enough);
  EXPECT_NE(outcome.exchanges.back().error.find("timed out"), std::string::npos);
}

TEST(Probe, OddBytesAreKeptAndRead) {
  for (const LoopbackBehaviour& behaviour :
       {LoopbackBehaviour{.sends_nan = true}, LoopbackBehaviour{.sends_bad_utf8 = true},
        LoopbackBehaviour{.sends_huge_line = true}}) {
    const Outcome outcome = probe(behaviour);
    EXPECT_EQ(outcome.report.cause, ProbeCause::none_seen) << outcome.report.sentence;
    const auto again = read_exchange(exchange_line(outcome.exchanges.back()));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->body, outcome.exchanges.back().body);
  }
}

TEST(Probe, RedirectToAnotherHostGetsNoKey) {
  LoopbackServer other({});
  LoopbackServer server({.redirect_to = other.url() + "/chat/completions"});
  const Outcome outcome = probe_by(plan_for({server.url()}));
  EXPECT_EQ(other.requests(), 0);
  EXPECT_FALSE(other.saw_authorization());
  EXPECT_TRUE(server.saw_authorization());
  EXPECT_EQ(outcome.report.cause, ProbeCause::not_enough);
  EXPECT_NE(outcome.exchanges.back().error.find("not followed"), std::string::npos);
}

TEST(Probe, TheKeyIsInNothingThatIsWritten) {
  // As it is, in a URL, in JSON with escaped slashes, in base64.
  const Outcome outcome = probe(
      {.echoes = std::string(kKey) + R"( sk-test%2F0123456789%2Babc sk-test\/0123456789+abc )" +
                 "c2stdGVzdC8wMTIzNDU2Nzg5K2FiYw== SK-TEST/0123456789+ABC "
                 "%73%6b%2d%74%65%73%74%2f%30%31%32%33%34%35%36%37%38%39%2b%61%62%63 "
                 "eHNrLXRlc3QvMDEyMzQ1Njc4OSthYmM"});
  std::string written = probe_json(outcome.report) + probe_text(outcome.report);
  for (const Exchange& exchange : outcome.exchanges) written += exchange_line(exchange);
  for (const char* spelling :
       {kKey, "sk-test%2F0123456789%2Babc", R"(sk-test\\/0123456789+abc)",
        "c2stdGVzdC8wMTIzNDU2Nzg5K2FiYw", "SK-TEST", "%73%6b%2d", "NrLXRlc3QvMDEyMzQ1Njc4OSthYm"}) {
    EXPECT_EQ(written.find(spelling), std::string::npos) << spelling;
  }
  EXPECT_NE(written.find("[key]"), std::string::npos);
  EXPECT_EQ(written.find("session="), std::string::npos);
}

TEST(Probe, AResumedProbeAsksOnlyWhatIsMissing) {
  LoopbackServer server({});
  const ProbePlan plan = plan_for({server.url()});
  Outcome first = probe_by(plan);
  const std::int64_t asked = server.requests();
  EXPECT_EQ(asked, 8);
  std::vector<Exchange> earlier = first.exchanges;
  earlier.pop_back();
  earlier.back().error = "timed out";  // asked again, as what is not there
  const Outcome second = probe_by(plan, earlier);
  ASSERT_EQ(second.exchanges.size(), 2U);
  EXPECT_EQ(server.requests(), asked + 2);
  // The model that the server named is known from the earlier answers.
  EXPECT_NE(second.exchanges[0].request.find("test-model-2026-01-01"), std::string::npos);
}

TEST(Probe, AnotherQuestionIsNotMixedIn) {
  LoopbackServer server({});
  ProbePlan plan = plan_for({server.url()});
  const Outcome first = probe_by(plan);
  const auto check = [&] {
    const Prober prober(plan, {}, {});
    return prober.check_same_question(first.exchanges.back());
  };
  EXPECT_TRUE(check());
  plan.request.messages = R"([{"role":"user","content":"Capital of Italy?"}])";
  ASSERT_FALSE(check());
  EXPECT_NE(check().error().message.find("messages"), std::string::npos);
}

TEST(Probe, AServerThatIsNotThereIsNamedAtOnce) {
  std::string url;
  {
    LoopbackServer gone({});
    url = gone.url();
  }
  const Outcome outcome = probe_by(plan_for({url}));
  ASSERT_FALSE(outcome.result);
  EXPECT_NE(outcome.result.error().message.find(url), std::string::npos);
  for (const Exchange& exchange : outcome.exchanges) {
    EXPECT_EQ(exchange.stage, ProbeStage::discovery);
  }
}

TEST(Probe, StopsOnRequest) {
  LoopbackServer server({});
  std::stop_source source;
  std::int64_t taken = 0;
  Prober prober(plan_for({server.url()}), {}, [&](Exchange&&) -> Result<void> {
    if (++taken == 7) source.request_stop();
    return {};
  });
  const auto result = prober.run(source.get_token(), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::interrupted);
  EXPECT_LT(taken, 14);
}

TEST(HttpClient, TellsOriginsApart) {
  EXPECT_EQ(origin_of("https://Host/v1"), "https://host:443");
  EXPECT_EQ(origin_of("http://host:8000/x?y"), "http://host:8000");
  EXPECT_EQ(origin_of("file:///etc/passwd"), "");
  EXPECT_EQ(origin_of("nonsense"), "");
}

TEST(Exchange, KeepsEveryByte) {
  Exchange exchange;
  exchange.stage = ProbeStage::together;
  exchange.replica = 1;
  exchange.concurrency = 8;
  exchange.index = 3;
  exchange.url = "http://h/v1";
  exchange.status = 200;
  for (int i = 0; i < 256; ++i) exchange.body += static_cast<char>(i);
  exchange.headers = {{"server", "x"}};
  const auto read = read_exchange(exchange_line(exchange));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->body, exchange.body);
  EXPECT_EQ(read->key(), exchange.key());
  EXPECT_EQ(read->headers, exchange.headers);
}

}  // namespace
}  // namespace driftscope
