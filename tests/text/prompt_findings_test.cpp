// SPDX-License-Identifier: Apache-2.0
// What is wrong with a prompt: each finding, and the cases of public reports.
#include "engine/text/prompt_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/text/tiny_tokenizer.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<TokenId> ids(std::initializer_list<std::int32_t> values) {
  std::vector<TokenId> list;
  for (const std::int32_t value : values) list.push_back(TokenId{value});
  return list;
}

std::vector<std::string> names(const std::vector<PromptFinding>& findings) {
  std::vector<std::string> list;
  for (const PromptFinding& finding : findings) list.push_back(finding.id);
  return list;
}

const PromptFinding* find(const std::vector<PromptFinding>& findings, std::string_view id) {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const PromptFinding& finding) { return finding.id == id; });
  return found == findings.end() ? nullptr : &*found;
}

PromptFacts facts_of(std::vector<TokenId> prompt, std::int32_t bos) {
  PromptFacts facts;
  facts.ids = std::move(prompt);
  facts.bos = TokenId{bos};
  return facts;
}

// Bytes as ids 0 to 255, <s> 256, </s> 257, <|u|> 258, <|a|> 259, added in front: <s>.
std::shared_ptr<const Tokenizer> chat_tokenizer() {
  nlohmann::json document = byte_level_json({});
  int id = 256;
  for (const char* special : {"<s>", "</s>", "<|u|>", "<|a|>"}) {
    document["added_tokens"].push_back({{"id", id++},
                                        {"content", special},
                                        {"special", true},
                                        {"normalized", false},
                                        {"single_word", false},
                                        {"lstrip", false},
                                        {"rstrip", false}});
  }
  document["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair", nlohmann::json::array()},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {256}}, {"tokens", {"<s>"}}}}}}};
  return must_open(document);
}

