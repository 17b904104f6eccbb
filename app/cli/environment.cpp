// SPDX-License-Identifier: Apache-2.0
// driftscope fingerprint.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/experiment.h"
#include "engine/config/envelope.h"

namespace driftscope::cli {
namespace {

using Json = nlohmann::ordered_json;

struct FingerprintOptions {
  std::string model;
  ConfigOptions config{.config = "bf16-invariant", .sets = {}};
  std::string against;
  bool json = false;
};

Result<EnvelopeFacts> fingerprint_facts(const FingerprintOptions& options, const Console& console) {
  EnvelopeFacts facts;
  auto config = make_config(options.config);
  if (!config) return tl::unexpected(config.error());
  facts.config = std::move(*config);
  if (options.model.empty()) return facts;
  auto model = load_model(options.model, console);
  if (!model) return tl::unexpected(model.error());
  facts.model_sha256 = model->sha256;
  facts.stored_quantisation = storage_method(*model->checkpoint);
  if (model->tokenizer) facts.tokenizer_sha256 = model->tokenizer->sha256();
  facts.chat_template_sha256 = model->chat_template_sha256;
  return facts;
}

std::string lines_of(const Json& json) {
  std::string out;
  for (const auto& [key, value] : json.items()) {
    out += fmt::format("{:<34} {}\n", key,
                       value.is_null()     ? std::string("unknown")
                       : value.is_string() ? value.get<std::string>()
                                           : value.dump());
  }
  return out;
}

Result<int> print_difference(const FingerprintOptions& options, const Json& fingerprint,
                             CommandContext& context) {
  auto text = read_text_file(options.against);
  if (!text) return tl::unexpected(text.error());
  const auto other = Json::parse(*text, nullptr, false);
  if (!other.is_object()) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: not a fingerprint; write one with: driftscope fingerprint --json",
                            options.against));
  }
  const auto differences = fingerprint_difference(other, fingerprint);
  std::string out = differences.empty() ? "fingerprints are equal\n" : "";
  for (const auto& entry : differences) {
    out += fmt::format("{}: {} -> {}\n", entry.field, entry.a, entry.b);
  }
  if (auto printed = context.console.print(out); !printed) return tl::unexpected(printed.error());
  return differences.empty() ? 0 : 1;
}

Result<int> fingerprint(const FingerprintOptions& options, CommandContext& context) {
  auto facts = fingerprint_facts(options, context.console);
  if (!facts) return tl::unexpected(facts.error());
  const Json json = make_fingerprint(*facts, read_environment());
  if (!options.against.empty()) return print_difference(options, json, context);
  const std::string out = options.json ? json.dump(2) + "\n" : lines_of(json);
  if (auto printed = context.console.print(out); !printed) return tl::unexpected(printed.error());
  return 0;
}

}  // namespace

void declare_fingerprint(CLI::App& app, CommandContext& context) {
  auto options = bind_command<FingerprintOptions>(app, context, &fingerprint);
  app.add_option("--model,-m", options->model, std::string(kModelHelp));
  app.add_option("--config", options->config.config, "Preset or JSON file")->capture_default_str();
  app.add_option("--set", options->config.sets, "knob=value; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--against", options->against,
                 "Another fingerprint (JSON): print what differs, exit 1 if any");
  app.add_flag("--json", options->json, "One JSON document");
}

}  // namespace driftscope::cli
