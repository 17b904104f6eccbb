// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/experiment.h"
#include "engine/model/gguf_checkpoint.h"
#include "engine/text/gguf_vocabulary.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text;
  std::optional<std::string> file;
  bool no_special = false;
  bool plain_special = false;
  bool json = false;
  ChatOptions chat;
};

struct Tokenized {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string text;
  std::optional<ChatRequest> request;
  std::optional<RenderedChat> rendered;
  std::vector<EncodedToken> tokens;
  std::vector<PromptFinding> findings;
};

std::string table_of(const std::vector<EncodedToken>& tokens, const Tokenizer& tokenizer) {
  std::string out =
      fmt::format("{:>5} {:>8} {:>7} {:>7}  {}\n", "#", "id", "begin", "end", "piece");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    out += fmt::format("{:>5} {:>8} {:>7} {:>7}  {}\n", i, tokens[i].id.value, tokens[i].begin,
                       tokens[i].end, escape_for_display(tokenizer.piece(tokens[i].id)));
  }
  return out;
}

std::string json_of(const Tokenized& made) {
  const Tokenizer& tokenizer = *made.tokenizer;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const EncodedToken& token : made.tokens) {
    rows.push_back({{"id", token.id.value},
                    {"piece", escape_for_display(tokenizer.piece(token.id))},
                    {"begin", token.begin},
                    {"end", token.end},
                    {"special", tokenizer.is_special(token.id)}});
  }
  nlohmann::ordered_json document{{"tokenizer", std::string(tokenizer.kind())},
                                  {"tokenizer_sha256", tokenizer.sha256()},
                                  {"text", made.text},
                                  {"chat_template", nullptr},
                                  {"count", made.tokens.size()},
                                  {"tokens", rows},
                                  {"findings", to_json(made.findings)}};
  if (made.rendered) {
    document["chat_template"] = {{"name", made.rendered->template_name},
                                 {"sha256", made.rendered->template_sha256},
                                 {"date", made.rendered->date.text()},
                                 {"date_used", made.rendered->date_used}};
  }
  return document.dump(2) + "\n";
}

Result<void> take_text(const TokenizeOptions& options, const ModelChat& chat, Tokenized& made) {
  if (options.chat.given()) {
    if (options.text || options.file) {
      return fail(ErrorKind::usage, "give a text or messages, not both");
    }
    auto prompt = make_chat_prompt(options.chat, chat);
    if (!prompt) return tl::unexpected(prompt.error());
    made.text = std::move(prompt->text);
    made.request = std::move(prompt->request);
    made.rendered = std::move(prompt->rendered);
    return {};
  }
  if (!options.text && !options.file) {
    return fail(ErrorKind::usage,
                "no text; give --text TEXT, --file F, --user TEXT or --messages F.json");
  }
  auto text = options.text ? Result<std::string>(*options.text) : read_text_file(*options.file);
  if (!text) return tl::unexpected(text.error());
  made.text = std::move(*text);
  return {};
}

void take_findings(const ModelChat& chat, Tokenized& made) {
  PromptFacts facts;
  for (const EncodedToken& token : made.tokens) facts.ids.push_back(token.id);
  facts.text = made.text;
  facts.request = made.request;
  facts.rendered = made.rendered;
  take_bos_facts(chat.templates, *made.tokenizer, facts);
  made.findings = find_prompt_findings(facts);
}

Result<int> run(const TokenizeOptions& options, CommandContext& context) {
  Tokenized made;
  auto location = find_model(options.model);
  if (!location) return tl::unexpected(location.error());
  const std::filesystem::path& path = location->path;
  auto tokenizer = is_gguf(path) ? open_gguf_tokenizer(path) : Tokenizer::open(path);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  if (*tokenizer == nullptr) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: carries no vocabulary; give a file or directory that does",
                            options.model));
  }
  made.tokenizer = *tokenizer;
  const ModelChat chat = load_chat(path.string());
  if (auto taken = take_text(options, chat, made); !taken) return tl::unexpected(taken.error());
  // A rendered template brings its own special tokens.
  auto tokens = made.tokenizer->encode(made.text,
                                       {.add_special_tokens = !options.no_special && !made.rendered,
                                        .parse_special_tokens = !options.plain_special});
  if (!tokens) return tl::unexpected(tokens.error());
  made.tokens = std::move(*tokens);
  take_findings(chat, made);
  const std::string out =
      options.json ? json_of(made)
                   : table_of(made.tokens, *made.tokenizer) + findings_text(made.findings);
  if (auto printed = context.console.print(out); !printed) return tl::unexpected(printed.error());
  return 0;
}

}  // namespace

void declare_tokenize(CLI::App& app, CommandContext& context) {
  auto options = bind_command<TokenizeOptions>(app, context, &run);
  app.add_option("--model,-m", options->model,
                 "Directory with tokenizer.json, a GGUF file, or a hub id in the local cache")
      ->required();
  auto* text = app.add_option("--text", options->text, "Text");
  app.add_option("--file", options->file, "File with the text; - for stdin")->excludes(text);
  app.add_flag("--no-special", options->no_special, "Do not add special tokens (BOS)");
  app.add_flag("--plain-special", options->plain_special,
               "Treat the text of special tokens as ordinary text");
  declare_chat(app, options->chat);
  app.add_flag("--json", options->json, "One JSON document");
}

}  // namespace driftscope::cli