ChatTemplates chat_with(std::string_view source) {
  return chat_templates_of(source, "test", {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
}

constexpr std::string_view kTemplate =
    "{{ bos_token }}{% for m in messages %}{{ '<|u|>' if m.role == 'user' else '<|a|>' }}"
    "{{ m.content }}{{ eos_token }}{% endfor %}";

// As the command line makes one from messages.
PromptFacts rendered_facts(const ChatTemplates& chat, const Tokenizer& tokenizer,
                           const Json& messages, bool add_special = false) {
  PromptFacts facts;
  facts.request = ChatRequest{.messages = messages};
  const auto rendered =
      render_chat(*chat.choose("", false), chat.special_tokens, *facts.request, {});
  EXPECT_TRUE(rendered) << rendered.error().message;
  facts.rendered = *rendered;
  facts.text = rendered->text;
  const auto encoded = tokenizer.encode(rendered->text, {.add_special_tokens = add_special});
  EXPECT_TRUE(encoded) << encoded.error().message;
  for (const EncodedToken& token : *encoded) facts.ids.push_back(token.id);
  take_bos_facts(chat, tokenizer, facts);
  return facts;
}

Json user(std::string_view text) { return Json::array({{{"role", "user"}, {"content", text}}}); }

TEST(PromptFindings, DoubleBos) {
  const auto findings = find_prompt_findings(facts_of(ids({128000, 128000, 128006}), 128000));
  ASSERT_THAT(names(findings), ElementsAre("double_bos"));
  EXPECT_EQ(findings[0].severity, PromptSeverity::warning);
  EXPECT_THAT(findings[0].text, HasSubstr("2 BOS tokens, id 128000, at 0,1"));
  EXPECT_THAT(findings[0].text, HasSubstr("1 position further"));
  EXPECT_EQ(findings[0].evidence, (Json{{"bos", 128000}, {"positions", {0, 1}}}));
  EXPECT_THAT(names(find_prompt_findings(facts_of(ids({1, 5, 1, 1}), 1))), IsEmpty());
}

TEST(PromptFindings, MissingBos) {
  PromptFacts facts = facts_of(ids({5, 6}), 1);
  EXPECT_THAT(find_prompt_findings(facts), IsEmpty());  // not known whether one is wanted
  facts.bos_expected = false;
  EXPECT_THAT(find_prompt_findings(facts), IsEmpty());
  facts.bos_expected = true;
  EXPECT_THAT(names(find_prompt_findings(facts)), ElementsAre("missing_bos"));
  facts.ids = ids({1, 5});
  EXPECT_THAT(find_prompt_findings(facts), IsEmpty());
}

TEST(PromptFindings, ARenderedTemplateIsTokenisedOnce) {
  const auto tokenizer = chat_tokenizer();
  const ChatTemplates chat = chat_with(kTemplate);
  EXPECT_THAT(names(find_prompt_findings(rendered_facts(chat, *tokenizer, user("hi")))), IsEmpty());
  EXPECT_THAT(names(find_prompt_findings(rendered_facts(chat, *tokenizer, user("hi"), true))),
              ElementsAre("double_bos"));
  const ChatTemplates without =
      chat_with("{% for m in messages %}<|u|>{{ m.content }}{% endfor %}");
  EXPECT_THAT(names(find_prompt_findings(rendered_facts(without, *tokenizer, user("hi")))),
              ElementsAre("missing_bos"));
}

TEST(PromptFindings, TemplateTwice) {
  const auto tokenizer = chat_tokenizer();
  const ChatTemplates chat = chat_with(kTemplate);
  const auto twice =
      find_prompt_findings(rendered_facts(chat, *tokenizer, user("<s><|u|>hi</s><|a|>")));
  ASSERT_NE(find(twice, "template_twice"), nullptr);
  EXPECT_EQ(find(twice, "template_twice")->evidence["mark"], "<|u|>");
  // As ids only.
  PromptFacts facts;
  facts.ids = ids({256, 258, 256, 258, 'h', 257});
  facts.ids_given = true;
  take_bos_facts(chat, *tokenizer, facts);
  EXPECT_THAT(names(find_prompt_findings(facts)), ElementsAre("template_twice"));
  facts.ids = ids({256, 258, 'h', 257, 258, 'h', 257});  // two turns
  EXPECT_THAT(find_prompt_findings(facts), IsEmpty());
}

TEST(PromptFindings, RetokenisedAndSpecialTokensAsText) {
  nlohmann::json merged = byte_level_json({"h i"});  // "hi" is 256
  merged["added_tokens"].push_back({{"id", 257}, {"content", "<|u|>"}, {"special", true}});
  const auto tokenizer = must_open(merged);
  PromptFacts facts;
  facts.tokenizer = tokenizer.get();
  facts.ids_given = true;
  facts.ids = ids({256, '!'});
  EXPECT_THAT(find_prompt_findings(facts), IsEmpty());
  facts.ids = ids({'!', 'h', 'i'});
  auto findings = find_prompt_findings(facts);
  ASSERT_THAT(names(findings), ElementsAre("retokenised_ids_differ"));
  EXPECT_EQ(findings[0].evidence["position"], 1);
  EXPECT_EQ(findings[0].evidence["other_id"], 256);
  facts.ids = ids({'<', '|', 'u', '|', '>', 257});
  findings = find_prompt_findings(facts);
  ASSERT_NE(find(findings, "special_tokens_as_text"), nullptr);
  EXPECT_EQ(find(findings, "special_tokens_as_text")->evidence,
            (Json{{"id", 257}, {"as_text", 1}, {"as_token", 1}}));
  // A text tokenised with special tokens as plain text.
  facts.text = "<|u|>";
  facts.ids_given = false;
  facts.ids = ids({'<', '|', 'u', '|', '>'});
  EXPECT_THAT(names(find_prompt_findings(facts)), ElementsAre("special_tokens_as_text"));
  facts.ids = ids({257});
  EXPECT_THAT(find_prompt_findings(facts), IsEmpty());
  facts.vendor_ids = ids({257, 256});
  findings = find_prompt_findings(facts);
  ASSERT_THAT(names(findings), ElementsAre("retokenised_ids_differ"));
  EXPECT_EQ(findings[0].evidence["position"], 1);
  EXPECT_TRUE(findings[0].evidence["id"].is_null());
}

TEST(PromptFindings, DateSpaceAndTemplate) {
  const auto tokenizer = chat_tokenizer();
  const ChatTemplates dated = chat_with(
      "{{ bos_token }}{{ strftime_now('%d %b %Y') }}\n<|u|>{{ messages[0].content | trim }}\n");
  auto findings = find_prompt_findings(rendered_facts(dated, *tokenizer, user("hi ")));
  ASSERT_THAT(names(findings), ElementsAre("date_in_template"));
  EXPECT_EQ(findings[0].evidence["date"], "2024-07-26");
  findings = find_prompt_findings(rendered_facts(chat_with(kTemplate), *tokenizer, user("hi \n")));
  ASSERT_THAT(names(findings), ElementsAre("trailing_whitespace"));
  EXPECT_EQ(findings[0].evidence["white_space"], " \n");
  PromptFacts plain;
  plain.text = "Once upon a time ";
  EXPECT_THAT(names(find_prompt_findings(plain)), ElementsAre("trailing_whitespace"));
  plain.text = "Once upon a time";
  EXPECT_THAT(find_prompt_findings(plain), IsEmpty());
  plain.template_problem = "no such template";
  EXPECT_THAT(names(find_prompt_findings(plain)), ElementsAre("unknown_template"));
}

TEST(PromptFindings, EveryKindIsInTheTable) {
  std::vector<std::string_view> kinds;
  for (const PromptFindingKind& kind : prompt_finding_kinds()) kinds.push_back(kind.id);
  EXPECT_THAT(kinds, ElementsAre("double_bos", "missing_bos", "template_twice",
                                 "retokenised_ids_differ", "special_tokens_as_text",
                                 "date_in_template", "trailing_whitespace", "unknown_template"));
}

// The facts of public reports: prompts of Llama 3 and DeepSeek R1 distillations with BOS twice, and
// checkpoints whose template writes none where the tokenizer's configuration adds one.
struct Report {
  const char* what;
  std::vector<TokenId> ids;
  std::int32_t bos;
  std::vector<std::string> expected;
};

TEST(PromptFindings, PublicReports) {
  const std::vector<Report> reports{
      {"a served template and an added BOS",
       ids({128000, 128000, 128006, 9125, 128007}),
       128000,
       {"double_bos"}},
      {"training data, before", ids({151646, 151646, 151644, 50}), 151646, {"double_bos"}},
      {"training data, after", ids({151646, 151644, 50}), 151646, {}},
      {"a template that lost its BOS", ids({529, 29989, 1792}), 1, {"missing_bos"}}};
  for (const Report& report : reports) {
    PromptFacts facts = facts_of(report.ids, report.bos);
    facts.bos_expected = true;
    EXPECT_EQ(names(find_prompt_findings(facts)), report.expected) << report.what;
  }
}

// `expected`: "WARN double BOS at 0,1", "OK", …
void expect_case(const std::string& id, const Json& list, std::int32_t bos,
                 const std::string& expected) {
  PromptFacts facts;
  for (const Json& entry : list) facts.ids.push_back(TokenId{entry.get<std::int32_t>()});
  facts.bos = TokenId{bos};
  facts.bos_expected = true;
  const auto findings = find_prompt_findings(facts);
  if (expected.find("double BOS") == std::string::npos) {
    EXPECT_THAT(findings, IsEmpty()) << id << ": " << expected;
    return;
  }
  ASSERT_THAT(names(findings), ElementsAre("double_bos")) << id;
  EXPECT_EQ(findings[0].severity, PromptSeverity::warning);
  if (expected.find("at 0,1") != std::string::npos) {
    EXPECT_EQ(findings[0].evidence["positions"], Json({0, 1})) << id;
    EXPECT_THAT(findings[0].text, HasSubstr("at 0,1")) << id;
  }
  if (expected.find("shift by 1") != std::string::npos) {
    EXPECT_THAT(findings[0].text, HasSubstr("1 position further along (its RoPE position")) << id;
  }
}

TEST(PromptFindings, EveryCaseOfTheSharedReportsGivesItsFinding) {
  const auto path = std::filesystem::path(DRIFTSCOPE_SHARED_DATA) / "reports/bos_cases.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  std::ifstream stream(path);
  const Json cases = Json::parse(stream)["cases"];
  std::size_t seen = 0;
  for (const Json& entry : cases) {
    const auto id = entry["id"].get<std::string>();
    const auto expected = entry["expected"].get<std::string>();
    if (entry.contains("ids")) {
      expect_case(id, entry["ids"], entry["bos"].get<std::int32_t>(), expected);
    } else if (entry.contains("ids_before")) {
      const auto bos = entry["bos"].get<std::int32_t>();
      const std::size_t after = expected.find("after:");
      ASSERT_NE(after, std::string::npos) << id;
      expect_case(id, entry["ids_before"], bos, expected.substr(0, after));
      expect_case(id, entry["ids_after"], bos, expected.substr(after));
    } else {
      // Models by their number of BOS tokens: two are double, none is missing, one is right.
      ASSERT_TRUE(entry.contains("summary")) << id;
      EXPECT_THAT(expected, HasSubstr("missing BOS"));
      expect_case(id, {1, 1, 529}, 1, "WARN double BOS");
      expect_case(id, {1, 529}, 1, "OK");
      PromptFacts facts = facts_of(ids({529}), 1);
      facts.bos_expected = true;
      EXPECT_THAT(names(find_prompt_findings(facts)), ElementsAre("missing_bos"));
      EXPECT_FALSE(entry["summary"]["regressed_1_to_0"].empty());
    }
    ++seen;
  }
  EXPECT_EQ(seen, cases.size());
  EXPECT_GE(seen, 6U);
}

}  // namespace
}  // namespace driftscope
