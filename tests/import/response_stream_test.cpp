// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/response_stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "analysis/import/response_file.h"
#include "analysis/responses/pair_summary.h"
#include "analysis/responses/response_documents.h"
#include "analysis/responses/response_lint.h"
#include "analysis/responses/sample_groups.h"

namespace driftscope {
namespace {

// Four threads that claim tasks from the last to the first, so that results come in an order that
// is not the pairs'.
class BackwardThreads final : public Parallel {
 public:
  [[nodiscard]] int workers() const override { return 4; }
  void run(std::size_t tasks, TaskRef task) override {
    std::atomic<std::size_t> left{tasks};
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < workers(); ++worker) {
      threads.emplace_back([&left, task, worker] {
        while (true) {
          std::size_t at = left.load();
          while (at > 0 && !left.compare_exchange_weak(at, at - 1)) {
          }
          if (at == 0) return;
          task(at - 1, worker);
        }
      });
    }
  }
};

// One chat body of two tokens; the second has two alternatives that are `gap` apart.
std::string body(const std::string& second, const std::string& other, double logprob, double gap) {
  return fmt::format(
      R"({{"object":"chat.completion","model":"m-2024-01-01","choices":[{{"index":0,"message":)"
      R"({{"role":"assistant","content":"a{0}"}},"finish_reason":"stop","logprobs":{{"content":[)"
      R"({{"token":"a","logprob":-0.125,"bytes":[97],"top_logprobs":[]}},)"
      R"({{"token":"{0}","logprob":{2},"bytes":[{4}],"top_logprobs":[)"
      R"({{"token":"{0}","logprob":{2},"bytes":[{4}]}},)"
      R"({{"token":"{1}","logprob":{3},"bytes":[{5}]}}]}}]}}}}]}})",
      second, other, logprob, logprob - gap, static_cast<int>(second[0]),
      static_cast<int>(other[0]));
}

std::string batch_line(const std::string& id, const std::string& answer) {
  return fmt::format(
      R"({{"id":"r","custom_id":"{}","response":{{"status_code":200,"body":{}}},"error":null}})",
      id, answer);
}

LineSide side_of(const std::string& text, const std::string& name) {
  auto lines = find_response_lines(text);
  EXPECT_TRUE(lines);
  return {.lines = std::move(*lines), .name = name, .fetch = {}};
}

std::string as_text(const std::vector<AnswerPair>& pairs) {
  std::string out;
  for (const AnswerPair& pair : pairs) {
    out += pair.key + comparison_json(pair.comparison).dump();
  }
  return out;
}

PairedSides streamed(const std::string& a, const std::string& b, Parallel& parallel) {
  const LineSide left = side_of(a, "A");
  const LineSide right = side_of(b, "B");
  const LinePairs pairs = pair_lines(left, right);
  PairedSides all;
  const std::size_t given =
      compare_lines(left, right, pairs, parallel, {.keep_steps = true}, [&](PairedSides&& one) {
        for (AnswerPair& pair : one.pairs) all.pairs.push_back(std::move(pair));
      });
  EXPECT_EQ(given, pairs.pairs.size());
  all.only_a = pairs.only_a;
  all.only_b = pairs.only_b;
  return all;
}

PairedSides in_memory(const std::string& a, const std::string& b) {
  std::vector<std::vector<Response>> sides;
  for (const auto& [text, name] : {std::pair(a, "A"), std::pair(b, "B")}) {
    auto responses = read_responses(text, name);
    EXPECT_TRUE(responses);
    for (Response& response : *responses) grade_response(response);
    sides.push_back(std::move(*responses));
  }
  return pair_sides(sides[0], sides[1]);
}

struct Files {
  std::string a, b;
};

// Twelve answers: equal ones, a drift, a near-tie; a broken line, an error and an id without a
// partner on each side.
Files batch_files(bool shuffled) {
  std::vector<std::string> a, b;
  for (int i = 0; i < 12; ++i) {
    const std::string id = "q" + std::to_string(i);
    a.push_back(batch_line(id, body("x", "y", -0.50390625, 0.0625)));
    b.push_back(batch_line(id, i % 3 == 0   ? body("x", "y", -0.50390625, 0.0625)
                               : i % 3 == 1 ? body("x", "y", -0.53515625, 0.0625)
                                            : body("y", "x", -0.50390625, 0.0625)));
  }
  a[4] = R"({"id":"r","custom_id":"q4","response":{"status_code":200,"body":{"choices":[{"ind)";
  b[5] = R"({"id":"r","custom_id":"q5","response":null,"error":{"code":"500","message":"no"}})";
  a.push_back(batch_line("only-a", body("x", "y", -0.5, 1.0)));
  b.push_back(batch_line("only-b", body("x", "y", -0.5, 1.0)));
  if (shuffled) std::reverse(b.begin(), b.end());
  Files files;
  for (const std::string& line : a) files.a += line + "\n";
  for (const std::string& line : b) files.b += line + "\n";
  return files;
}

