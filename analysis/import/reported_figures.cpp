// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/reported_figures.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "analysis/import/figure_text.h"
#include "analysis/import/formats.h"
#include "analysis/import/json_document.h"
#include "kernels/base/display_text.h"

namespace driftscope {
namespace {

using namespace figure_text;

constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr int kDeepest = 8;

std::string cell_of(JsonValue value) {
  if (value.is_number()) return std::string(value.raw());
  if (value.is_text()) return value.text();
  return value.is_null() ? std::string() : value.canonical();
}

// {"columns": […], "rows": [[…], …]}, also as "header"/"headers" and "data"/"table".
std::optional<FigureTable> columns_and_rows(JsonValue object) {
  for (const std::string_view head_name : {"columns", "header", "headers"}) {
    for (const std::string_view rows_name : {"rows", "data", "table"}) {
      const JsonValue heads = object[head_name];
      const JsonValue rows = object[rows_name];
      if (!heads.is_array() || !rows.is_array() || heads.size() < 2 || rows.size() < 1) continue;
      std::vector<std::string> names;
      for (const JsonValue head : heads) names.push_back(cell_of(head));
      std::vector<std::vector<std::string>> lines;
      for (const JsonValue row : rows) {
        std::vector<std::string> line;
        for (const JsonValue cell : row) line.push_back(cell_of(cell));
        if (line.size() != names.size() || lines.size() * names.size() > kMostCells) {
          return std::nullopt;
        }
        lines.push_back(std::move(line));
      }
      auto table = table_of(names, lines);
      for (const std::string_view name : {"metric", "measure", "quantity", "unit", "title"}) {
        if (table && object[name].is_text()) table->caption += object[name].text() + " ";
      }
      return table;
    }
  }
  return std::nullopt;
}

// A list of objects with the same members, one of them a text and one a number.
std::optional<FigureTable> rows_of_objects(JsonValue list) {
  if (!list.is_array() || list.size() < 2 || !list.at(0).is_object()) return std::nullopt;
  std::vector<std::string> names;
  for (auto it = list.at(0).begin(); it != list.at(0).end(); ++it) names.push_back(it.key());
  std::vector<std::vector<std::string>> lines;
  for (const JsonValue row : list) {
    std::vector<std::string> line;
    for (const std::string& name : names) {
      const JsonValue cell = row[name];
      if (!cell || cell.is_array() || cell.is_object()) return std::nullopt;
      line.push_back(cell_of(cell));
    }
    if (lines.size() * names.size() > kMostCells) return std::nullopt;
    lines.push_back(std::move(line));
  }
  if (names.size() < 2) return std::nullopt;
  auto table = table_of(names, lines);
  if (table && table->label_column.empty()) return std::nullopt;
  return table;
}

bool names_a_difference(std::string_view key) {
  const std::string name = lower(key);
  return contains(name, "diff") || contains(name, "delta") || contains(name, "error") ||
         contains(name, "drift") || name.ends_with("_err") || contains(name, "deviation");
}

// Numbers, null and texts such as "NaN".
std::optional<std::vector<std::optional<double>>> numbers_of(JsonValue list) {
  if (!list.is_array() || list.size() < 2) return std::nullopt;
  std::vector<std::optional<double>> values;
  bool any = false;
  for (const JsonValue entry : list) {
    const auto value = entry.is_text() ? cell_number(entry.text()) : entry.number();
    if (!value && !entry.is_null()) return std::nullopt;
    values.push_back(value);
    any = any || value;
  }
  if (!any) return std::nullopt;
  return values;
}

// The unit of the last digit of a number as printed: 0.0001 for "-0.6931".
double unit_printed(std::string_view digits) {
  const std::size_t exponent_at = digits.find_first_of("eE");
  const std::string_view mantissa = digits.substr(0, exponent_at);
  int exponent = 0;
  if (exponent_at != std::string_view::npos) {
    std::string_view tail = digits.substr(exponent_at + 1);
    if (tail.starts_with('+')) tail.remove_prefix(1);
    std::from_chars(tail.data(), tail.data() + tail.size(), exponent);
  }
  const std::size_t dot = mantissa.find('.');
  if (dot != std::string_view::npos) exponent -= static_cast<int>(mantissa.size() - dot - 1);
  return std::abs(exponent) > 300 ? 0.0 : std::pow(10.0, exponent);
}

bool add_ranked(FigureTop& top, std::string token, JsonValue value) {
  const auto number = value.number();
  if (!number) return false;
  const double unit = unit_printed(value.raw());
  if (top.tokens.empty() || unit < top.resolution) top.resolution = unit;
  top.tokens.emplace_back(std::move(token), *number);
  return true;
}

// {"token": 1.5, …}
std::optional<FigureTop> ranked_members(JsonValue object) {
  if (object.size() < 2) return std::nullopt;
  FigureTop top;
  for (auto it = object.begin(); it != object.end(); ++it) {
    if (!add_ranked(top, it.key(), *it)) return std::nullopt;
  }
  return top;
}

// [["token", 1.5], …] or [{"token": …, "logit": …}, …].
std::optional<FigureTop> ranked_of(JsonValue list) {
  if (list.is_object()) return ranked_members(list);
  if (!list.is_array() || list.size() < 2) return std::nullopt;
  FigureTop top;
  for (const JsonValue entry : list) {
    JsonValue token, value;
    if (entry.is_array() && entry.size() == 2) {
      token = entry.at(0);
      value = entry.at(1);
    } else if (entry.is_object()) {
      for (const std::string_view name : {"token", "text", "token_id", "id", "piece"}) {
        if (!token && (entry[name].is_text() || entry[name].is_number())) token = entry[name];
      }
      for (const std::string_view name : {"logit", "value", "logprob", "score", "log_prob"}) {
        if (value || !entry[name].is_number()) continue;
        value = entry[name];
        top.logprobs = top.logprobs || name == "logprob" || name == "log_prob";
      }
    }
    if (!(token.is_text() || token.is_number()) || !value.is_number()) return std::nullopt;
    if (!add_ranked(top, cell_of(token), value)) return std::nullopt;
  }
  return top;
}

bool names_logprobs(std::string_view name) {
  return contains(name, "logprob") || contains(name, "log_prob");
}

class JsonFigures {
 public:
  explicit JsonFigures(ReportedFigures& out) : m_out(out) {}

