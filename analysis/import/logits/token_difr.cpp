// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/logits/token_difr.h"

#include <fmt/format.h>

#include <optional>

#include "analysis/import/formats.h"
#include "analysis/import/json_document.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

std::optional<std::vector<std::int64_t>> ids_of(JsonValue list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<std::int64_t> ids;
  for (const JsonValue entry : list) {
    const auto id = entry.integer();
    if (!id || *id < 0) return std::nullopt;
    ids.push_back(*id);
  }
  return ids;
}

}  // namespace

bool is_token_difr(std::string_view bytes) {
  // Both names, before anything is parsed.
  if (bytes.find("\"prompt_token_ids\"") == std::string_view::npos ||
      bytes.find("\"samples\"") == std::string_view::npos) {
    return false;
  }
  JsonDocument document;
  if (!document.parse(bytes)) return false;
  const JsonValue first = document.root()["samples"].at(0);
  return first["prompt_token_ids"].is_array() && first["outputs"].is_array();
}

Result<std::vector<Response>> read_token_difr(std::string_view bytes, std::string_view name) {
  const std::string shown = escape_for_display(name);
  JsonDocument document;
  if (auto parsed = document.parse(bytes); !parsed) {
    return fail(ErrorKind::malformed, fmt::format("{}: {}", shown, parsed.error().message));
  }
  const JsonValue config = document.root()["config"];
  std::vector<Response> responses;
  for (const JsonValue sample : document.root()["samples"]) {
    const auto refuse = [&](std::string_view what) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: sample {}: {}", shown, responses.size(), what));
    };
    Response response;
    response.source = fmt::format("{}:{}", name, responses.size());
    response.format = "token-difr";
    set_if_given(response.model, config["model"]);
    response.temperature = config["temperature"].number();
    response.top_p = config["top_p"].number();
    if (const JsonValue seed = config["seed"]; seed.is_number()) {
      response.seed = std::string(seed.raw());
    }
    auto prompt = ids_of(sample["prompt_token_ids"]);
    if (!prompt) return refuse("prompt_token_ids is no list of ids");
    response.prompt_ids = std::move(*prompt);
    std::int64_t index = 0;
    for (const JsonValue output : sample["outputs"]) {
      auto ids = ids_of(output["token_ids"]);
      if (!ids) return refuse("token_ids of an output is no list of ids");
      ResponseChoice& choice = choice_at(response, index++);
      choice.token_ids = std::move(*ids);
      choice.content.has_steps = true;
      for (const std::int64_t id : choice.token_ids) {
        ResponseStep step;
        step.token.id = id;
        choice.content.steps.push_back(std::move(step));
      }
      set_if_given(choice.finish_reason, output["finish_reason"]);
    }
    if (response.choices.empty()) return refuse("has no outputs");
    responses.push_back(std::move(response));
  }
  if (responses.empty()) {
    return fail(ErrorKind::malformed, fmt::format("{}: has no samples", shown));
  }
  return responses;
}

}  // namespace driftscope
