// SPDX-License-Identifier: Apache-2.0
// Chat templates: real-shaped ones against jinja2, and where a checkpoint keeps them.
#include "engine/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>

#include "tests/model/temporary_directory.h"

namespace driftscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

const fs::path kFolder = fs::path(DRIFTSCOPE_SOURCE_DIR) / "tests/text/chat_templates";

std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Json read_json(const fs::path& path) { return Json::parse(read_text(path)); }

// {"text"}, {"refused"} or {"error": true}, as render.py writes them.
Json outcome(const NamedTemplate& chosen, const Json& conversation) {
  const Json tokens{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", "</s>"}};
  const auto parsed = jinja::Template::parse(chosen.source, "t");
  if (!parsed) return {{"parse", parsed.error().message}};
  Json context = tokens;
  context.update(conversation);
  const auto rendered = parsed->render(context, {.year = 2025, .month = 3, .day = 9});
  if (rendered) return {{"text", rendered->text}};
  constexpr std::string_view kRefused = "the template refuses these messages: ";
  const std::size_t at = rendered.error().message.find(kRefused);
  if (at == std::string::npos) return {{"error", true}};
  return {{"refused", rendered.error().message.substr(at + kRefused.size())}};
}

TEST(ChatTemplate, RealShapedTemplatesRenderAsJinja2RendersThem) {
  const Json goldens = read_json(kFolder / "goldens.json");
  const Json conversations = read_json(kFolder / "conversations.json");
  std::size_t compared = 0;
  for (const auto& [name, by_conversation] : goldens.items()) {
    const auto chosen = make_template(name, read_text(kFolder / (name + ".jinja")));
    for (const auto& [conversation, golden] : by_conversation.items()) {
      EXPECT_EQ(outcome(chosen, conversations[conversation]), golden)
          << name << ", " << conversation;
      ++compared;
    }
  }
  EXPECT_GE(goldens.size(), 12U);
  EXPECT_EQ(compared, goldens.size() * conversations.size());
}

// The goldens are what jinja2 says today.
TEST(ChatTemplate, TheGoldensAreThoseOfJinja2) {
  std::string python;
  for (const char* candidate : {"/usr/bin/python3", "python3"}) {
    const std::string probe = std::string(candidate) + " -c 'import jinja2' 2>/dev/null";
    if (std::system(probe.c_str()) == 0) {  // NOLINT(cert-env33-c): a fixed command
      python = candidate;
      break;
    }
  }
  if (python.empty()) GTEST_SKIP() << "no Python with jinja2 (Debian: python3-jinja2)";
  const std::string command = python + " '" + (kFolder / "render.py").string() + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  ASSERT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 65536> piece{};
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe.get())) {
    text.append(piece.data(), count);
  }
  EXPECT_EQ(Json::parse(text, nullptr, false), read_json(kFolder / "goldens.json"));
}

TEST(ChatTemplate, WhereACheckpointKeepsThem) {
  const TemporaryDirectory directory;
  const auto read = [&] { return read_chat_templates(directory.path()); };
  ASSERT_TRUE(read());
  EXPECT_TRUE(read()->empty());
  EXPECT_THAT(read()->choose("", false).error().message, HasSubstr("no chat template"));

  directory.write("tokenizer_config.json",
                  R"({"chat_template": "A", "bos_token": {"content": "<s>"}, "eos_token": "</s>",
                      "unk_token": null, "add_bos_token": true})");
  auto chat = read();
  ASSERT_TRUE(chat) << chat.error().message;
  EXPECT_EQ(chat->origin, "tokenizer_config.json");
  EXPECT_EQ(chat->choose("", true)->source, "A");
  EXPECT_EQ(chat->choose("default", false)->sha256,
            "559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd");  // of "A"
  EXPECT_EQ(chat->special_tokens, (Json{{"bos_token", "<s>"}, {"eos_token", "</s>"}}));
  EXPECT_EQ(chat->add_bos_token, true);

  directory.write("tokenizer_config.json",
                  R"({"added_tokens_decoder": {}, "bos_token": "<s>", "chat_template":
                      [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"},
                       {"name": "rag", "template": "R"}]})");
  directory.write("special_tokens_map.json", R"({"bos_token": "<x>", "pad_token": "<p>"})");
  chat = read();
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->choose("", false)->source, "D");
  EXPECT_EQ(chat->choose("", true)->source, "T");
  EXPECT_EQ(chat->choose("rag", true)->source, "R");
  EXPECT_THAT(chat->choose("none", true).error().message, HasSubstr("default, tool_use, rag"));
  EXPECT_EQ(chat->special_token("bos_token"), "<s>");
  EXPECT_EQ(chat->special_token("pad_token"), "<p>");

  directory.write("chat_template.jinja", "J");
  directory.write("additional_chat_templates/tool_use.jinja", "JT");
  chat = read();
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->origin, "chat_template.jinja");
  EXPECT_EQ(chat->choose("", false)->source, "J");
  EXPECT_EQ(chat->choose("", true)->source, "JT");

  directory.write("tokenizer_config.json", R"({"chat_template": 5})");
  std::filesystem::remove(directory.path() / "chat_template.jinja");
  EXPECT_THAT(read().error().message, HasSubstr("chat_template is neither"));
  directory.write("tokenizer_config.json", "[");
  EXPECT_THAT(read().error().message, HasSubstr("not a JSON object"));
}

TEST(ChatTemplate, MessagesAreAListOrAnObject) {
  const auto list = parse_chat_request(R"([{"role": "user", "content": "a"}])", "m.json");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->messages.size(), 1U);
  EXPECT_TRUE(list->add_generation_prompt);
  const auto object = parse_chat_request(
      R"({"messages": [], "tools": [{}], "add_generation_prompt": false,
          "chat_template_kwargs": {"enable_thinking": false}})",
      "m.json");
  ASSERT_TRUE(object);
  EXPECT_FALSE(object->add_generation_prompt);
  EXPECT_TRUE(object->has_tools());
  EXPECT_EQ(object->names["enable_thinking"], false);
  for (const char* wrong : {"{", "5", "{}", "[5]", R"([{"content": "a"}])", R"([{"role": 1}])"}) {
    const auto parsed = parse_chat_request(wrong, "m.json");
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().kind, ErrorKind::malformed);
    EXPECT_THAT(parsed.error().message, HasSubstr("m.json: "));
  }
}

TEST(ChatTemplate, ARenderingKnowsWhatItUsed) {
  const auto chosen = make_template("default",
                                    "{{ bos_token }}{{ strftime_now('%Y') }}"
                                    "{{ messages[0].content }}{{ tools is none }}");
  ChatRequest request;
  request.messages = Json::array({{{"role", "user"}, {"content", "q"}}});
  const auto rendered =
      render_chat(chosen, {{"bos_token", "<s>"}}, request, {.year = 2031, .month = 1, .day = 2});
  ASSERT_TRUE(rendered) << rendered.error().message;
  EXPECT_EQ(rendered->text, "<s>2031qTrue");
  EXPECT_TRUE(rendered->date_used);
  EXPECT_EQ(rendered->template_sha256, chosen.sha256);
  const auto from_gguf = chat_templates_of("{{ messages | length }}", "a.gguf", Json::object());
  EXPECT_EQ(render_chat(*from_gguf.choose("", false), from_gguf.special_tokens, request, {})->text,
            "1");
}

}  // namespace
}  // namespace driftscope