// The chosen value as printed, and that of one alternative.
std::string printed(const std::string& chosen, const std::string& other) {
  return R"({"object":"chat.completion","choices":[{"index":0,"message":{"content":"x"},)"
         R"("finish_reason":"stop","logprobs":{"content":[{"token":"x","logprob":)" +
         chosen + R"(,"top_logprobs":[{"token":"x","logprob":)" + chosen +
         R"(},{"token":"y","logprob":)" + other + "}]}]}}]}\n";
}

// Zeros at a value's end are not printed: how fine the values are, the longest of all tells.
TEST(ResponseStream, AlternativesTellHowFineTheChosenValuesAre) {
  SerialParallel serial;
  const struct {
    const char *a, *b, *other;
    Tier tier;
  } cases[] = {
      {"-0.6", "-0.5", "-3.1", Tier::tolerance},  // to one decimal both may be -0.55
      {"-0.6", "-0.5", "-3.1234", Tier::token},  {"-0.75", "-0.76", "-3.1234", Tier::token},
      {"-0.6", "-0.5", "-1.25e-1", Tier::token}, {"-0.5", "-0.5", "-3.3", Tier::tolerance},
  };
  for (const auto& one : cases) {
    std::string a = printed(one.a, one.other), b = printed(one.b, one.other);
    a += a;  // a file of lines has two or more
    b += b;
    const PairedSides lines = streamed(a, b, serial);
    ASSERT_EQ(lines.pairs.size(), 2U);
    EXPECT_EQ(lines.pairs[0].comparison.tier, one.tier)
        << one.a << ' ' << one.b << ' ' << one.other;
    EXPECT_EQ(as_text(lines.pairs), as_text(in_memory(a, b).pairs));
  }
}

TEST(ResponseStream, GivesWhatIsGivenInMemory) {
  SerialParallel serial;
  for (const bool shuffled : {false, true}) {
    const Files files = batch_files(shuffled);
    const PairedSides whole = in_memory(files.a, files.b);
    const PairedSides lines = streamed(files.a, files.b, serial);
    EXPECT_EQ(lines.pairs.size(), 12U);
    EXPECT_EQ(as_text(lines.pairs), as_text(whole.pairs));
    EXPECT_EQ(lines.only_a, std::vector<std::string>{"only-a"});
    EXPECT_EQ(lines.only_b, std::vector<std::string>{"only-b"});
    EXPECT_EQ(whole.only_a, lines.only_a);
    EXPECT_EQ(whole.only_b, lines.only_b);
  }
}

TEST(ResponseStream, ThreadsChangeNothing) {
  const Files files = batch_files(true);
  SerialParallel serial;
  BackwardThreads threads;
  EXPECT_EQ(as_text(streamed(files.a, files.b, threads).pairs),
            as_text(streamed(files.a, files.b, serial).pairs));
}

