// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/response_columns.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/responses/compared_answer.h"
#include "analysis/responses/response_lint.h"
#include "ui/models/token_text.h"

namespace driftscope::ui {
namespace {

using Steps = std::vector<ResponseStep>;

ResponseStep piece_step(std::string_view piece) {
  ResponseStep step;
  step.token.text = step.token.bytes = std::string(piece);
  return step;
}

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// A word with the blanks before it.
std::size_t word_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_blank(text[at])) ++at;
  while (at < text.size() && !is_blank(text[at])) ++at;
  return at;
}

// Pieces of a text: cut where the other side's tokens end as long as the text is the same, then
// into words.
Steps pieces_of(std::string_view text, const Steps& other) {
  Steps steps;
  for (const ResponseStep& step : other) {
    const std::string& bytes = step.token.bytes;
    if (bytes.empty() || !text.starts_with(bytes)) break;
    steps.push_back(piece_step(bytes));
    text.remove_prefix(bytes.size());
  }
  while (!text.empty()) {
    const std::size_t length = word_length(text);
    steps.push_back(piece_step(text.substr(0, length)));
    text.remove_prefix(length);
  }
  return steps;
}

std::int64_t size_of(const ResponseStep& step) {
  return static_cast<std::int64_t>(step.token.bytes.size());
}

bool equal_tokens(const ResponseStep& x, const ResponseStep& y, ResponseAlignment alignment) {
  if (alignment == ResponseAlignment::token_ids) return x.token.id == y.token.id;
  if (alignment == ResponseAlignment::positions && (x.token.lossy || y.token.lossy)) return true;
  return x.token.bytes == y.token.bytes;
}

class ColumnBuilder {
 public:
  ColumnBuilder(ResponseColumns& out, const ResponseComparison& comparison)
      : m_out(out), m_comparison(comparison) {}

  void build() {
    if (m_comparison.alignment == ResponseAlignment::byte_offsets) {
      walk_offsets();
    } else {
      walk_equal();
    }
    if (!done()) {
      m_out.divergence = static_cast<std::int64_t>(m_out.columns.size());
      zip_rest();
    }
  }

