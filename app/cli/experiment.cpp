// SPDX-License-Identifier: Apache-2.0
#include "app/cli/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/config/envelope.h"
#include "engine/config/knob.h"
#include "engine/model/config_difference.h"
#include "engine/model/weight_difference.h"

namespace driftscope::cli {
namespace {

// Different lengths and subjects, so that a batch with them looks like traffic.
constexpr std::array<std::string_view, 8> kNeighbourTexts{
    "And the king said unto them, Go ye forth",
    "The program did not halt because",
    "In those days there was a man of the hill country, and his name was",
    "A bug is",
    "Blessed are they that",
    "When the disk was full the operator, who had been asleep since noon, wrote to",
    "And it came to pass",
    "The first rule of the machine room was that nobody should touch"};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    auto end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string line = text.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

// JSON text that survives bytes which are not UTF-8 (a prompt given in another encoding is refused
// by the tokenizer, but a path may hold anything).
std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

EnvelopeFacts envelope_facts(const Side& side, const ExperimentOptions& options,
                             const std::string& created) {
  EnvelopeFacts facts;
  facts.created = created;
  facts.model_path = side.model.path;
  facts.model_sha256 = side.model.sha256;
  for (const CheckpointFile& file : side.model.files) {
    facts.model_files.emplace_back(file.path.filename().string(), file.sha256);
  }
  facts.model_revision = side.model.location.commit;
  const StoredQuantisation& quantisation = side.model.checkpoint->quantisation();
  facts.stored_quantisation = storage_method(*side.model.checkpoint);
  facts.quantisation_notes = quantisation.notes;
  facts.scale_files = quantisation.scale_files;
  facts.model_type = side.model.checkpoint->description().model_type;
  if (side.model.tokenizer) facts.tokenizer_sha256 = side.model.tokenizer->sha256();
  facts.chat_template_sha256 = side.model.chat_template_sha256;
  if (const auto& rendered = side.prompt.rendered) {
    facts.chat_template_sha256 = rendered->template_sha256;
    facts.chat_template_name = rendered->template_name;
    facts.chat_template_date = rendered->date.text();
  }
  if (side.prompt.request) facts.messages_json = dump(side.prompt.request->messages);
  facts.prompt_findings_json = dump(to_json(side.prompt.findings));
  facts.prompt_ids = side.prompt.ids;
  facts.prompt_text = side.prompt.text;
  facts.prompt_text_known = side.prompt.text_known;
  facts.max_tokens = options.steps;
  facts.neighbour_prompt_ids = side.neighbours;
  facts.command = options.command;
  facts.config = side.config;
  return facts;
}

}  // namespace

Result<std::vector<std::vector<TokenId>>> make_neighbours(std::int64_t count,
                                                          const std::string& file,
                                                          const LoadedModel& model,
                                                          const Prompt& prompt) {
  std::vector<std::string> texts(kNeighbourTexts.begin(), kNeighbourTexts.end());
  if (!file.empty()) {
    auto text = read_text_file(file);
    if (!text) return tl::unexpected(text.error());
    texts = lines_of(*text);
    if (texts.empty()) {
      return fail(ErrorKind::usage,
                  fmt::format("{}: no lines; give one neighbour prompt a line", file));
    }
  }
  std::vector<std::vector<TokenId>> neighbours;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<TokenId> ids;
    if (model.tokenizer) {
      auto encoded = model.tokenizer->encode(texts[static_cast<std::size_t>(i) % texts.size()], {});
      if (!encoded) return tl::unexpected(encoded.error());
      for (const EncodedToken& token : *encoded) ids.push_back(token.id);
    } else {
      ids = prompt.ids;
      const auto shift =
          static_cast<std::ptrdiff_t>((static_cast<std::size_t>(i) + 1) % ids.size());
      std::rotate(ids.begin(), ids.begin() + shift, ids.end());
    }
    neighbours.push_back(std::move(ids));
  }
  return neighbours;
}

Result<void> check_neighbour_file(const std::string& file,
                                  std::initializer_list<const RunConfig*> configs,
                                  std::string_view flag) {
  const bool taken = std::any_of(configs.begin(), configs.end(),
                                 [](const RunConfig* config) { return config->neighbours > 0; });
  if (file.empty() || taken) return {};
  return fail(ErrorKind::usage,
              fmt::format("--neighbour-prompts {}: no request has neighbours to take them; add {} "
                          "neighbours=N",
                          file, flag));
}

LaneInput Side::lane_input() const {
  return {.model = model.checkpoint,
          .config = config,
          .prompt = prompt.ids,
          .neighbour_prompts = neighbours};
}

ExperimentFacts make_facts(const Side& a, const Side& b, const ExperimentOptions& options,
                           const std::string& created) {
  const EnvironmentFacts environment = read_environment();
  const ModelDescription& description = a.model.checkpoint->description();
  ExperimentFacts facts;
  facts.vocabulary = description.vocabulary;
  facts.planned_steps = options.steps;
  facts.prompt_a = a.prompt.ids;
  facts.prompt_b = b.prompt.ids;
  facts.prompt_text = a.prompt.text;
  facts.model_a = a.model.path;
  facts.model_b = b.model.path;
  facts.model_sha256_a = a.model.sha256;
  facts.model_sha256_b = b.model.sha256;
  if (a.model.sha256 != b.model.sha256) {
    facts.weight_difference =
        describe(weight_difference(*a.model.checkpoint, *b.model.checkpoint), description);
    const std::string fields =
        describe(config_difference(*a.model.checkpoint, *b.model.checkpoint));
    if (!fields.empty()) facts.weight_difference += "; " + fields;
  }
  facts.config_a = a.config;
  facts.config_b = b.config;
  facts.envelope_a = dump(make_envelope(envelope_facts(a, options, created), environment));
  facts.envelope_b = dump(make_envelope(envelope_facts(b, options, created), environment));
  facts.command = options.command;
  facts.layers = description.layers;
  facts.hidden = description.hidden;
  facts.intermediate = description.intermediate;
  facts.stored_dtype = description.stored_dtype;
  facts.taps = tap_specs(description, options.taps);
  facts.routes = route_spec(description);
  if (facts.routes != route_spec(b.model.checkpoint->description())) facts.routes = {};
  if (a.model.tokenizer) {
    facts.piece = [tokenizer = a.model.tokenizer](TokenId id) { return tokenizer->piece(id); };
  }
  return facts;
}

std::string quote_command(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+@%";
  std::string text;
  for (const std::string& argument : arguments) {
    if (!text.empty()) text += ' ';
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
      text += argument;
      continue;
    }
    text += '\'';
    for (const char c : argument) {
      if (c == '\'') {
        text += "'\\''";
      } else {
        text += c;
      }
    }
    text += '\'';
  }
  return text;
}

}  // namespace driftscope::cli
