// SPDX-License-Identifier: Apache-2.0
// The samples of every response shape, when they are there: what INDEX.tsv says of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/import/response_file.h"
#include "analysis/responses/response_lint.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;

const fs::path kSamples = fs::path(DRIFTSCOPE_SHARED_DATA) / "vendor/samples";

std::vector<Response> sample(const std::string& name) {
  std::ifstream file(kSamples / name, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  auto responses = read_responses(text.str(), name);
  EXPECT_TRUE(responses) << name << ": " << (responses ? "" : responses.error().message);
  if (!responses) return {};
  for (Response& response : *responses) grade_response(response);
  return *responses;
}

Response only(const std::string& name) {
  auto all = sample(name);
  EXPECT_EQ(all.size(), 1U) << name;
  return all.empty() ? Response{} : all[0];
}

bool has_finding(const Response& response, std::string_view id) {
  const auto findings = lint_response(response);
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& f) { return f.id == id; });
}

std::string joined(const ResponseChannel& channel) {
  std::string bytes;
  for (const ResponseStep& step : channel.steps) bytes += step.token.bytes;
  return bytes;
}

class Samples : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kSamples)) GTEST_SKIP() << "the samples are not there";
  }
};

TEST_F(Samples, EveryOneParses) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(kSamples)) {
    if (entry.path().extension() == ".tsv") continue;
    EXPECT_FALSE(sample(entry.path().filename()).empty()) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 70U);
}

TEST_F(Samples, OpenAiChat) {
  const Response r = only("openai_chat.json");
  EXPECT_EQ(r.format, "openai");
  EXPECT_EQ(r.fingerprint, "fp_1a2b3c4d5e");
  ASSERT_EQ(r.choices.size(), 1U);
  const ResponseChannel& content = r.choices[0].content;
  ASSERT_EQ(content.steps.size(), 2U);
  EXPECT_EQ(content.steps[0].alternatives.size(), 3U);
  EXPECT_EQ(joined(content), content.text);
  EXPECT_FALSE(content.steps[0].token.id);
  EXPECT_EQ(content.steps[0].logprob.value, -0.03125);
  EXPECT_EQ(content.steps[1].logprob.decimals, 7);

  const Response n2 = only("openai_chat_n2.json");
  ASSERT_EQ(n2.choices.size(), 2U);
  EXPECT_EQ(n2.choices[0].content.text, "Paris.");
  EXPECT_EQ(n2.choices[1].content.text, "The capital");
  EXPECT_EQ(rank_of_chosen(n2.choices[1].content.steps[0])->first, 2);

  EXPECT_FALSE(only("openai_chat_no_logprobs.json").choices[0].content.has_steps);
  const Response refusal = only("openai_chat_refusal.json");
  EXPECT_EQ(refusal.choices[0].refusal.text, "I can't help.");
  EXPECT_EQ(refusal.choices[0].refusal.steps.size(), 4U);
  EXPECT_FALSE(refusal.choices[0].content.has_text);
  const Response sentinel = only("openai_chat_sentinel.json");
  EXPECT_TRUE(has_finding(sentinel, "logprob_unknown"));
}

TEST_F(Samples, ToolCallsComeTogether) {
  const Response whole = only("openai_chat_toolcall.json");
  const Response stream = only("openai_chat_stream_toolcall.sse");
  ASSERT_EQ(whole.choices[0].tool_calls.size(), 1U);
  ASSERT_EQ(stream.choices[0].tool_calls.size(), 1U);
  EXPECT_EQ(stream.choices[0].tool_calls[0].name, "get_capital");
  EXPECT_EQ(stream.choices[0].tool_calls[0].arguments, R"({"country":"France"})");
  EXPECT_EQ(stream.choices[0].finish_reason, "tool_calls");
}

TEST_F(Samples, OpenAiStreams) {
  const Response r = only("openai_chat_stream.sse");
  EXPECT_EQ(r.choices[0].content.text, "Paris.");
  EXPECT_EQ(r.choices[0].content.steps.size(), 2U);
  EXPECT_EQ(r.usage.completion_tokens, 2);
  const Response n2 = only("openai_chat_stream_n2.sse");
  ASSERT_EQ(n2.choices.size(), 2U);
  EXPECT_EQ(n2.choices[0].content.text, "Paris.");
  EXPECT_EQ(n2.choices[1].content.text, "The capital");
}

TEST_F(Samples, OpenAiCompletions) {
  const Response r = only("openai_completion_legacy.json");
  EXPECT_EQ(r.choices[0].content.steps.size(), 2U);
  EXPECT_TRUE(r.prompt_steps.empty());
  const Response echo = only("openai_completion_legacy_echo.json");
  EXPECT_EQ(echo.prompt_steps.size(), 5U);
  EXPECT_EQ(echo.prompt_steps[0].logprob.state, LogprobState::null);
  EXPECT_EQ(echo.prompt_text, "The capital of France is");
  EXPECT_EQ(echo.choices[0].content.text, " Paris.");
  EXPECT_EQ(echo.choices[0].content.steps.size(), 2U);
  const Response bytes = only("openai_completion_legacy_bytes.json");
  EXPECT_EQ(joined(bytes.choices[0].content), "\xF0\x9F\x98\x8A");
}