 private:
  [[nodiscard]] std::int64_t count_a() const {
    return static_cast<std::int64_t>(m_out.steps_a.size());
  }
  [[nodiscard]] std::int64_t count_b() const {
    return static_cast<std::int64_t>(m_out.steps_b.size());
  }
  [[nodiscard]] const ResponseStep& step_a(std::int64_t i) const {
    return m_out.steps_a[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] const ResponseStep& step_b(std::int64_t j) const {
    return m_out.steps_b[static_cast<std::size_t>(j)];
  }
  [[nodiscard]] bool done() const { return m_a >= count_a() && m_b >= count_b(); }

  void walk_equal() {
    while (m_a < count_a() && m_b < count_b() &&
           equal_tokens(step_a(m_a), step_b(m_b), m_comparison.alignment)) {
      m_out.columns.push_back({m_a++, m_b++, ColumnState::equal});
    }
  }

  // Other tokenizers: a token stands above the one that begins at the same byte of the text.
  void walk_offsets() {
    std::int64_t at_a = 0;
    std::int64_t at_b = 0;
    const auto agrees = [&](const ResponseStep& step, std::int64_t at) {
      return at + size_of(step) <= m_comparison.equal_bytes;
    };
    while (m_a < count_a() && m_b < count_b() && agrees(step_a(m_a), at_a) &&
           agrees(step_b(m_b), at_b)) {
      if (at_a == at_b) {
        const bool same = step_a(m_a).token.bytes == step_b(m_b).token.bytes;
        m_out.columns.push_back({m_a, m_b, same ? ColumnState::equal : ColumnState::split});
        at_a += size_of(step_a(m_a++));
        at_b += size_of(step_b(m_b++));
      } else if (at_a < at_b) {
        m_out.columns.push_back({m_a, -1, ColumnState::split});
        at_a += size_of(step_a(m_a++));
      } else {
        m_out.columns.push_back({-1, m_b, ColumnState::split});
        at_b += size_of(step_b(m_b++));
      }
    }
    // The side that is behind catches up as long as its text agrees.
    while (m_a < count_a() && at_a < at_b && agrees(step_a(m_a), at_a)) {
      m_out.columns.push_back({m_a, -1, ColumnState::split});
      at_a += size_of(step_a(m_a++));
    }
    while (m_b < count_b() && at_b < at_a && agrees(step_b(m_b), at_b)) {
      m_out.columns.push_back({-1, m_b, ColumnState::split});
      at_b += size_of(step_b(m_b++));
    }
  }

  // Equal tokens at the ends, no more than the analysis says have joined again.
  [[nodiscard]] std::int64_t tail() const {
    const auto& divergence = m_comparison.divergence;
    if (!divergence || !divergence->joined_again_byte) return 0;
    std::int64_t start_a = 0;
    for (const ResponseStep& step : m_out.steps_a) start_a += size_of(step);
    std::int64_t count = 0;
    while (m_a + count < count_a() && m_b + count < count_b()) {
      const ResponseStep& x = step_a(count_a() - 1 - count);
      start_a -= size_of(x);
      if (start_a < *divergence->joined_again_byte ||
          !equal_tokens(x, step_b(count_b() - 1 - count), m_comparison.alignment)) {
        break;
      }
      ++count;
    }
    return count;
  }

  void zip_until(std::int64_t end_a, std::int64_t end_b) {
    while (m_a < end_a || m_b < end_b) {
      const std::int64_t i = m_a < end_a ? m_a++ : -1;
      const std::int64_t j = m_b < end_b ? m_b++ : -1;
      m_out.columns.push_back({i, j, ColumnState::differs});
    }
  }

  void join(std::int64_t count) {
    if (count > 0 && m_out.joined < 0) {
      m_out.joined = static_cast<std::int64_t>(m_out.columns.size());
    }
    for (; count > 0; --count) m_out.columns.push_back({m_a++, m_b++, ColumnState::joined});
  }

  void zip_rest() {
    const std::int64_t joined = tail();
    const std::int64_t end_a = count_a() - joined;
    const std::int64_t end_b = count_b() - joined;
    for (const Run& run : common_runs(end_a, end_b)) {
      zip_until(run.a, run.b);
      join(run.length);
    }
    zip_until(end_a, end_b);
    join(joined);
  }

  // Stretches that both sides have, in order, from the tokens behind the divergence: a longest
  // common subsequence, of which only runs of three tokens and more count; shorter ones agree by
  // chance. None where the table would be too large.
  struct Run {
    std::int64_t a = 0, b = 0, length = 0;
  };
  [[nodiscard]] std::vector<Run> common_runs(std::int64_t end_a, std::int64_t end_b) const {
    constexpr std::int64_t kLargestTable = 4'000'000;
    constexpr std::int64_t kShortestRun = 3;
    const std::int64_t rows = end_a - m_a;
    const std::int64_t columns = end_b - m_b;
    if (rows <= 0 || columns <= 0 || rows > kLargestTable / columns) return {};
    const auto width = static_cast<std::size_t>(columns) + 1;
    // length[i][j]: of the longest common subsequence of the tokens from i and from j on
    std::vector<std::int32_t> length((static_cast<std::size_t>(rows) + 1) * width, 0);
    const auto at = [&](std::int64_t i, std::int64_t j) -> std::int32_t& {
      return length[static_cast<std::size_t>(i) * width + static_cast<std::size_t>(j)];
    };
    const auto same = [&](std::int64_t i, std::int64_t j) {
      return equal_tokens(step_a(m_a + i), step_b(m_b + j), m_comparison.alignment);
    };
    for (std::int64_t i = rows - 1; i >= 0; --i) {
      for (std::int64_t j = columns - 1; j >= 0; --j) {
        at(i, j) = same(i, j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
    std::vector<Run> runs;
    for (std::int64_t i = 0, j = 0; i < rows && j < columns;) {
      if (!same(i, j)) {
        (at(i + 1, j) >= at(i, j + 1) ? i : j) += 1;
        continue;
      }
      Run run{.a = m_a + i, .b = m_b + j, .length = 0};
      while (i < rows && j < columns && same(i, j)) ++i, ++j, ++run.length;
      if (run.length >= kShortestRun) runs.push_back(run);
    }
    return runs;
  }

  ResponseColumns& m_out;
  const ResponseComparison& m_comparison;
  std::int64_t m_a = 0;
  std::int64_t m_b = 0;
};

// The first column of a stretch of missing tokens at the end of a side says so.
QString missing_text(bool at_end, bool first) {
  return at_end && first ? QStringLiteral("end") : QString();
}

}  // namespace

ResponseColumns response_columns(const Response& a, std::size_t choice_a, const Response& b,
                                 std::size_t choice_b, const ResponseComparison& comparison) {
  ResponseColumns out;
  const ResponseChannel& channel_a = compared_channel(a.choices[choice_a]);
  const ResponseChannel& channel_b = compared_channel(b.choices[choice_b]);
  out.steps_a = visible_steps(channel_a);
  out.steps_b = visible_steps(channel_b);
  const bool text = comparison.alignment == ResponseAlignment::text;
  const bool cut_a = out.steps_a.empty() || text;
  const bool cut_b = out.steps_b.empty() || text;
  if (cut_a && cut_b && comparison.prompt_drift.count > 0 && channel_text(channel_a).empty() &&
      channel_text(channel_b).empty()) {
    out.unit = ColumnUnit::prompt;
    out.steps_a = a.prompt_steps;
    out.steps_b = b.prompt_steps;
  } else if (cut_a || cut_b) {
    out.unit = ColumnUnit::words;
    const std::string text_a = channel_text(channel_a);
    const std::string text_b = channel_text(channel_b);
    // A side keeps its tokens where it has them and they make up its text.
    if (out.steps_a.empty()) out.steps_a = pieces_of(text_a, out.steps_b);
    if (out.steps_b.empty()) out.steps_b = pieces_of(text_b, out.steps_a);
  }
  ColumnBuilder(out, comparison).build();
  return out;
}

ResponseColumns columns_of_one(const Response& response, std::size_t choice) {
  ResponseColumns out;
  const ResponseChannel& channel = compared_channel(response.choices[choice]);
  out.steps_a = visible_steps(channel);
  const std::string text = channel_text(channel);
  if (out.steps_a.empty() && !text.empty()) {
    out.unit = ColumnUnit::words;
    out.steps_a = pieces_of(text, {});
  } else if (out.steps_a.empty() && !response.prompt_steps.empty()) {
    out.unit = ColumnUnit::prompt;
    out.steps_a = response.prompt_steps;
  }
  for (std::size_t i = 0; i < out.steps_a.size(); ++i) {
    out.columns.push_back({static_cast<std::int64_t>(i), -1, ColumnState::equal});
  }
  return out;
}

QString response_token(const ResponseStep& step) {
  const TokenText& token = step.token;
  if (!token.bytes.empty() && !token.lossy) return escaped_text(token.bytes);
  if (!token.text.empty()) return escaped_text(token.text);
  if (token.id) return QStringLiteral("#%1").arg(*token.id);
  return step.text_of_group ? QStringLiteral("(with the token before)") : QStringLiteral("(empty)");
}

QString quoted_response_token(const ResponseStep& step) {
  const bool named = step.token.bytes.empty() && step.token.text.empty();
  const QString text = response_token(step);
  return named ? text : QStringLiteral("\u2018%1\u2019").arg(text);
}

TokenRibbon response_ribbon(const ResponseColumns& columns) {
  TokenRibbon ribbon;
  ribbon.items.reserve(columns.columns.size());
  const auto text_of = [](const Steps& steps, std::int64_t index) {
    return response_token(steps[static_cast<std::size_t>(index)]);
  };
  std::int64_t seen_a = 0;
  std::int64_t seen_b = 0;
  bool end_a = false;
  bool end_b = false;
  for (std::size_t i = 0; i < columns.columns.size(); ++i) {
    const ResponseColumn& column = columns.columns[i];
    RibbonItem item;
    item.step = static_cast<std::int64_t>(i);
    item.differs = column.state == ColumnState::differs;
    item.joined = column.state == ColumnState::joined;
    item.split = column.state == ColumnState::split;
    if (column.a >= 0) {
      item.text_a = text_of(columns.steps_a, column.a);
      seen_a = column.a + 1;
    } else {
      const bool over = seen_a == static_cast<std::int64_t>(columns.steps_a.size());
      item.missing_a = true;
      item.text_a = missing_text(over && !item.split, !std::exchange(end_a, end_a || over));
    }
    if (column.b >= 0) {
      item.text_b = text_of(columns.steps_b, column.b);
      seen_b = column.b + 1;
    } else {
      const bool over = seen_b == static_cast<std::int64_t>(columns.steps_b.size());
      item.missing_b = true;
      item.text_b = missing_text(over && !item.split, !std::exchange(end_b, end_b || over));
    }
    ribbon.items.push_back(std::move(item));
  }
  ribbon.divergence_step = columns.divergence;
  return ribbon;
}

std::vector<std::int64_t> difference_starts(const ResponseColumns& columns) {
  std::vector<std::int64_t> starts;
  for (std::size_t i = 0; i < columns.columns.size(); ++i) {
    const bool differs = columns.columns[i].state == ColumnState::differs;
    const bool before = i > 0 && columns.columns[i - 1].state == ColumnState::differs;
    if (differs && !before) starts.push_back(static_cast<std::int64_t>(i));
  }
  return starts;
}

std::optional<std::int64_t> next_difference(const ResponseColumns& columns, std::int64_t column) {
  for (const std::int64_t start : difference_starts(columns)) {
    if (start > column) return start;
  }
  // Behind the last stretch: where the texts run together again is worth a stop.
  if (columns.joined > column) return columns.joined;
  return std::nullopt;
}

std::optional<std::int64_t> previous_difference(const ResponseColumns& columns,
                                                std::int64_t column) {
  std::optional<std::int64_t> found;
  for (const std::int64_t start : difference_starts(columns)) {
    if (start < column) found = start;
  }
  return found;
}

}  // namespace driftscope::ui
