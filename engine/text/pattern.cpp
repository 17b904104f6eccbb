// SPDX-License-Identifier: Apache-2.0
#include "engine/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <cstdint>

#include "engine/text/unicode_versions.h"
#include "kernels/base/display_text.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::size_t kMaxPatternBytes = 65536;
constexpr std::uint32_t kMatchLimit = 2'000'000;  // backtracking steps from one start
constexpr std::uint32_t kDepthLimit = 200'000;    // nested backtracking, interpreter only
constexpr std::uint32_t kHeapLimitKibibytes = 65536;
constexpr std::size_t kJitStackBytes = std::size_t{16} << 20U;
constexpr std::size_t kShownBytes = 80;

template <class T, void (*Release)(T*)>
struct Releaser {
  void operator()(T* object) const { Release(object); }
};
template <class T, void (*Release)(T*)>
using Handle = std::unique_ptr<T, Releaser<T, Release>>;

using Code = Handle<pcre2_code, pcre2_code_free>;
using CompileContext = Handle<pcre2_compile_context, pcre2_compile_context_free>;
using MatchContext = Handle<pcre2_match_context, pcre2_match_context_free>;
using MatchData = Handle<pcre2_match_data, pcre2_match_data_free>;
using JitStack = Handle<pcre2_jit_stack, pcre2_jit_stack_free>;

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 160> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

std::string shown_pattern(std::string_view pattern) {
  const std::string text = escape_for_display(pattern.substr(0, kShownBytes));
  return pattern.size() > kShownBytes ? text + "…" : text;
}

MatchContext make_match_context() {
  MatchContext context(pcre2_match_context_create(nullptr));
  if (context) {
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_depth_limit(context.get(), kDepthLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKibibytes);
  }
  return context;
}

}  // namespace

struct Pattern::Compiled {
  Code code;
  Code code_with_added;  // slower; for texts that have such characters
  MatchContext context;
  bool has_jit = false;  // else the interpreter runs the pattern

  int match(const pcre2_code* with, std::string_view text, std::size_t start,
            pcre2_match_data* data) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    // The text was checked once; PCRE2 would check it again for every match.
    const std::uint32_t options = PCRE2_NO_UTF_CHECK;
    const int result =
        has_jit ? pcre2_jit_match(with, subject, text.size(), start, options, data, context.get())
                : pcre2_match(with, subject, text.size(), start, options, data, context.get());
    if (result != PCRE2_ERROR_JIT_STACKLIMIT) return result;
    const MatchContext larger = make_match_context();
    const JitStack stack(pcre2_jit_stack_create(32768, kJitStackBytes, nullptr));
    if (!larger || !stack) return PCRE2_ERROR_NOMEMORY;
    pcre2_jit_stack_assign(larger.get(), nullptr, stack.get());
    return pcre2_match(with, subject, text.size(), start, options, data, larger.get());
  }
};

Pattern Pattern::plain(std::string text) {
  Pattern pattern;
  pattern.m_source = std::move(text);
  return pattern;
}

namespace {

// There is none for some CPUs, and where memory cannot be made executable.
bool has_jit_code(const pcre2_code* code) {
  std::size_t bytes = 0;
  return pcre2_pattern_info(code, PCRE2_INFO_JITSIZE, &bytes) == 0 && bytes > 0;
}

Result<Code> compile(std::string_view expression, std::string_view name, UnicodeTables tables) {
  const auto translated = translate_expression(expression, name, tables);
  if (!translated) return tl::unexpected(translated.error());
  const CompileContext limits(pcre2_compile_context_create(nullptr));
  if (limits) {
    pcre2_set_max_pattern_length(limits.get(), kMaxPatternBytes);
    pcre2_set_newline(limits.get(), PCRE2_NEWLINE_LF);
  }
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Ruby syntax: ^ and $ match at line breaks.
  constexpr std::uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
                          kOptions, &error, &offset, limits.get()));
  if (!code) {
    return fail(ErrorKind::malformed,
                fmt::format("{}: pattern \"{}\" cannot be compiled: {}; fix the tokenizer", name,
                            shown_pattern(expression), pcre2_message(error)));
  }
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

}  // namespace

Result<Pattern> Pattern::regex(std::string_view expression, std::string_view name) {
  auto code = compile(expression, name, UnicodeTables::own);
  if (!code) return tl::unexpected(std::move(code.error()));
  auto with_added = compile(expression, name, UnicodeTables::with_added);
  if (!with_added) return tl::unexpected(std::move(with_added.error()));
  auto compiled = std::make_shared<Compiled>();
  compiled->has_jit = has_jit_code(code->get()) && has_jit_code(with_added->get());
  compiled->code = std::move(*code);
  compiled->code_with_added = std::move(*with_added);
  compiled->context = make_match_context();
  if (!compiled->context) {
    return fail(ErrorKind::engine, "out of memory while compiling a pattern; free memory");
  }
  Pattern pattern;
  pattern.m_compiled = std::move(compiled);
  pattern.m_source = std::string(expression);
  pattern.m_name = std::string(name);
  return pattern;
}

Result<std::vector<PatternMatch>> Pattern::find_all(std::string_view text) const {
  std::vector<PatternMatch> matches;
  if (m_compiled == nullptr) {
    for (std::size_t at = text.find(m_source); at != std::string_view::npos;
         at = text.find(m_source, at + m_source.size())) {
      matches.push_back({at, at + m_source.size()});
    }
    return matches;
  }
  const MatchData data(pcre2_match_data_create(1, nullptr));
  if (!data) return fail(ErrorKind::engine, "out of memory while splitting text; free memory");
  const pcre2_code* code =
      has_added_characters(text) ? m_compiled->code_with_added.get() : m_compiled->code.get();
  std::size_t start = 0;
  while (start <= text.size()) {
    const int result = m_compiled->match(code, text, start, data.get());
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      return fail(ErrorKind::malformed,
                  fmt::format("{}: pattern \"{}\" takes too many steps from byte {} of a piece of "
                              "{} bytes; shorten the text or fix the tokenizer",
                              m_name, shown_pattern(m_source), start, text.size()),
                  pcre2_message(result));
    }
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
    // \K inside a lookaround can give an end before its beginning.
    const std::size_t begin = std::min(range[0], range[1]);
    const std::size_t end = std::max(range[0], range[1]);
    const bool empty = begin == end;
    // An empty match right after another match does not count.
    if (!empty || matches.empty() || matches.back().end != end) matches.push_back({begin, end});
    start = end;
    if (empty) start += end < text.size() ? decode_utf8(text, end).length : 1;
  }
  return matches;
}

}  // namespace driftscope