// Completions list the alternatives of all steps under one name, and a step's own value may be
// among its alternatives only.
TEST(ResponseStream, OtherListsOfTheSameNameAreReadWhole) {
  const auto legacy = [](const char* token, const char* other) {
    return fmt::format(R"({{"object":"text_completion","model":"m","choices":[{{"index":0,"text":)"
                       R"("{0}","logprobs":{{"tokens":["{0}"],"token_logprobs":[-0.5000001],)"
                       R"("top_logprobs":[{{"{0}":-0.5000001,"{1}":-0.5300001}}]}}}}]}})",
                       token, other) +
           "\n";
  };
  const auto old = [](const char* token, const char* other) {
    return fmt::format(
               R"({{"choices":[{{"index":0,"message":{{"content":"{0}"}},"logprobs":)"
               R"({{"content":[{{"token":"{0}","top_logprobs":[{{"token":"{0}",)"
               R"("logprob":-0.5000001}},{{"token":"{1}","logprob":-0.5300001}}]}}]}}}}]}})",
               token, other) +
           "\n";
  };
  SerialParallel serial;
  for (const auto& [a, b] :
       {std::pair(legacy("x", "y") + legacy("x", "y"), legacy("x", "y") + legacy("y", "x")),
        std::pair(old("x", "y") + old("x", "y"), old("x", "y") + old("y", "x"))}) {
    const PairedSides whole = in_memory(a, b);
    const PairedSides lines = streamed(a, b, serial);
    EXPECT_EQ(as_text(lines.pairs), as_text(whole.pairs));
    ASSERT_EQ(lines.pairs.size(), 2U);
    ASSERT_TRUE(lines.pairs[1].comparison.divergence);
    EXPECT_EQ(lines.pairs[1].comparison.divergence->cause, ResponseCause::near_tie);
  }
}

TEST(ResponseStream, TheOrderOfLinesDoesNotMatterWithCustomIds) {
  SerialParallel serial;
  const Files straight = batch_files(false);
  const Files turned = batch_files(true);
  const auto verdicts = [&](const Files& files) {
    std::string out;
    for (const AnswerPair& pair : streamed(files.a, files.b, serial).pairs) {
      out += fmt::format("{} {} ", pair.key, name_of(pair.comparison.tier));
    }
    return out;
  };
  EXPECT_EQ(verdicts(straight), verdicts(turned));
  EXPECT_EQ(verdicts(straight).substr(0, 37), "q0 tolerance q1 token q2 different q3");
}

TEST(ResponseStream, OneBadLineLosesOnlyItsPair) {
  const Files files = batch_files(false);
  SerialParallel serial;
  PairSummary summary;
  for (const AnswerPair& pair : streamed(files.a, files.b, serial).pairs) {
    summary.add(pair);
    const bool bad = pair.key == "q4" || pair.key == "q5";
    EXPECT_EQ(pair.comparison.tier == Tier::inconclusive, bad) << pair.key;
  }
  const auto json = summary.json();
  EXPECT_EQ(json["tiers"]["tolerance"], 4);  // q0, q3, q6, q9
  EXPECT_EQ(json["tiers"]["token"], 3);      // q1, q7, q10; q4 is broken
  EXPECT_EQ(json["tiers"]["different"], 3);  // q2, q8, q11; q5 is an error
  EXPECT_EQ(json["tiers"]["inconclusive"], 2);
  EXPECT_EQ(json["causes"]["near_tie"], 3);
  EXPECT_EQ(json["inconclusive"], (std::vector<std::string>{"q4", "q5"}));
  EXPECT_EQ(summary.weakest(), Tier::inconclusive);
}

TEST(ResponseStream, ALineOfAnotherKindIsNoEndOfTheFile) {
  const std::string good = batch_line("q", body("x", "y", -0.5, 1.0));
  const auto responses = read_responses(good + "\n{\"weather\":\"fine\"}\n" + good + "\n", "A");
  ASSERT_TRUE(responses);
  ASSERT_EQ(responses->size(), 3U);
  EXPECT_EQ((*responses)[1].format, "unreadable");
  EXPECT_FALSE((*responses)[1].error.empty());
  EXPECT_FALSE((*responses)[2].choices.empty());
}

