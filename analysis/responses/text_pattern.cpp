// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/text_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>

#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::size_t kMostPatternBytes = 65536;
constexpr std::uint32_t kMatchLimit = 2'000'000;
constexpr std::uint32_t kDepthLimit = 20'000;
constexpr std::uint32_t kHeapLimitKibibytes = 65536;

template <class T, void (*Release)(T*)>
struct Releaser {
  void operator()(T* object) const { Release(object); }
};
using Code = std::unique_ptr<pcre2_code, Releaser<pcre2_code, pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context,
                                       Releaser<pcre2_compile_context, pcre2_compile_context_free>>;
using MatchContext =
    std::unique_ptr<pcre2_match_context, Releaser<pcre2_match_context, pcre2_match_context_free>>;
using MatchData =
    std::unique_ptr<pcre2_match_data, Releaser<pcre2_match_data, pcre2_match_data_free>>;

}  // namespace

struct TextPattern::Compiled {
  Code code;
  MatchContext limits;
};

Result<TextPattern> TextPattern::compile(std::string_view expression, std::string_view where) {
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (context) pcre2_set_max_pattern_length(context.get(), kMostPatternBytes);
  int error = 0;
  PCRE2_SIZE offset = 0;
  constexpr std::uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
  auto compiled = std::make_shared<Compiled>();
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()),
                                     expression.size(), kOptions, &error, &offset, context.get()));
  if (!compiled->code) {
    std::array<PCRE2_UCHAR, 160> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    return fail(ErrorKind::malformed,
                fmt::format("{}: pattern \"{}\" cannot be compiled: {} at byte {}", where,
                            escape_for_display(expression.substr(0, 80)),
                            reinterpret_cast<const char*>(message.data()), offset));
  }
  compiled->limits.reset(pcre2_match_context_create(nullptr));
  if (!compiled->limits) return fail(ErrorKind::engine, "out of memory; free memory");
  pcre2_set_match_limit(compiled->limits.get(), kMatchLimit);
  pcre2_set_depth_limit(compiled->limits.get(), kDepthLimit);
  pcre2_set_heap_limit(compiled->limits.get(), kHeapLimitKibibytes);
  TextPattern pattern;
  pattern.m_compiled = std::move(compiled);
  return pattern;
}

PatternOutcome TextPattern::search(std::string_view text) const {
  if (find_invalid_utf8(text) != std::string_view::npos) return PatternOutcome::not_text;
  const MatchData data(pcre2_match_data_create(1, nullptr));
  if (!data) return PatternOutcome::too_costly;
  const int result =
      pcre2_match(m_compiled->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                  PCRE2_NO_UTF_CHECK, data.get(), m_compiled->limits.get());
  if (result == PCRE2_ERROR_NOMATCH) return PatternOutcome::absent;
  return result < 0 ? PatternOutcome::too_costly : PatternOutcome::found;
}

}  // namespace driftscope