  void visit(JsonValue value, int depth) {
    if (depth > kDeepest) return;
    if (value.is_array()) {
      if (!m_out.table) m_out.table = rows_of_objects(value);
      if (m_out.table && depth == 0) return;
      for (const JsonValue entry : value) visit(entry, depth + 1);
      return;
    }
    if (!value.is_object()) return;
    if (!m_out.table) m_out.table = columns_and_rows(value);
    visit_divergence(value);
    for (auto it = value.begin(); it != value.end(); ++it)
      visit_member(value, it.key(), *it, depth);
  }

 private:
  void visit_member(JsonValue object, const std::string& key, JsonValue value, int depth) {
    const std::string name = lower(key);
    // What somebody expects of the figures is no figure.
    if (name == "expected" || name == "rows" || name == "columns") return;
    if (name == "model" || name == "target") {
      if (m_out.model.empty()) set_if_given(m_out.model, value);
      return;
    }
    if (name == "top_k") m_out.top_k = value.integer();
    if (name == "temperature") m_out.temperature = value.number();
    if (name == "observations" || name == "notes" || name == "observation") {
      if (value.is_text()) m_out.observations.push_back(value.text());
      for (const JsonValue entry : value) {
        if (entry.is_text()) m_out.observations.push_back(entry.text());
      }
      return;
    }
    if (value.is_number()) {
      const std::string_view kl = kl_name_of(name);
      const auto number = value.number();
      if (!kl.empty() && number) m_out.kl.try_emplace(std::string(kl), *number);
      return;
    }
    if (auto ranked = contains(name, "top") || contains(name, "candidates") ? ranked_of(value)
                                                                            : std::nullopt) {
      FigureTop& top = *ranked;
      top.logprobs =
          top.logprobs || names_logprobs(name) || names_logprobs(lower(object["kind"].text()));
      for (const std::string_view place : {"step", "position", "index"}) {
        const auto step = object[place].integer();
        if (!step) continue;
        top.step = *step;
        top.step_known = true;
        break;
      }
      m_out.tops.push_back(std::move(top));
      return;
    }
    if (names_a_difference(name)) {
      if (auto numbers = numbers_of(value)) {
        m_out.lists.push_back({key, std::move(*numbers)});
        return;
      }
    }
    visit(value, depth + 1);
  }

