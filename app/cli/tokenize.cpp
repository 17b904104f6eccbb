// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/experiment.h"
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

std::string json_of(const std::vector<EncodedToken>& tokens, const Tokenizer& tokenizer) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const EncodedToken& token : tokens) {
    rows.push_back({{"id", token.id.value},
                    {"piece", escape_for_display(tokenizer.piece(token.id))},
                    {"begin", token.begin},
                    {"end", token.end},
                    {"special", tokenizer.is_special(token.id)}});
  }
  const nlohmann::ordered_json document{{"tokenizer", std::string(tokenizer.kind())},
                                        {"tokenizer_sha256", tokenizer.sha256()},
                                        {"count", tokens.size()},
                                        {"tokens", rows}};
  return document.dump(2) + "\n";
}

Result<int> run(const TokenizeOptions& options, CommandContext& context) {
  auto tokenizer = Tokenizer::open(options.model);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  if (!options.text && !options.file) {
    return fail(ErrorKind::usage, "no text; give --text TEXT or --file F");
  }
  auto text = options.text ? Result<std::string>(*options.text) : read_text_file(*options.file);
  if (!text) return tl::unexpected(text.error());
  auto tokens = (*tokenizer)
                    ->encode(*text, {.add_special_tokens = !options.no_special,
                                     .parse_special_tokens = !options.plain_special});
  if (!tokens) return tl::unexpected(tokens.error());
  auto printed = context.console.print(options.json ? json_of(*tokens, **tokenizer)
                                                    : table_of(*tokens, **tokenizer));
  if (!printed) return tl::unexpected(printed.error());
  return 0;
}

}  // namespace

void declare_tokenize(CLI::App& app, CommandContext& context) {
  auto options = bind_command<TokenizeOptions>(app, context, &run);
  app.add_option("--model,-m", options->model, "Directory with tokenizer.json")->required();
  auto* text = app.add_option("--text", options->text, "Text");
  app.add_option("--file", options->file, "File with the text; - for stdin")->excludes(text);
  app.add_flag("--no-special", options->no_special, "Do not add special tokens (BOS)");
  app.add_flag("--plain-special", options->plain_special,
               "Treat the text of special tokens as ordinary text");
  app.add_flag("--json", options->json, "One JSON document");
}

}  // namespace driftscope::cli
