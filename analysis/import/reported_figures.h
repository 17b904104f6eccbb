// SPDX-License-Identifier: Apache-2.0
// Figures of an experiment as people report them: tables of differences, lists of differences, the
// best tokens of a step, where two runs first differed, KL statistics. They are summaries, not
// answers: what is not in them stays unknown. Kinds are told by structure and by the names of
// columns and fields, as JSON, CSV, TSV or a Markdown table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/result.h"

namespace driftscope {

// A table with a name for each row and numbers under named columns.
struct FigureTable {
  struct Row {
    std::string label;
    std::vector<std::optional<double>> values;  // one per column
    std::string remarks;                        // its other texts
  };
  std::string label_column;
  std::vector<std::string> columns;
  std::vector<Row> rows;
  std::string caption;  // text around it, or a "metric" beside it
};

// Differences of one quantity, in the order of the tokens or steps.
struct FigureList {
  std::string name;
  std::vector<std::optional<double>> values;  // empty: null; also NaN and infinities
};

// The best tokens of one step with their values.
struct FigureTop {
  std::int64_t step = 0;
  bool step_known = false;
  std::vector<std::pair<std::string, double>> tokens;  // in the order of the report
  double resolution = 0.0;  // of the last digit printed, the finest of the values; 0: not known
  bool logprobs = false;    // said to be; else logits or not said
};

// Where two runs first differed.
struct FigureDivergence {
  std::optional<std::int64_t> step;  // from 0; empty: they did not
  std::vector<std::string> tokens;   // of the two sides there, as far as given
  std::optional<bool> same_prompt;
  std::optional<bool> same_tokens;  // as the report says
};

struct ReportedFigures {
  std::string source;  // name of the file
  std::string model;
  std::optional<FigureTable> table;
  std::vector<FigureList> lists;
  std::vector<FigureTop> tops;
  std::optional<FigureDivergence> divergence;
  std::map<std::string, double> kl;   // by a name of the table in reported_figures.cpp
  std::optional<std::int64_t> top_k;  // of the sampling
  std::optional<double> temperature;
  std::vector<std::string> observations;  // sentences of the report
};

// Whether the text holds figures of one of these kinds, and no answer of a server.
[[nodiscard]] bool is_reported_figures(std::string_view text);
// Errors: malformed, "NAME: what".
[[nodiscard]] Result<ReportedFigures> read_reported_figures(std::string_view text,
                                                            std::string_view name);

}  // namespace driftscope