TEST_F(Samples, OpenAiResponses) {
  for (const char* name : {"openai_responses.json", "openai_responses_stream.sse"}) {
    const Response r = only(name);
    EXPECT_EQ(r.format, "openai-responses");
    EXPECT_EQ(r.choices[0].content.text, "Paris.");
    EXPECT_EQ(r.choices[0].content.steps.size(), 2U) << name;
    EXPECT_EQ(r.choices[0].finish_reason, "stop");
    EXPECT_EQ(r.temperature, 0.0);
    EXPECT_TRUE(r.fingerprint.empty());
  }
}

TEST_F(Samples, Batches) {
  const auto lines = sample("openai_batch_output.jsonl");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].custom_id, "q-2");
  EXPECT_EQ(lines[0].choices[0].content.text, "The capital");
  EXPECT_EQ(lines[2].custom_id, "q-3");
  EXPECT_EQ(lines[2].http_status, 429);
  EXPECT_FALSE(lines[2].error.empty());
  EXPECT_EQ(lines[3].custom_id, "q-4");
  EXPECT_FALSE(lines[3].error.empty());
  const auto anthropic = sample("anthropic_batch.jsonl");
  ASSERT_EQ(anthropic.size(), 3U);
  EXPECT_EQ(anthropic[0].choices[0].content.text, "Paris.");
  EXPECT_NE(anthropic[1].error.find("Overloaded"), std::string::npos);
  EXPECT_NE(anthropic[2].error.find("expired"), std::string::npos);
}

TEST_F(Samples, Azure) {
  EXPECT_EQ(only("azure_chat.json").format, "azure");
  const Response r = only("azure_chat_stream.sse");
  EXPECT_EQ(r.format, "azure");
  EXPECT_EQ(r.choices.size(), 1U);
  EXPECT_EQ(r.choices[0].content.text, "Paris.");
  EXPECT_EQ(r.choices[0].content.steps.size(), 2U);
  EXPECT_EQ(r.model, "gpt-4o-2024-08-06");
}

TEST_F(Samples, Vllm) {
  const Response r = only("vllm_chat_extras.json");
  EXPECT_EQ(r.format, "vllm");
  ASSERT_EQ(r.choices[0].content.steps.size(), 3U);
  EXPECT_TRUE(r.choices[0].content.steps[2].token.bytes.empty());
  EXPECT_TRUE(r.choices[0].content.steps[0].token.id);
  EXPECT_FALSE(r.prompt_steps.empty());
  EXPECT_EQ(r.prompt_steps.size(), r.prompt_ids.size());
  const Response ids = only("vllm_chat_token_id_form.json");
  EXPECT_EQ(ids.choices[0].content.steps[0].token.id, 59604);
  EXPECT_EQ(ids.choices[0].content.steps[0].alternatives[1].token.id, 785);
  EXPECT_EQ(joined(ids.choices[0].content), "Paris.");
  const Response legacy = only("vllm_completion_legacy.json");
  EXPECT_EQ(legacy.choices[0].content.steps.size(), 2U);
  EXPECT_EQ(legacy.choices[0].content.steps[1].alternatives[2].logprob.state,
            LogprobState::sentinel);
  const Response stream = only("vllm_chat_stream.sse");
  EXPECT_EQ(stream.prompt_ids, (std::vector<std::int64_t>{151644, 872, 198}));
  ASSERT_EQ(stream.choices[0].content.steps.size(), 3U);
  EXPECT_EQ(stream.choices[0].content.steps[2].token.id, 151645);
  const Response logits = only("vllm_chat_raw_logits.json");
  EXPECT_EQ(logits.scale, LogprobScale::logit);
  EXPECT_TRUE(has_finding(logits, "logits_in_logprob"));
}

TEST_F(Samples, Sglang) {
  const Response r = only("sglang_generate.json");
  EXPECT_EQ(r.format, "sglang");
  ASSERT_EQ(r.choices[0].content.steps.size(), 3U);
  EXPECT_EQ(r.choices[0].content.steps[2].token.id, 151645);
  EXPECT_EQ(r.prompt_steps[0].logprob.state, LogprobState::null);
  EXPECT_EQ(r.usage.cached_tokens, 2);
  const Response odd = only("sglang_generate_nonstandard.json");
  EXPECT_EQ(odd.choices[0].content.steps[1].alternatives[1].logprob.state,
            LogprobState::minus_infinity);
  EXPECT_EQ(odd.prompt_steps[2].alternatives[1].logprob.state, LogprobState::not_a_number);
  EXPECT_TRUE(has_finding(odd, "json_oddity"));
  EXPECT_EQ(only("sglang_chat.json").format, "sglang");
  EXPECT_EQ(only("sglang_completion_legacy.json").choices[0].content.steps.size(), 2U);
}

