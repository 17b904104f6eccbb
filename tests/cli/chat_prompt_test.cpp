// SPDX-License-Identifier: Apache-2.0
// Messages, chat templates and what is said of prompts, as a person would type it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace driftscope::test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kTemplate =
    "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

// The sample model with a chat template.
class ChatModel {
 public:
  explicit ChatModel(std::string_view source = kTemplate) {
    copy_model(m_folder.path() / "model");
    write_file(m_folder.path() / "model/chat_template.jinja", std::string(source));
  }
  [[nodiscard]] ProgramResult run(const std::vector<std::string>& words) const {
    return run_program(words, m_folder.path());
  }
  [[nodiscard]] Json json(const std::vector<std::string>& words) const {
    const ProgramResult result = run(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out, nullptr, false);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return m_folder.path(); }

 private:
  ScratchFolder m_folder;
};

std::vector<int> ids_of(const Json& document) {
  std::vector<int> ids;
  for (const Json& token : document["tokens"]) ids.push_back(token["id"].get<int>());
  return ids;
}

bool has_finding(const Json& document, const std::string& id) {
  for (const Json& entry : document["findings"]) {
    if (entry["id"] == id) return true;
  }
  return false;
}

TEST(ChatPrompt, TokenizeShowsTextAndIds) {
  const ChatModel model;
  write_file(model.path() / "m.json", R"([{"role": "user", "content": "hi"}])");
  const Json chat = model.json({"tokenize", "--model", "model", "--messages", "m.json", "--json"});
  EXPECT_EQ(chat["text"], "<|bos|>user: hi\nassistant:");
  EXPECT_EQ(chat["chat_template"]["name"], "default");
  EXPECT_EQ(chat["chat_template"]["date"], "2024-07-26");
  EXPECT_EQ(chat["chat_template"]["sha256"].get<std::string>().size(), 64U);
  // No second BOS: the ids of the text behind the template's own.
  const Json plain =
      model.json({"tokenize", "--model", "model", "--text", "user: hi\nassistant:", "--json"});
  EXPECT_EQ(ids_of(chat), ids_of(plain));
  EXPECT_FALSE(has_finding(chat, "double_bos"));
  const Json added =
      model.json({"tokenize", "--model", "model", "--text", "<|bos|>user: hi", "--json"});
  EXPECT_TRUE(has_finding(added, "double_bos"));
  const Json bare = model.json(
      {"tokenize", "--model", "model", "--system", "s", "--user", "hi", "--no-template", "--json"});
  EXPECT_EQ(bare["text"], "s\nhi");
  EXPECT_TRUE(bare["chat_template"].is_null());
}

TEST(ChatPrompt, TheRunKeepsMessagesTemplateAndDate) {
  const ChatModel model("{{ bos_token }}{{ strftime_now('%Y') }} {{ messages[0].content }}");
  const Json document =
      model.json({"run", "--model", "model", "--user", "And the king", "--template-date",
                  "2031-05-06", "--steps", "2", "-q", "--json", "-o", "run.h5"});
  EXPECT_EQ(document["verdict"], "bitwise");
  EXPECT_EQ(document["prompt_text"], "<|bos|>2031 And the king");
  EXPECT_TRUE(has_finding(document, "date_in_template"));
  const ProgramResult compared = model.run({"compare", "run.h5"});
  EXPECT_THAT(compared.out, HasSubstr("2031-05-06"));
  EXPECT_LT(compared.out.find("prompt  "), compared.out.find("max_abs"));
}

TEST(ChatPrompt, FindingsComeBeforeNumbers) {
  const ChatModel model;
  const Json document = model.json({"run", "--model", "model", "--prompt", "<|bos|>And the king",
                                    "--steps", "2", "-q", "--json", "-o", "run.h5"});
  EXPECT_TRUE(has_finding(document, "double_bos"));
  const ProgramResult compared = model.run({"compare", "run.h5"});
  ASSERT_THAT(compared.out, HasSubstr("BOS tokens"));
  EXPECT_LT(compared.out.find("BOS tokens"), compared.out.find("max_abs"));
}

TEST(ChatPrompt, DoctorLooksAtPromptsWithAndWithoutAModel) {
  const ChatModel model;
  const auto doubled =
      model.run({"doctor", "--prompt-ids", "128000,128000,128006", "--bos", "128000"});
  EXPECT_EQ(doubled.exit_code, 0) << doubled.err;
  EXPECT_THAT(doubled.out, HasSubstr("double_bos"));
  EXPECT_THAT(doubled.out, HasSubstr("at 0,1"));
  const auto missing = model.run({"doctor", "--prompt-ids", "5,6", "--bos", "1"});
  EXPECT_THAT(missing.out, HasSubstr("missing_bos"));
  const auto text = model.run({"doctor", "--prompt", "hi"});
  EXPECT_EQ(text.exit_code, 2);
  const auto chat = model.run({"doctor", "--model", "model", "--user", "hi"});
  EXPECT_EQ(chat.exit_code, 0) << chat.err;
  EXPECT_THAT(chat.out, HasSubstr("\"default\" of chat_template.jinja"));
  EXPECT_THAT(chat.out, HasSubstr("findings       none"));
  const auto twice =
      model.run({"doctor", "--model", "model", "--user", "<|bos|>user: hi\nassistant:"});
  EXPECT_THAT(twice.out, HasSubstr("template_twice"));
  const auto trailing = model.run({"doctor", "--model", "model", "--prompt", "And the "});
  EXPECT_THAT(trailing.out, HasSubstr("trailing_whitespace"));
  const auto vendor =
      model.run({"doctor", "--model", "model", "--prompt-ids", "0,5,6", "--vendor-ids", "0,5,7"});
  EXPECT_THAT(vendor.out, HasSubstr("retokenised_ids_differ"));
  write_file(model.path() / "model/chat_template.jinja", "\n{{ messages | nosuch }}");
  const auto broken = model.run({"doctor", "--model", "model"});
  EXPECT_EQ(broken.exit_code, 0);
  EXPECT_THAT(broken.out, HasSubstr("unknown_template"));
  EXPECT_THAT(broken.out, HasSubstr("line 2: unknown filter \"nosuch\""));
}

TEST(ChatPrompt, ErrorsSayWhatToDo) {
  const ChatModel model(
      "{{ raise_exception('no system, please') if messages[0].role == 'system' }}x");
  const auto words = [](std::vector<std::string> more) {
    std::vector<std::string> all{"tokenize", "--model", "model"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto refused = model.run(words({"--system", "s"}));
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.err,
              HasSubstr("line 1: the template refuses these messages: no system, please"));
  const auto unknown = model.run(words({"--user", "u", "--template", "rag"}));
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there are default"));
  write_file(model.path() / "own.jinja", "own {{ messages[0].content }}");
  const auto own = model.run(words({"--user", "u", "--template", "own.jinja", "--json"}));
  EXPECT_EQ(Json::parse(own.out)["text"], "own u");
  EXPECT_EQ(model.run(words({"--user", "u", "--template-date", "soon"})).exit_code, 2);
  write_file(model.path() / "bad.json", R"([{"content": "a"}])");
  EXPECT_EQ(model.run(words({"--messages", "bad.json"})).exit_code, 4);
  std::filesystem::remove(model.path() / "model/chat_template.jinja");
  const auto none = model.run(words({"--user", "u"}));
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("--no-template"));
}

}  // namespace
}  // namespace driftscope::test