  void visit_divergence(JsonValue object) {
    for (auto it = object.begin(); it != object.end(); ++it) {
      const std::string name = lower(it.key());
      if (contains(name, "same_prompt") || contains(name, "prompt_equal") ||
          contains(name, "prompts_equal")) {
        divergence().same_prompt = (*it).boolean();
      } else if (says_same_tokens(name) && (*it).boolean()) {
        divergence().same_tokens = (*it).boolean();
      }
      if (m_found || !names_a_parting(name)) continue;
      JsonValue place = *it;
      JsonValue sides = object;
      if (place.is_object()) {  // {"first_divergence": {"step": 29, …}}
        sides = place;
        for (const std::string_view key : {"step", "index", "position", "token_index"}) {
          if (sides[key].integer()) place = sides[key];
        }
      }
      const auto step = place.integer();
      if (!step || *step < 0) continue;
      m_found = true;
      const bool from_one = contains(name, "one_based") || contains(name, "1_based");
      divergence().step = *step - (from_one ? 1 : 0);
      take_tokens(sides);
    }
  }

  // "first_difference_zero_based", "divergence_step", "mismatch_index"; no counts, no maxima.
  static bool names_a_parting(std::string_view name) {
    const bool parts = contains(name, "diverg") || contains(name, "mismatch") ||
                       contains(name, "difference") || contains(name, "_diff");
    const bool place = contains(name, "first") || contains(name, "step") ||
                       contains(name, "index") || contains(name, "position") ||
                       name.ends_with("_at");
    const bool other = contains(name, "max") || contains(name, "mean") || contains(name, "count") ||
                       contains(name, "token_at");
    return parts && place && !other;
  }

  // "exact_token_parity", "outputs_match", "tokens_identical"
  static bool says_same_tokens(std::string_view name) {
    const bool same = contains(name, "parity") || contains(name, "match") ||
                      contains(name, "identical") || contains(name, "equal");
    const bool tokens =
        contains(name, "token") || contains(name, "output") || contains(name, "parity");
    return same && tokens && !contains(name, "mismatch") && !contains(name, "prompt") &&
           !contains(name, "not_");
  }

  // Members of the same object that name a token, in their order: two sides.
  void take_tokens(JsonValue object) {
    for (auto it = object.begin(); it != object.end(); ++it) {
      const std::string name = lower(it.key());
      const bool token =
          name == "a" || name == "b" ||
          (contains(name, "token") && !contains(name, "tokens") && !contains(name, "parity") &&
           !contains(name, "count") && !contains(name, "first") && !contains(name, "index"));
      if (!token || !((*it).is_number() || (*it).is_text())) continue;
      if (divergence().tokens.size() < 2) divergence().tokens.push_back(cell_of(*it));
    }
  }

  FigureDivergence& divergence() {
    if (!m_out.divergence) m_out.divergence.emplace();
    return *m_out.divergence;
  }

  ReportedFigures& m_out;
  bool m_found = false;
};

bool says_something(const ReportedFigures& figures) {
  const bool diverged =
      figures.divergence && (figures.divergence->step || figures.divergence->same_tokens);
  const bool kl = figures.kl.contains("kld_mean") || figures.kl.contains("kld_median") ||
                  figures.kl.contains("kld_max") || figures.kl.contains("same_top");
  return figures.table || !figures.lists.empty() || !figures.tops.empty() || diverged || kl;
}

// The best tokens of one step also read as a list of one token; they are figures where no token is
// said to be the answer.
bool is_answer(JsonValue body) {
  const ResponseFormat* format = find_body_format(body);
  if (format == nullptr) return find_event_format(body) != nullptr;
  return format->name != "token-list" || body.has("tokens") || body.has("token_ids") ||
         body.has("output_ids");
}

std::optional<ReportedFigures> read_any(std::string_view text) {
  if (text.size() > kMostBytes) return std::nullopt;
  ReportedFigures figures;
  const std::string_view body = trimmed(text);
  if (body.starts_with('{') || body.starts_with('[')) {
    JsonDocument document;
    if (!document.parse(body)) return std::nullopt;
    const JsonValue root = document.root();
    const JsonValue first = root.is_array() ? root.at(0) : root;
    if (is_answer(first)) return std::nullopt;
    JsonFigures(figures).visit(root, 0);
  } else {
    figures.table = text_table(body);
    if (!figures.table) read_printed_statistics(body, figures);
  }
  if (!says_something(figures)) return std::nullopt;
  return figures;
}

}  // namespace

bool is_reported_figures(std::string_view text) { return read_any(text).has_value(); }

Result<ReportedFigures> read_reported_figures(std::string_view text, std::string_view name) {
  auto figures = read_any(text);
  if (!figures) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: holds neither an answer nor figures that are known here",
                            escape_for_display(name)));
  }
  figures->source = std::string(name);
  return std::move(*figures);
}

}  // namespace driftscope