TEST(ResponseStream, BareBodiesArePairedInOrderAndRepeatedIdsAreCounted) {
  const std::string one = body("x", "y", -0.5, 1.0) + "\n";
  const LineSide bare = side_of(one + one + "\n" + one, "A");
  EXPECT_FALSE(bare.lines.by_custom_id);
  ASSERT_EQ(bare.lines.lines.size(), 3U);
  EXPECT_EQ(bare.lines.lines[2].number, 4);
  const std::string q = batch_line("q", body("x", "y", -0.5, 1.0)) + "\n";
  const LineSide twice = side_of(q + q, "A");
  const LineSide thrice = side_of(q + q + q, "B");
  const LinePairs pairs = pair_lines(twice, thrice);
  EXPECT_TRUE(pairs.by_custom_id);
  ASSERT_EQ(pairs.pairs.size(), 2U);
  EXPECT_EQ(pairs.pairs[1].key, "q#2");
  EXPECT_EQ(pairs.only_b, std::vector<std::string>{"q#3"});
  EXPECT_EQ(pairs.repeated_a, 1);
  EXPECT_EQ(pairs.repeated_b, 2);
  EXPECT_FALSE(pair_lines(bare, twice).by_custom_id);
}

TEST(ResponseStream, AStopLeavesTheFront) {
  const Files files = batch_files(false);
  const LineSide left = side_of(files.a, "A");
  const LineSide right = side_of(files.b, "B");
  const LinePairs pairs = pair_lines(left, right);
  SerialParallel serial;
  std::stop_source source;
  std::vector<std::string> keys;
  const std::size_t given = compare_lines(left, right, pairs, serial, {.stop = source.get_token()},
                                          [&](PairedSides&& one) {
                                            keys.push_back(one.pairs[0].key);
                                            if (keys.size() == 3) source.request_stop();
                                          });
  EXPECT_EQ(given, 3U);
  EXPECT_EQ(keys, (std::vector<std::string>{"q0", "q1", "q2"}));
}

TEST(ResponseStream, SamplesAreThoseOfTheResponses) {
  const Files files = batch_files(false);
  const LineSide side = side_of(files.a, "A");
  BackwardThreads threads;
  const std::vector<SampleRecord> records = read_samples(side, threads, {});
  ASSERT_EQ(records.size(), 13U);
  EXPECT_EQ(records[0].custom_id, "q0");
  ASSERT_EQ(records[0].answers.size(), 1U);
  EXPECT_EQ(records[0].answers[0].text, "ax");
  EXPECT_DOUBLE_EQ(*records[0].answers[0].mean_logprob, (-0.125 - 0.50390625) / 2.0);
  EXPECT_FALSE(records[0].answers[0].token_ids);
  EXPECT_TRUE(records[4].answers.empty());
  EXPECT_EQ(records[4].custom_id, "q4");
}

// Beside the answer of a batch's line stands what was asked: under "request", or under "body" as in
// the batch's input.
TEST(ResponseStream, WhatWasAskedIsReadBesideACustomId) {
  const auto line = [](const std::string& key, double temperature, const std::string& answer) {
    return fmt::format(
        R"({{"custom_id":"q","{}":{{"model":"m","messages":[{{"role":"user","content":"one"}}],)"
        R"("temperature":{}}},"response":{}}})"
        "\n",
        key, temperature, answer);
  };
  const std::string x = body("x", "y", -0.50390625, 0.0625);
  const std::string y = body("y", "x", -0.50390625, 0.0625);
  const auto wrapped = [](const std::string& answer) {
    return R"({"status_code":200,"body":)" + answer + "}";
  };
  SerialParallel serial;
  for (const std::string key : {"request", "body"}) {
    for (const bool bare : {false, true}) {
      std::string a, b;
      for (int i = 0; i < 3; ++i) {
        a += line(key, 0.75, bare ? x : wrapped(x));
        b += line(key, 3.0, bare ? y : wrapped(y));
      }
      const PairedSides lines = streamed(a, b, serial);
      EXPECT_EQ(as_text(lines.pairs), as_text(in_memory(a, b).pairs));
      ASSERT_EQ(lines.pairs.size(), 3U);
      for (const AnswerPair& pair : lines.pairs) {
        ASSERT_TRUE(pair.comparison.divergence);
        EXPECT_EQ(pair.comparison.divergence->cause, ResponseCause::sampler);
      }
      const SampleSides sides = sample_sides(read_samples(side_of(a, "A"), serial, {}),
                                             read_samples(side_of(b, "B"), serial, {}));
      ASSERT_EQ(sides.settings.size(), 1U) << key << bare;
      EXPECT_EQ(sides.settings[0].name, "temperature");
      EXPECT_EQ(sides.settings[0].a, "0.75");
      EXPECT_EQ(sides.settings[0].b, "3");
      EXPECT_TRUE(sides.by_prompt);
    }
  }
}

