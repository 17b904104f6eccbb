// SPDX-License-Identifier: Apache-2.0
// Findings about what was asked: the prompt's marks, its date, how likely its words are, and
// whether the server did as told.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_lint_parts.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kImplausibleWord = -15.0;  // nats, of a word of a prompt

// Ids of the mark of a beginning, by parts of model names in small letters; narrow names first.
struct BosRow {
  std::string_view model;
  std::int64_t bos;
  bool required;  // the model was trained with it in front of every text
};
constexpr std::array kBosRows{BosRow{"r1-distill", 151646, true}, BosRow{"llama-3", 128000, true},
                              BosRow{"llama3", 128000, true},     BosRow{"llama-4", 200000, true},
                              BosRow{"gemma", 2, true},           BosRow{"llama-2", 1, true},
                              BosRow{"tinyllama", 1, true},       BosRow{"zephyr", 1, true},
                              BosRow{"mixtral", 1, true},         BosRow{"mistral", 1, true},
                              BosRow{"command-r", 5, true},       BosRow{"deepseek", 0, false}};

const BosRow* bos_row(const Response& response) {
  std::string model = response.model;
  for (char& c : model) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto* row = std::find_if(kBosRows.begin(), kBosRows.end(), [&](const BosRow& candidate) {
    return model.find(candidate.model) != std::string::npos;
  });
  return row == kBosRows.end() ? nullptr : row;
}

bool is_some_bos(std::int64_t id) {
  return std::any_of(kBosRows.begin(), kBosRows.end(),
                     [&](const BosRow& row) { return row.bos == id; });
}

std::string prompt_text_of(const Response& response) {
  if (response.prompt_text) return *response.prompt_text;
  if (response.prompt_steps.empty()) return response.request.prompt;
  std::string text;
  for (const ResponseStep& step : response.prompt_steps) text += step.token.bytes;
  return text;
}

bool words_unlikely(const std::vector<ResponseStep>& steps, std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const ResponseStep& step = steps[i];
    if (!step.logprob.usable() || step.logprob.value > kImplausibleWord) continue;
    findings.push_back(make_finding(
        "prompt_implausible", Severity::warning,
        fmt::format("Prompt token {} \"{}\" has a logprob of {:.4g}: a natural word is never that "
                    "unlikely. Check for a missing or doubled BOS and for wrong positions",
                    i, escape_for_display(step.token.text), step.logprob.value),
        Json{{"position", i}, {"logprob", step.logprob.value}}));
    return true;
  }
  return false;
}

// The asked name, or a snapshot of it, or the same without its owner.
bool is_model_asked(std::string_view asked, std::string_view answered) {
  const auto bare = [](std::string_view name) {
    const std::size_t slash = name.rfind('/');
    return slash == std::string_view::npos ? name : name.substr(slash + 1);
  };
  return answered.find(bare(asked)) != std::string_view::npos ||
         asked.find(bare(answered)) != std::string_view::npos;
}

}  // namespace

void find_bos(const Response& response, std::vector<Finding>& findings) {
  const auto& ids = response.prompt_ids;
  if (ids.empty()) return;
  const BosRow* row = bos_row(response);
  const bool doubled = ids.size() > 1 && ids[0] == ids[1];
  const bool is_bos = response.bos ? ids[0] == *response.bos
                                   : (row != nullptr ? ids[0] == row->bos : is_some_bos(ids[0]));
  if (doubled && is_bos) {
    findings.push_back(make_finding(
        "double_bos", Severity::warning,
        fmt::format("The prompt begins with two BOS tokens ({} at 0 and 1): the template and the "
                    "tokenizer each added one, and every position is moved by one",
                    ids[0]),
        Json{{"id", ids[0]}, {"positions", Json::array({0, 1})}}));
    return;
  }
  // Ollama's list leaves the mark out.
  if (is_bos || response.format == "ollama") return;
  const bool required = response.bos || (row != nullptr && row->required);
  if (!required) return;
  findings.push_back(make_finding(
      "missing_bos", Severity::warning,
      fmt::format("The prompt begins with token {} and not with BOS ({}), which this model was "
                  "trained with",
                  ids[0], response.bos ? *response.bos : row->bos),
      Json{{"first", ids[0]}, {"bos", response.bos ? *response.bos : row->bos}}));
}

void find_prompt_date(const Response& response, std::vector<Finding>& findings) {
  constexpr std::array<std::string_view, 5> kSigns{
      "Today Date:", "Today's date", "Current date:", "Current Date:", "The current date is"};
  const std::string text = prompt_text_of(response);
  for (const std::string_view sign : kSigns) {
    const std::size_t at = text.find(sign);
    if (at == std::string::npos) continue;
    findings.push_back(make_finding(
        "date_in_prompt", Severity::notice,
        fmt::format("The prompt holds the date (\"{}\"): the same request is another prompt on "
                    "another day",
                    escape_for_display(text.substr(at, sign.size() + 14))),
        Json{{"byte", at}}));
    return;
  }
}

void find_unlikely_prompt(const Response& response, std::vector<Finding>& findings) {
  if (words_unlikely(response.prompt_steps, findings)) return;
  const bool unsplit = std::any_of(response.warnings.begin(), response.warnings.end(),
                                   [](const ResponseWarning& w) { return w.id == "echo_unsplit"; });
  if (unsplit && !response.choices.empty()) {
    words_unlikely(response.choices[0].content.steps, findings);
  }
}

void find_ignored_request(const Response& response, std::vector<Finding>& findings) {
  const ResponseRequest& asked = response.request;
  std::vector<std::string> ignored;
  const auto number = [&](const char* name, const std::optional<double>& wanted,
                          const std::optional<double>& used) {
    if (wanted && used && std::abs(*wanted - *used) > 1e-6) {
      ignored.push_back(fmt::format("{} {} was asked for and {} used", name, *wanted, *used));
    }
  };
  number("temperature", asked.temperature, response.temperature);
  number("top_p", asked.top_p, response.top_p);
  if (asked.seed && response.seed && *asked.seed != *response.seed) {
    ignored.push_back(fmt::format("seed {} was asked for and {} used",
                                  escape_for_display(*asked.seed),
                                  escape_for_display(*response.seed)));
  }
  if (!asked.model.empty() && !response.model.empty() &&
      !is_model_asked(asked.model, response.model)) {
    ignored.push_back(fmt::format("model {} was asked for and {} answered",
                                  escape_for_display(asked.model),
                                  escape_for_display(response.model)));
  }
  for (const std::string& what : ignored) {
    findings.push_back(
        make_finding("request_not_honoured", Severity::warning, what, Json::object()));
  }
}

}  // namespace driftscope
