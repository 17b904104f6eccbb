// SPDX-License-Identifier: Apache-2.0
// What stands in the logprob fields of a response, seen from all of them together.
#include <algorithm>
#include <cmath>

#include "analysis/responses/response_lint.h"
#include "analysis/responses/response_lint_parts.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
// A softmax in f32 may end this much above 0; more is no logarithm of a probability.
constexpr double kAboveZero = 1e-5;
// Beside negative values this much above 0 is a crumb of rounding, too.
constexpr double kCrumb = 1e-3;
constexpr int kMostDecimals = 12;  // more are digits of a float, not a rounding

bool holds_replacement(std::string_view text) {
  return text.find(kReplacement) != std::string_view::npos;
}

// A piece of a character stands in the list as the bytes that it is: U+FFFD is no stand-in there.
bool shows_pieces(const ResponseChannel& channel) {
  return std::any_of(channel.steps.begin(), channel.steps.end(), [](const ResponseStep& step) {
    return find_invalid_utf8(step.token.bytes) < step.token.bytes.size();
  });
}

// U+FFFD, which stands for any bytes that are no character (a text that ends inside a character has
// it, too), unless the list shows such bytes; or nothing at all inside a text that is not made of
// the rest.
void mark_lossy(ResponseChannel& channel) {
  const bool text_has_it = !channel.has_text || holds_replacement(channel.text);
  const bool real = text_has_it && shows_pieces(channel);
  std::string joined;
  for (const ResponseStep& step : channel.steps) {
    if (!step.special) joined += step.token.bytes;
  }
  const bool broken =
      channel.has_text && joined != channel.text && !joined.starts_with(channel.text);
  for (ResponseStep& step : channel.steps) {
    const bool replaced = !real && holds_replacement(step.token.bytes);
    const bool emptied = broken && step.token.bytes.empty() && step.token.text.empty() &&
                         !step.special && !step.text_of_group && !step.token.id;
    step.token.lossy = replaced || emptied;
    for (TokenAlternative& other : step.alternatives) {
      other.token.lossy = !real && holds_replacement(other.token.bytes);
    }
  }
}

struct Values {
  std::int64_t numbers = 0;
  std::int64_t above_zero = 0;
  std::int64_t above_crumb = 0;
  std::int64_t below_zero = 0;  // also of alternatives; no probability is
  std::int64_t above_one = 0;
  std::int64_t zeros = 0;
  std::int64_t with_alternatives = 0;  // steps with two that have a value
};

std::int64_t usable_alternatives(const ResponseStep& step) {
  return std::count_if(step.alternatives.begin(), step.alternatives.end(),
                       [](const TokenAlternative& other) { return other.logprob.usable(); });
}

bool below_zero(const Logprob& value) {
  return value.usable() && value.value < -std::max(kAboveZero, print_tolerance(value));
}

Values count_values(const Response& response) {
  Values values;
  each_step(response, [&](const ResponseStep& step) {
    if (usable_alternatives(step) + step.alternatives_left_out > 1) ++values.with_alternatives;
    for (const TokenAlternative& other : step.alternatives) {
      if (other.logprob.usable() && other.logprob.value > 1.0) ++values.above_one;
      if (below_zero(other.logprob)) ++values.below_zero;
    }
    if (!step.logprob.usable()) return;
    ++values.numbers;
    if (below_zero(step.logprob)) ++values.below_zero;
    if (step.logprob.value > kCrumb) ++values.above_crumb;
    if (step.logprob.value > kAboveZero) ++values.above_zero;
    if (step.logprob.value > 1.0) ++values.above_one;
    if (step.logprob.value == 0.0) ++values.zeros;
  });
  return values;
}

template <class Visit>
void each_number(std::vector<ResponseStep>& steps, const Visit& visit) {
  const auto number = [&](Logprob& value) {
    if (value.usable()) visit(value);
  };
  for (ResponseStep& step : steps) {
    number(step.logprob);
    if (step.sampling_logprob) number(*step.sampling_logprob);
    for (TokenAlternative& other : step.alternatives) number(other.logprob);
  }
}

template <class Visit>
void each_number(Response& response, const Visit& visit) {
  for (ResponseChoice& choice : response.choices) {
    for (ResponseChannel* channel : {&choice.content, &choice.reasoning, &choice.refusal}) {
      each_number(channel->steps, visit);
    }
  }
  each_number(response.prompt_steps, visit);
}

// "-0.5" among values of four decimals is printed to four, too: zeros at the end are dropped. A
// response's values are as precise as its longest one, and exact where all of them are multiples
// of a power of two that short.
void agree_on_decimals(Response& response) {
  int most = -1;
  each_number(response, [&](const Logprob& value) { most = std::max(most, value.decimals); });
  if (most < 0) return;  // exponents throughout, or not printed at all
  bool exact = most > kMostDecimals;
  if (!exact) {
    const double scale = std::ldexp(1.0, most);
    exact = true;
    each_number(response, [&](const Logprob& value) {
      exact = exact && value.value * scale == std::round(value.value * scale);
    });
  }
  each_number(response, [&](Logprob& value) { value.decimals = exact ? -1 : most; });
}

// Accepted drafts: 0 without alternatives among steps that have some.
void mark_placeholders(Response& response) {
  for (ResponseChoice& choice : response.choices) {
    for (ResponseStep& step : choice.content.steps) {
      if (step.alternatives.size() + step.alternatives_left_out > 1 || !step.logprob.usable() ||
          step.logprob.value != 0.0) {
        continue;
      }
      step.logprob = {.state = LogprobState::placeholder};
    }
  }
}

}  // namespace

void grade_response(Response& response) {
  for (ResponseChoice& choice : response.choices) {
    mark_lossy(choice.content);
    mark_lossy(choice.reasoning);
    mark_lossy(choice.refusal);
  }
  agree_on_decimals(response);
  const Values values = count_values(response);
  if (values.above_one > 0) {
    response.scale = LogprobScale::logit;
  } else if (values.above_zero > 0 && values.below_zero == 0) {
    response.scale = LogprobScale::probability;
  } else if (values.above_crumb > 0) {
    response.scale = LogprobScale::logit;  // of both signs
  }
  response.fake_certainty = values.numbers > 0 && values.zeros == values.numbers &&
                            values.with_alternatives == 0 &&
                            (response.speculative || values.numbers > 1);
  if (response.speculative && !response.fake_certainty) mark_placeholders(response);
}

}  // namespace driftscope
