// SPDX-License-Identifier: Apache-2.0
// A file of many answers, one a line, found without reading the answers: so that a file larger
// than memory can be compared line by line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/import/response.h"

namespace driftscope {

struct ResponseLine {
  std::string_view text;       // without its end and the space around it; never empty
  std::int64_t number = 0;     // of the line, from 1
  std::string custom_id = {};  // of a batch's line; empty: none
};

struct ResponseLines {
  std::vector<ResponseLine> lines;
  // Every line that can be read has a custom_id. Where a line has none, the custom_ids behind it
  // are not looked for.
  bool by_custom_id = false;
};

// Gives the bytes of a text from front to back, up to so many at a time; 0 at the end.
using TextReader = std::function<std::size_t(char* target, std::size_t capacity)>;

// Empty where the text is no file of lines with one answer each (a single body, a list, a stream, a
// recording, saved headers): it has to be read whole. With `reader`, of the same text, only the
// lines' ends are looked at in `text`, which may be a mapped file; `passed` is then told of each
// stretch that will not be looked at again by this function.
[[nodiscard]] std::optional<ResponseLines> find_response_lines(
    std::string_view text, const TextReader& reader = {},
    const std::function<void(std::string_view)>& passed = {});

// The custom_id of a batch's line: beside "response", "error" or "result". Empty: none. Also of a
// line that breaks off behind it.
[[nodiscard]] std::string custom_id_of_line(std::string_view line);

// A line of a probe's file that asked about the server itself: no answer to any prompt.
[[nodiscard]] bool is_probe_discovery(std::string_view line);

// Reads lines one at a time and keeps its memory from line to line.
class LineReader {
 public:
  LineReader();
  ~LineReader();
  // The answers of one line, one in general; a line that cannot be read gives one with `error`.
  // `name` is the file's.
  [[nodiscard]] std::vector<Response> read(const ResponseLine& line, std::string_view name);
  // The same without the tokens' alternatives where that can be done: the steps tell how many
  // there are (ResponseStep::alternatives_left_out) and add_alternatives() reads those of a step.
  // They are most of a file.
  [[nodiscard]] std::vector<Response> read_without_alternatives(const ResponseLine& line,
                                                                std::string_view name);
  void add_alternatives(ResponseStep& step);

 private:
  struct Memory;
  std::unique_ptr<Memory> m_memory;
};

}  // namespace driftscope