TEST_F(Samples, LlamaServer) {
  const Response r = only("llamacpp_completion.json");
  EXPECT_EQ(r.format, "llama.cpp");
  EXPECT_EQ(r.choices[0].content.steps[0].token.id, 12366);
  EXPECT_FALSE(r.seed);
  const auto& last = r.choices[0].content.steps[1].alternatives;
  EXPECT_TRUE(std::any_of(last.begin(), last.end(), [](const TokenAlternative& other) {
    return other.logprob.state == LogprobState::lowest_float;
  }));
  EXPECT_TRUE(has_finding(only("llamacpp_completion_post_sampling.json"), "after_sampling"));
  const Response fake = only("llamacpp_completion_speculative_fake.json");
  EXPECT_TRUE(fake.fake_certainty);
  EXPECT_TRUE(has_finding(fake, "certain_without_alternatives"));
  const Response old = only("llamacpp_completion_pre2024-12.json");
  EXPECT_NEAR(old.choices[0].content.steps[0].logprob.value, std::log(0.7778), 1e-12);
  EXPECT_EQ(old.choices[0].finish_reason, "limit");
  const Response stream = only("llamacpp_completion_stream.sse");
  EXPECT_EQ(stream.choices[0].content.text, " Paris.");
  EXPECT_EQ(stream.choices[0].content.steps.size(), 2U);
  EXPECT_EQ(only("llamacpp_chat.json").format, "llama.cpp");
  EXPECT_EQ(only("llamacpp_oai_completion.json").choices[0].content.steps[0].token.id, 12366);
}

TEST_F(Samples, Ollama) {
  const Response r = only("ollama_chat.json");
  EXPECT_EQ(r.format, "ollama");
  EXPECT_EQ(r.choices[0].content.steps.size(), 2U);
  EXPECT_EQ(r.usage.completion_tokens, 3);
  const Response generate = only("ollama_generate.json");
  EXPECT_EQ(generate.choices[0].content.steps[0].token.id, 60704);
  EXPECT_EQ(generate.prompt_ids.size(), 14U);
  const Response stream = only("ollama_chat_stream.ndjson");
  EXPECT_EQ(stream.choices[0].content.text, "Paris.");
  EXPECT_EQ(stream.choices[0].content.steps.size(), 2U);
  EXPECT_TRUE(has_finding(only("ollama_chat_prob_as_logprob.json"), "probability_in_logprob"));
  EXPECT_TRUE(has_finding(only("ollama_openai_chat.json"), "constant_fingerprint"));
}

TEST_F(Samples, Gemini) {
  const Response r = only("gemini_generate.json");
  EXPECT_EQ(r.format, "gemini");
  EXPECT_EQ(r.choices[0].content.steps[0].alternatives[1].token.id, 818);
  const Response outside = only("gemini_chosen_not_in_top.json");
  EXPECT_EQ(outside.choices[0].index, 1);
  const auto rank = rank_of_chosen(outside.choices[0].content.steps[0]);
  EXPECT_EQ(rank->first, 3);
  EXPECT_EQ(rank->last, 0);
  const Response proto = only("gemini_proto_numbers.json");
  EXPECT_EQ(proto.choices[0].content.steps[0].logprob.value, 0.0);
  EXPECT_EQ(proto.choices[0].content.steps[0].token.id, 0);
  EXPECT_EQ(proto.choices[0].content.steps[0].alternatives[1].logprob.state,
            LogprobState::minus_infinity);
  EXPECT_TRUE(has_finding(only("gemini_avg_only.json"), "mean_only"));
  const Response stream = only("gemini_stream.sse");
  EXPECT_EQ(stream.choices[0].content.text, "Paris.");
}

TEST_F(Samples, Tgi) {
  const Response r = only("tgi_generate_details.json");
  ASSERT_EQ(r.choices[0].content.steps.size(), 3U);
  EXPECT_TRUE(r.choices[0].content.steps[2].special);
  EXPECT_EQ(r.prompt_ids, (std::vector<std::int64_t>{1, 415}));
  const Response stream = only("tgi_stream.sse");
  EXPECT_EQ(stream.choices[0].content.text, " Paris.");
  EXPECT_EQ(stream.choices[0].content.steps.size(), 3U);
  EXPECT_EQ(only("tgi_chat.json").format, "tgi");
}

