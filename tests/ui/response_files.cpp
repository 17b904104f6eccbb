// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/response_files.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/import/response_file.h"
#include "analysis/responses/response_lint.h"

namespace driftscope::ui {

std::string chat_json(const std::vector<ChatToken>& tokens, const std::string& fingerprint,
                      bool logprobs) {
  using Json = nlohmann::ordered_json;
  std::string text;
  Json content = Json::array();
  for (const ChatToken& token : tokens) {
    text += token.text;
    const auto entry = [](const std::string& piece, double logprob) {
      return Json{{"token", piece}, {"logprob", logprob}, {"bytes", nullptr}};
    };
    Json step = entry(token.text, token.logprob);
    step["top_logprobs"] = Json::array({entry(token.text, token.logprob)});
    for (const auto& [piece, logprob] : token.others) {
      step["top_logprobs"].push_back(entry(piece, logprob));
    }
    content.push_back(std::move(step));
  }
  Json choice{{"index", 0},
              {"message", {{"role", "assistant"}, {"content", text}}},
              {"logprobs", logprobs ? Json{{"content", content}} : Json()},
              {"finish_reason", "stop"}};
  return Json{{"id", "chatcmpl-1"},
              {"object", "chat.completion"},
              {"created", 1},
              {"model", "gpt-4o-2024-08-06"},
              {"choices", Json::array({choice})},
              {"system_fingerprint", fingerprint}}
      .dump();
}

std::vector<ChatToken> words(const std::vector<std::string>& texts) {
  std::vector<ChatToken> tokens;
  for (const std::string& text : texts) tokens.push_back({.text = text, .logprob = -0.5});
  return tokens;
}

std::string batch_line(const std::string& id, const std::string& text) {
  return R"({"custom_id":")" + id + R"(","response":{"status_code":200,"body":)" +
         chat_json(words({text})) + "}}\n";
}

ResponseFilesPointer parsed(const std::vector<std::string>& bodies) {
  auto files = std::make_shared<ResponseFiles>();
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const std::string name = "/data/" + std::string(1, static_cast<char>('a' + i)) + ".json";
    auto responses = read_responses(bodies[i], name);
    if (!responses) {
      ADD_FAILURE() << responses.error().message;
      return nullptr;
    }
    for (Response& response : *responses) grade_response(response);
    files->paths << QString::fromStdString(name);
    files->files.push_back(std::move(*responses));
  }
  index_answers(*files);
  return files;
}

ResponsePairPointer parsed_pair(const std::string& a, const std::string& b) {
  const auto files = parsed({a, b});
  const auto choice = first_choice(*files);
  if (!choice) {
    ADD_FAILURE() << "fewer than two answers";
    return nullptr;
  }
  return view_pair(files, *choice);
}

}  // namespace driftscope::ui
