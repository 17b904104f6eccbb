// SPDX-License-Identifier: Apache-2.0
#include "analysis/import/response.h"

namespace driftscope {

std::string_view normalised_finish_reason(std::string_view sent) {
  struct Row {
    std::string_view sent;
    std::string_view meaning;
  };
  static constexpr Row kRows[] = {
      {"stop", "stop"},
      {"eos", "stop"},
      {"eos_token", "stop"},
      {"end_turn", "stop"},
      {"COMPLETE", "stop"},
      {"STOP", "stop"},
      {"stop_sequence", "stop"},
      {"STOP_SEQUENCE", "stop"},
      {"word", "stop"},
      {"completed", "stop"},
      {"pause_turn", "stop"},
      {"FINISH", "stop"},
      {"FINISH_REASON_STOP", "stop"},
      {"length", "length"},
      {"max_tokens", "length"},
      {"MAX_TOKENS", "length"},
      {"limit", "length"},
      {"LENGTH", "length"},
      {"model_length", "length"},
      {"max_output_tokens", "length"},
      {"model_context_window_exceeded", "length"},
      {"content_filter", "content_filter"},
      {"SAFETY", "content_filter"},
      {"RECITATION", "content_filter"},
      {"PROHIBITED_CONTENT", "content_filter"},
      {"BLOCKLIST", "content_filter"},
      {"guardrail_intervened", "content_filter"},
      {"content_filtered", "content_filter"},
      {"refusal", "content_filter"},
      {"SPII", "content_filter"},
      {"IMAGE_SAFETY", "content_filter"},
      {"LANGUAGE", "content_filter"},
      {"tool_calls", "tool_calls"},
      {"function_call", "tool_calls"},
      {"tool_use", "tool_calls"},
      {"TOOL_CALL", "tool_calls"},
      {"error", "error"},
      {"ERROR", "error"},
      {"ERROR_TOXIC", "content_filter"},
      {"TIMEOUT", "error"},
      {"failed", "error"},
      {"abort", "error"},
      {"cancelled", "error"},
      {"MALFORMED_FUNCTION_CALL", "error"},
      {"insufficient_system_resource", "error"},
  };
  constexpr std::string_view kEnum = "FinishReason.";  // the print of an SDK's value
  if (sent.starts_with(kEnum)) sent.remove_prefix(kEnum.size());
  for (const Row& row : kRows) {
    if (row.sent == sent) return row.meaning;
  }
  return "";
}

}  // namespace driftscope