TEST_F(Samples, Cohere) {
  const Response r = only("cohere_v2_chat.json");
  EXPECT_EQ(r.choices[0].content.steps[0].token.id, 59713);
  EXPECT_EQ(r.usage.prompt_tokens, 71);
  const Response multi = only("cohere_v2_multi_token_item.json");
  ASSERT_EQ(multi.choices[0].content.steps.size(), 2U);
  EXPECT_TRUE(multi.choices[0].content.steps[1].text_of_group);
  EXPECT_EQ(multi.choices[0].content.steps[1].logprob.value, -0.0001);
  EXPECT_EQ(only("cohere_v2_stream.sse").choices[0].content.steps.size(), 2U);
  EXPECT_EQ(only("cohere_v1_generate.json").choices[0].mean_logprob, -0.425);
}

TEST_F(Samples, TogetherFireworksGroqOpenRouterDeepSeek) {
  const Response together = only("together_chat.json");
  EXPECT_EQ(together.format, "together");
  EXPECT_EQ(together.choices[0].content.steps[0].token.id, 60704);
  EXPECT_EQ(together.seed, "12345678");
  const Response stream = only("together_chat_stream.sse");
  EXPECT_EQ(stream.choices[0].content.steps[1].token.id, 13);
  const Response echo = only("together_completion_echo.json");
  EXPECT_EQ(echo.prompt_steps.size(), 6U);
  EXPECT_EQ(echo.choices[0].content.steps.size(), 2U);
  const Response fireworks = only("fireworks_chat_new.json");
  EXPECT_EQ(fireworks.format, "fireworks");
  EXPECT_EQ(fireworks.choices[0].content.steps[0].logprob.value, -0.0488);
  EXPECT_EQ(fireworks.choices[0].content.steps[0].sampling_logprob->value, 0.0);
  EXPECT_EQ(only("fireworks_chat_legacy.json").choices[0].content.steps[1].token.id, 13);
  const Response groq = only("groq_chat_debug.json");
  EXPECT_EQ(groq.choices[0].token_ids, (std::vector<std::int64_t>{60704, 13, 128009}));
  EXPECT_EQ(groq.prompt_ids.size(), 3U);
  EXPECT_EQ(groq.seed, "7");
  const Response router = only("openrouter_chat.json");
  EXPECT_EQ(router.provider, "DeepInfra");
  EXPECT_TRUE(router.fingerprint.empty());
  const Response mixed = only("openrouter_stream_mixed.sse");
  EXPECT_EQ(mixed.choices[0].content.steps[0].token.id, 53091);
  const Response deepseek = only("deepseek_chat.json");
  EXPECT_EQ(joined(deepseek.choices[0].content), "\xF0\x9F\x98\x8A");
  EXPECT_EQ(deepseek.choices[0].reasoning.steps.size(), 3U);
  EXPECT_EQ(deepseek.choices[0].reasoning.text, "Pick one.");
}

TEST_F(Samples, AnthropicBedrockMistral) {
  EXPECT_EQ(only("anthropic_stream.sse").choices[0].content.text, "Paris.");
  EXPECT_EQ(only("anthropic_message.json").choices[0].content.has_steps, false);
  EXPECT_EQ(only("bedrock_converse.json").choices[0].content.text, "Paris.");
  EXPECT_EQ(only("bedrock_converse_stream.jsonl").choices[0].finish_reason, "end_turn");
  EXPECT_EQ(only("bedrock_llama_invoke.json").choices[0].content.text, " Paris.");
  EXPECT_EQ(only("mistral_chat.json").format, "mistral");
  const Response chunked = only("mistral_chat_chunked_content.json");
  EXPECT_EQ(chunked.choices[0].content.text, "Paris.");
  EXPECT_EQ(chunked.choices[0].reasoning.text, "Simple fact.");
}

TEST_F(Samples, OddNumbersKeepTheirState) {
  const Response r = only("x_nonstandard_numbers.json");
  const auto& steps = r.choices[0].content.steps;
  ASSERT_EQ(steps.size(), 7U);
  const LogprobState expected[] = {LogprobState::number,         LogprobState::not_a_number,
                                   LogprobState::null,           LogprobState::minus_infinity,
                                   LogprobState::minus_infinity, LogprobState::sentinel,
                                   LogprobState::number};
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(steps[i].logprob.state, expected[i]) << i;
  EXPECT_TRUE(std::signbit(steps[6].logprob.value));
}

TEST_F(Samples, LostBytesAreSeen) {
  EXPECT_FALSE(has_finding(only("x_split_utf8_good.json"), "lossy_token_bytes"));
  EXPECT_TRUE(has_finding(only("x_split_utf8_lossy.json"), "lossy_token_bytes"));
  const Response headers = only("x_headers_openai.txt");
  EXPECT_EQ(headers.http_status, 200);
  EXPECT_EQ(headers.request_id, "req_0123456789abcdef0123456789abcdef");
}

}  // namespace
}  // namespace driftscope
