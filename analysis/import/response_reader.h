// SPDX-License-Identifier: Apache-2.0
// Internal to analysis/import: reads one saved file, or one text inside of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/import/formats.h"
#include "analysis/import/json_document.h"
#include "analysis/import/response_file.h"
#include "analysis/import/response_headers.h"
#include "analysis/import/response_streams.h"

namespace driftscope {

class ResponseReader {
 public:
  // `depth`: texts inside of texts that led here.
  ResponseReader(std::string_view name, const ResponseTaker& take, JsonDocument& document,
                 int depth = 0)
      : m_name(name), m_take(take), m_depth(depth), m_document(document) {}
  Result<void> read(std::string_view bytes);
  // A line that cannot be read, or that holds something else, is given as broken and does not lose
  // the others.
  Result<void> single_line(std::string_view line, std::size_t number,
                           std::optional<Error>& problem);

 private:
  // What a wrapper says of the answer inside it.
  struct Context {
    JsonValue request;
    HeaderBlock block;
    std::string custom_id;
    std::string request_id;
  };
  using Members = std::vector<std::pair<std::string, JsonValue>>;

  [[nodiscard]] std::string display() const;

  // ---- response_file.cpp: containers ----
  Result<void> content(std::string_view text);
  Result<void> json_text(std::string_view text);
  Result<void> unreadable(std::string_view text, const Error& error);
  Result<void> empty();
  static Result<void> discovery_only(const std::string& source);
  Result<void> headers_only(std::string error);
  Result<void> event_stream(std::string_view text);
  Result<void> event_lines(std::string_view text, StreamAssembler& assembler);
  Result<void> binary_events(std::string_view bytes);
  Result<void> lines(std::string_view text);
  Result<void> line_stream(std::string_view text);
  Result<void> sequence(std::string_view text);
  Result<void> sequence_stream(std::string_view text);
  Result<void> give_broken(std::string source, std::string error, std::string custom_id = {});
  Result<void> take(Response&& response);
  // Another text inside of this one.
  static Result<void> read_inside(std::string_view text, std::string_view name,
                                  const ResponseTaker& take, int depth);

  // ---- response_bodies.cpp: values ----
  Result<void> value(JsonValue root, const std::string& source, int depth);
  Result<void> list(JsonValue root, const std::string& source, int depth);
  Result<void> list_of_texts(JsonValue root, const std::string& source);
  Result<void> array_stream(JsonValue root, const std::string& source);
  Result<void> object(JsonValue root, const std::string& source, Context context, int depth);
  Result<void> inner(JsonValue value, const std::string& source, const Context& context, int depth);
  // An exchange whose body is no response and says so: a page of HTML, a text under a bad status.
  Result<void> no_response(const std::string& source, const Context& context, std::string error);
  Result<void> batch_line(JsonValue root, const std::string& source, Context context);
  [[nodiscard]] static bool holds_response(JsonValue value, int depth);
  [[nodiscard]] static Members members_with_responses(JsonValue root, int depth);
  static void add_context(JsonValue root, Context& context);
  Result<void> known(JsonValue root, const ResponseFormat& format, const std::string& source,
                     const Context& context);
  Result<void> give(Response&& response, const Context& context);
  Result<void> archive(JsonValue entries, const std::string& source);
  Result<void> archive_entry(JsonValue entry, const std::string& source, std::string& problem);

  std::string m_name;
  const ResponseTaker& m_take;
  int m_depth;
  std::string m_storage;  // text that is not as in the file
  HeaderBlock m_block;
  std::vector<ResponseWarning> m_pending;  // for the next response
  bool m_refused = false;                  // by m_take: that ends the reading
  JsonDocument& m_document;
};

}  // namespace driftscope
