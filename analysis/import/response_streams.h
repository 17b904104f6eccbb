// SPDX-License-Identifier: Apache-2.0
// Events that come one by one, joined to the answers they are pieces of. Internal to
// analysis/import.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "analysis/import/formats.h"
#include "analysis/import/json_document.h"
#include "analysis/import/response.h"
#include "kernels/base/result.h"

namespace driftscope {

// Nothing but an event of a stream: a delta, a typed event.
[[nodiscard]] bool is_event_only(JsonValue value);
// The first of several values that are pieces of one answer: also a whole shape without an end.
[[nodiscard]] bool is_stream_piece(JsonValue value);

// Each kind of oddity once for each response.
void note_oddities(const JsonDocument& document, Response& response);

class StreamAssembler {
 public:
  // Takes each answer as it is whole. Its error ends the reading.
  using Give = std::function<Result<void>(Response&&)>;
  StreamAssembler(std::string source, Give give);

  // `kind`: of an "event:" line, else "". Events of no known format are passed over.
  Result<void> feed(std::string_view kind, const JsonDocument& document);
  Result<void> feed(std::string_view kind, JsonValue event);
  // What could not be read of the stream.
  void warn(std::string id, std::string text) { m_response.warn(std::move(id), std::move(text)); }
  // "[DONE]": the next event begins another answer.
  void end_mark() { m_ended = m_done_mark = true; }
  // Gives the last answer. Errors: malformed, where no event was of a known format.
  Result<void> finish(std::string_view display_name);

 private:
  [[nodiscard]] bool begins_another(JsonValue event) const;
  Result<void> give();
  Result<void> feed_text(std::string_view kind, std::string_view text);

  std::string m_source;
  Give m_give;
  const ResponseFormat* m_format = nullptr;
  Response m_response;
  bool m_ended = false;
  bool m_done_mark = false;
  std::size_t m_answers = 0;  // given so far
};

}  // namespace driftscope
