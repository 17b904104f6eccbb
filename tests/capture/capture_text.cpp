// SPDX-License-Identifier: Apache-2.0
#include "tests/capture/capture_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

namespace driftscope::testing {
namespace {

std::string ids(const std::vector<TokenId>& tokens) {
  std::vector<std::int32_t> values;
  for (const TokenId id : tokens) values.push_back(id.value);
  return fmt::format("{}", fmt::join(values, " "));
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

std::string bits(const Result<std::vector<float>>& row) {
  if (!row) return "error: " + row.error().message;
  std::vector<std::string> words;
  for (const float value : *row) {
    words.push_back(fmt::format("{:08x}", std::bit_cast<std::uint32_t>(value)));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string lane_text(const CaptureReader& reader, const CaptureLaneInfo& info) {
  const Lane lane = info.lane.lane;
  std::string text = fmt::format(
      "lane {} state {} stop {} steps {} of {}\nconfig {}\nenvelope {}\nsha256 {} {} {}\n",
      lane_name(lane), trace_state_name(info.state), info.stop, info.steps_complete,
      info.lane.steps, info.lane.config_json, info.lane.envelope_json, info.lane.model_sha256,
      info.lane.tokenizer_sha256, info.lane.chat_template_sha256);
  text += fmt::format("tokens {}\nchoices {}\ntiming_ns {}\n", ids(*reader.tokens(lane)),
                      ids(*reader.choices(lane)), fmt::join(*reader.timing_ns(lane), " "));
  const auto notes = reader.notes(lane);
  if (!notes) text += "notes error: " + notes.error().message + "\n";
  for (std::size_t step = 0; notes && step < notes->size(); ++step) {
    const StepNote& note = (*notes)[step];
    // A note that says nothing is the same as none: older files have none.
    if (note.rows_in_flight == 0 && !note.draw) continue;
    text += fmt::format("note {} rows {}", step, note.rows_in_flight);
    if (note.draw) {
      text +=
          fmt::format(" uniform {} {} {}", note.draw->uniform, note.draw->lower, note.draw->upper);
      for (const DrawCandidate& entry : note.draw->candidates) {
        text += fmt::format(" {}:{}:{}", entry.id.value, entry.score, entry.noise);
      }
    }
    text += "\n";
  }
  for (std::int64_t step = 0; step < info.steps_complete; ++step) {
    text += fmt::format("logits {} {}\n", step, bits(reader.logits(lane, step)));
    for (const TapSpec& tap : reader.header().taps) {
      text += fmt::format("tap {} {} {} {}\n", tap.layer, tap.operation, step,
                          bits(reader.tap(lane, tap, step)));
    }
  }
  return text;
}

}  // namespace

std::string capture_text(const CaptureReader& reader) {
  const CaptureHeader& header = reader.header();
  std::string text = fmt::format(
      "version {} state {} created {}\nenvelope {}\nprompt_a {}\nprompt_b {}\ntext {}\n"
      "vocabulary {}\n",
      reader.format_version(), trace_state_name(reader.state()), header.created,
      header.envelope_json, ids(header.prompt_a), ids(header.prompt_b), hex(header.prompt_text),
      header.vocabulary);
  for (std::size_t i = 0; i < header.pieces.size(); ++i) {
    text += fmt::format("piece {} {}\n", i, hex(header.pieces[i]));
  }
  for (const CaptureLaneInfo& info : reader.lanes()) text += lane_text(reader, info);
  return text;
}

}  // namespace driftscope::testing