TEST(ResponseLines, OtherFilesAreReadWhole) {
  const std::string one = body("x", "y", -0.5, 1.0);
  EXPECT_FALSE(find_response_lines(one));
  EXPECT_FALSE(find_response_lines("[" + one + ",\n" + one + "]\n"));
  EXPECT_FALSE(find_response_lines("data: " + one + "\n\ndata: " + one + "\n"));
  EXPECT_FALSE(find_response_lines("{\n  \"id\": \"x\"\n}\n"));
  EXPECT_FALSE(find_response_lines("HTTP/1.1 200 OK\n\n" + one));
  const std::string event = R"({"object":"chat.completion.chunk","choices":[]})";
  EXPECT_FALSE(find_response_lines(event + "\n" + event + "\n"));
}

// What a probe asked about the server is between its answers, and none of them.
TEST(ResponseLines, AProbesDiscoveryIsPassedOver) {
  const std::string discovery =
      R"({"stage":"discovery","url":"http://h/v1/models","request":"","status":404,"body":"{}"})";
  const std::string one = body("x", "y", -0.5, 1.0);
  const auto found = find_response_lines(discovery + "\n" + one + "\n" + discovery + "\n" + one);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->lines.size(), 2U);
  EXPECT_EQ(found->lines[0].number, 2);
  EXPECT_EQ(found->lines[1].number, 4);
  EXPECT_FALSE(find_response_lines(discovery + "\n" + discovery));
}

TEST(ResponseLines, AReaderFindsTheSameLines) {
  const std::string one = body("x", "y", -0.5, 1.0);
  // Lines on both sides of the ends of the reader's pieces, which are as small as one byte.
  for (const std::string& text : {one + "\n" + one + "\r\n\n" + one, one + "\n" + one + "\n",
                                  "\xEF\xBB\xBF" + one + "\n\n\n  " + one + "  \n"}) {
    const auto plain = find_response_lines(text);
    ASSERT_TRUE(plain);
    for (const std::size_t piece : {1U, 7U, 1000U, 1U << 20U}) {
      std::size_t at = 0;
      const TextReader reader = [&](char* target, std::size_t capacity) {
        const std::size_t count = std::min({piece, capacity, text.size() - at});
        text.copy(target, count, at);
        at += count;
        return count;
      };
      const auto read = find_response_lines(text, reader);
      ASSERT_TRUE(read);
      ASSERT_EQ(read->lines.size(), plain->lines.size());
      for (std::size_t i = 0; i < plain->lines.size(); ++i) {
        EXPECT_EQ(read->lines[i].text, one);
        EXPECT_EQ(plain->lines[i].text, one);
        EXPECT_EQ(read->lines[i].number, plain->lines[i].number);
      }
    }
  }
}

TEST(ResponseLines, TheCustomIdIsFoundWhereverItStands) {
  EXPECT_EQ(custom_id_of_line(R"({"custom_id":"a","response":{)"), "a");
  EXPECT_EQ(
      custom_id_of_line(R"( { "response" : {"custom_id":"no","x":["}"]} , "custom_id" : "b"})"),
      "b");
  EXPECT_EQ(custom_id_of_line(R"({"id":"\"custom_id\"","custom_id":"c\u0041","error":null})"),
            "cA");
  EXPECT_EQ(custom_id_of_line(R"({"custom_id":"a","choices":[]})"), "");
  EXPECT_EQ(custom_id_of_line(R"({"custom_id":7,"response":{}})"), "");
  EXPECT_EQ(custom_id_of_line(R"({"n":1,"custom_id":"d","result":{"type":"succeeded"}})"), "d");
  EXPECT_EQ(custom_id_of_line("not JSON"), "");
}

}  // namespace
}  // namespace driftscope
