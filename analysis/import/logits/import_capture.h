// SPDX-License-Identifier: Apache-2.0
// From what other programs saved to an ordinary capture: lane a, and lane b where there are two.
// Only what the files say is written: no configuration, no times (0), no margins. Rows are kept
// whole where the file has them; answers with lists of a few tokens become top-K rows.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/comparison.h"
#include "analysis/import/logits/logit_file.h"
#include "analysis/import/response.h"

namespace driftscope {

struct ImportStep {
  TokenText token;
  std::vector<std::pair<TokenText, double>> listed;  // values of the tokens that the file lists
};

// One lane to be.
struct ImportSide {
  std::string file;    // as given
  std::string sha256;  // of the file; empty: not a file
  std::string format;
  std::string values = "not_stated";
  std::string model;
  std::string prompt_text;     // as the server repeats it
  std::string request_prompt;  // what was asked for, where the file has the request
  std::vector<std::int64_t> prompt_ids;
  std::string stop = "steps";  // as the server said; "steps": not known
  bool scored = false;
  bool lossy = false;
  bool placeholders = false;  // every value is 0 and was not measured
  std::vector<Finding> findings;
  std::vector<std::pair<std::string, std::string>> facts;  // into the envelope, as texts
  std::vector<std::pair<std::string, std::string>> import_facts;
  std::optional<LogitFile> rows;  // whole rows, or else:
  std::vector<ImportStep> steps;
};

// Which choice of the response is given by its place in the list. The response is graded
// (grade_response). Errors: inconclusive, where the answer has no tokens.
[[nodiscard]] Result<ImportSide> import_side(const Response& response, std::size_t choice);
[[nodiscard]] ImportSide import_side(LogitFile file);

struct ImportOptions {
  std::string created;          // ISO 8601, UTC
  std::string command;          // that made the capture
  std::int64_t most_steps = 0;  // 0: all
  int deflate = 0;
};

struct ImportSummary {
  std::int64_t vocabulary = 0;
  std::vector<std::int64_t> steps;  // of each side
  bool listed = false;
};

// `sides`: one or two. Errors: inconclusive (two that no capture can hold together), malformed
// (rows that cannot be read), output.
[[nodiscard]] Result<ImportSummary> write_import(const std::filesystem::path& path,
                                                 const std::vector<ImportSide>& sides,
                                                 const ImportOptions& options);

}  // namespace driftscope
