// SPDX-License-Identifier: Apache-2.0
// driftscope import: answers and logits that other programs saved, as a capture.
#include <fmt/format.h>

#include <optional>

#include "analysis/import/logits/import_capture.h"
#include "analysis/import/logits/logit_formats.h"
#include "analysis/import/logits/token_difr.h"
#include "analysis/import/response_file.h"
#include "analysis/responses/response_lint.h"
#include "app/cli/command.h"
#include "app/cli/experiment.h"
#include "app/cli/output_file.h"
#include "app/cli/vendor_input.h"
#include "engine/config/envelope.h"
#include "engine/model/checkpoint.h"
#include "kernels/base/display_text.h"

namespace driftscope::cli {
namespace {

struct ImportCommand {
  std::vector<std::string> files;
  std::string output;
  std::optional<std::int64_t> answer;
  std::int64_t steps = 0;
  int deflate = 0;
  bool force = false;
  bool formats = false;
};

std::string formats_text() {
  std::string out;
  for (const LogitFormat& row : logit_formats()) {
    out += fmt::format("{:<18} {}\n", row.name, row.summary);
  }
  out += fmt::format("{:<18} {}\n", "token-difr", "Token-DiFR samples: ids of prompts and outputs");
  return out + "and every format of: driftscope vendor --formats\n";
}

struct Answer {
  const Response* response;
  std::size_t choice;
};

std::vector<Answer> answers_in(const std::vector<Response>& responses) {
  std::vector<Answer> answers;
  for (const Response& response : responses) {
    for (std::size_t i = 0; i < std::max<std::size_t>(response.choices.size(), 1); ++i) {
      answers.push_back({&response, i});
    }
  }
  return answers;
}

Result<ImportSide> side_of_answers(const ImportCommand& command, const std::string& path,
                                   std::string_view bytes) {
  auto responses =
      is_token_difr(bytes) ? read_token_difr(bytes, path) : read_responses(bytes, path);
  if (!responses) return tl::unexpected<Error>(responses.error());
  for (Response& response : *responses) grade_response(response);
  const std::vector<Answer> answers = answers_in(*responses);
  const std::string name = escape_for_display(path);
  if (!command.answer && answers.size() != 1) {
    return fail(ErrorKind::usage,
                fmt::format("{}: holds {} answers and a lane holds one; choose with --answer 0 to "
                            "{}, or compare them all: driftscope vendor",
                            name, answers.size(), answers.size() - 1));
  }
  const auto chosen = static_cast<std::size_t>(command.answer.value_or(0));
  if (chosen >= answers.size()) {
    return fail(ErrorKind::usage, fmt::format("--answer: {}: {} holds {}, counted from 0", chosen,
                                              name, answers.size()));
  }
  return import_side(*answers[chosen].response, answers[chosen].choice);
}

Result<ImportSide> side_of(const ImportCommand& command, const std::string& path,
                           std::string_view bytes) {
  const auto build = [&]() -> Result<ImportSide> {
    if (find_logit_format(bytes) == nullptr) return side_of_answers(command, path, bytes);
    auto file = read_logit_file({.bytes = bytes, .name = escape_for_display(path), .path = path});
    if (!file) return tl::unexpected<Error>(file.error());
    return import_side(std::move(*file));
  };
  auto side = build();
  if (!side) return side;
  auto hash = sha256_of_file(path);
  if (!hash) return tl::unexpected<Error>(hash.error());
  side->file = path;
  side->sha256 = std::move(*hash);
  return side;
}

Result<int> run(const ImportCommand& command, CommandContext& context) {
  if (command.formats) {
    if (auto printed = context.console.print(formats_text()); !printed) {
      return tl::unexpected(printed.error());
    }
    return 0;
  }
  if (command.files.empty() || command.output.empty()) {
    return fail(ErrorKind::usage,
                "give one or two files and -o FILE.h5; the formats: driftscope import --formats");
  }
  if (command.files.size() > 2) {
    return fail(
        ErrorKind::usage,
        fmt::format("{} files: a capture has two lanes, so give one or two; import each "
                    "alone and compare pairs (driftscope compare A.h5 B.h5), or compare many "
                    "answers at once: driftscope vendor",
                    command.files.size()));
  }
  if (auto target = check_target(command.output, command.force); !target) {
    return tl::unexpected(target.error());
  }
  std::vector<VendorInput> files;
  files.reserve(command.files.size());  // the sides look into them
  std::vector<ImportSide> sides;
  for (const std::string& path : command.files) {
    if (path == "-") {
      return fail(ErrorKind::usage,
                  "-: a capture names the files that it was made of; give a file");
    }
    auto file = VendorInput::open(path);
    if (!file) return tl::unexpected(file.error());
    files.push_back(std::move(*file));
    auto side = side_of(command, path, files.back().bytes());
    if (!side) return tl::unexpected(side.error());
    sides.push_back(std::move(*side));
  }
  std::vector<std::string> words{"driftscope"};
  words.insert(words.end(), context.arguments.begin() + 1, context.arguments.end());
  const auto summary = write_import(command.output, sides,
                                    {.created = utc_now(),
                                     .command = quote_command(words),
                                     .most_steps = command.steps,
                                     .deflate = command.deflate});
  if (!summary) return tl::unexpected(summary.error());
  std::string note = fmt::format("saved {}: ", escape_for_display(command.output));
  for (std::size_t i = 0; i < sides.size(); ++i) {
    note += fmt::format("{}lane {}: {} steps of {}", i == 0 ? "" : ", ", i == 0 ? 'a' : 'b',
                        summary->steps[i], sides[i].format);
  }
  note += summary->listed ? fmt::format(", {} tokens listed", summary->vocabulary)
                          : fmt::format(", whole rows of {}", summary->vocabulary);
  context.console.note(note);
  return 0;
}

}  // namespace

void declare_import(CLI::App& app, CommandContext& context) {
  auto command = bind_command<ImportCommand>(app, context, &run);
  app.add_option(
      "files", command->files,
      "One or two files: answers of servers, llama.cpp logit files (--kl-divergence-base, "
      "llama-results), Token-DiFR, .npy, .npz, safetensors, HDF5. The first becomes lane "
      "a, the second lane b");
  app.add_option("--output,-o", command->output, "Capture to write (.h5)");
  app.add_option("--answer", command->answer, "Which answer of files that hold many, from 0")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--steps", command->steps, "At most this many steps or rows; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--deflate", command->deflate, "Compress rows, 0 to 9")
      ->check(CLI::Range(0, 9))
      ->capture_default_str();
  app.add_flag("--force", command->force, "Replace an existing file");
  app.add_flag("--formats", command->formats, "List the formats that are read");
}

}  // namespace driftscope::cli
