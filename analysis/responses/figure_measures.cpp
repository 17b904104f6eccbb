// SPDX-License-Identifier: Apache-2.0
#include "analysis/responses/figure_measures.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <vector>

namespace driftscope {
namespace {

enum class Role : std::uint8_t {
  none,
  difference,
  extent,   // "max": of differences where nothing else is said
  average,  // "mean": of anything
  agreement,
  correlation,  // an agreement between -1 and 1
  unrelated,    // whatever else is said
  place,        // where, not how much; in the name of a row no more than that
  other,        // unrelated where no difference or agreement is named
  share         // a unit: "pct", "rate"
};

struct Stem {
  std::string_view text;
  Role role;
  bool squared = false;
};

// Anywhere in a word. Looked at in this order: "mismatch" before "match".
constexpr std::array kParts{Stem{"diffus", Role::none},
                            Stem{"diff", Role::difference},
                            Stem{"error", Role::difference},
                            Stem{"deviat", Role::difference},
                            Stem{"diverg", Role::difference},
                            Stem{"mismatch", Role::difference},
                            Stem{"disagree", Role::difference},
                            Stem{"distance", Role::difference},
                            Stem{"drift", Role::difference},
                            Stem{"flip", Role::difference},
                            Stem{"discrepan", Role::difference},
                            Stem{"dissimilar", Role::difference, true},
                            Stem{"residual", Role::difference},
                            Stem{"match", Role::agreement},
                            Stem{"agree", Role::agreement},
                            Stem{"overlap", Role::agreement},
                            Stem{"parity", Role::agreement},
                            Stem{"identical", Role::agreement},
                            Stem{"cosine", Role::correlation, true},
                            Stem{"similar", Role::correlation, true},
                            Stem{"correl", Role::correlation, true},
                            Stem{"latenc", Role::unrelated},
                            Stem{"throughput", Role::unrelated},
                            Stem{"accura", Role::unrelated},
                            Stem{"toleran", Role::unrelated},
                            Stem{"threshold", Role::unrelated},
                            Stem{"duration", Role::unrelated},
                            Stem{"bandwidth", Role::unrelated},
                            Stem{"elapsed", Role::unrelated},
                            Stem{"speed", Role::unrelated},
                            Stem{"memory", Role::unrelated},
                            Stem{"perplex", Role::other},
                            Stem{"score", Role::other},
                            Stem{"logprob", Role::other},
                            Stem{"logit", Role::other},
                            Stem{"gsm8k", Role::unrelated},
                            Stem{"mmlu", Role::unrelated},
                            Stem{"humaneval", Role::unrelated},
                            Stem{"hellaswag", Role::unrelated},
                            Stem{"bleu", Role::unrelated},
                            Stem{"rouge", Role::unrelated}};

// A whole word.
constexpr std::array kWholes{Stem{"err", Role::difference},
                             Stem{"errs", Role::difference},
                             Stem{"delta", Role::difference},
                             Stem{"deltas", Role::difference},
                             Stem{"abs", Role::difference},
                             Stem{"absolute", Role::difference},
                             Stem{"kl", Role::difference, true},
                             Stem{"kld", Role::difference, true},
                             Stem{"js", Role::difference, true},
                             Stem{"jsd", Role::difference, true},
                             Stem{"mse", Role::difference, true},
                             Stem{"mae", Role::difference},
                             Stem{"rmse", Role::difference},
                             Stem{"nrmse", Role::difference},
                             Stem{"l1", Role::difference},
                             Stem{"l2", Role::difference},
                             Stem{"linf", Role::difference},
                             Stem{"ulp", Role::difference},
                             Stem{"ulps", Role::difference},
                             Stem{"max", Role::extent},
                             Stem{"maximum", Role::extent},
                             Stem{"mean", Role::average},
                             Stem{"avg", Role::average},
                             Stem{"average", Role::average},
                             Stem{"median", Role::average},
                             Stem{"worst", Role::extent},
                             Stem{"largest", Role::extent},
                             Stem{"p99", Role::average},
                             Stem{"exact", Role::agreement},
                             Stem{"equal", Role::agreement},
                             Stem{"same", Role::agreement},
                             Stem{"equality", Role::agreement},
                             Stem{"jaccard", Role::agreement},
                             Stem{"iou", Role::agreement},
                             Stem{"cos", Role::correlation, true},
                             Stem{"cossim", Role::correlation, true},
                             Stem{"sim", Role::correlation, true},
                             Stem{"pearson", Role::correlation, true},
                             Stem{"spearman", Role::correlation, true},
                             Stem{"corr", Role::correlation, true},
                             Stem{"ms", Role::unrelated},
                             Stem{"us", Role::unrelated},
                             Stem{"sec", Role::unrelated},
                             Stem{"secs", Role::unrelated},
                             Stem{"seconds", Role::unrelated},
                             Stem{"tps", Role::unrelated},
                             Stem{"qps", Role::unrelated},
                             Stem{"rps", Role::unrelated},
                             Stem{"ttft", Role::unrelated},
                             Stem{"tpot", Role::unrelated},
                             Stem{"itl", Role::unrelated},
                             Stem{"gb", Role::unrelated},
                             Stem{"gib", Role::unrelated},
                             Stem{"mb", Role::unrelated},
                             Stem{"mib", Role::unrelated},
                             Stem{"vram", Role::unrelated},
                             Stem{"flops", Role::unrelated},
                             Stem{"tflops", Role::unrelated},
                             Stem{"watts", Role::unrelated},
                             Stem{"acc", Role::unrelated},
                             Stem{"f1", Role::unrelated},
                             Stem{"wer", Role::unrelated},
                             Stem{"time", Role::place},
                             Stem{"std", Role::unrelated},
                             Stem{"stdev", Role::unrelated},
                             Stem{"stddev", Role::unrelated},
                             Stem{"stderr", Role::unrelated},
                             Stem{"ci", Role::unrelated},
                             Stem{"pvalue", Role::unrelated},
                             Stem{"atol", Role::unrelated},
                             Stem{"rtol", Role::unrelated},
                             Stem{"step", Role::place},
                             Stem{"index", Role::place},
                             Stem{"position", Role::place},
                             Stem{"pos", Role::place},
                             Stem{"until", Role::place},
                             Stem{"prefix", Role::place},
                             Stem{"ppl", Role::other},
                             Stem{"loss", Role::other},
                             Stem{"count", Role::other},
                             Stem{"n", Role::place},
                             Stem{"num", Role::other},
                             Stem{"samples", Role::other},
                             Stem{"length", Role::other},
                             Stem{"len", Role::other},
                             Stem{"cost", Role::other},
                             Stem{"reward", Role::other},
                             Stem{"entropy", Role::other},
                             Stem{"nll", Role::other},
                             Stem{"power", Role::other},
                             Stem{"pct", Role::share},
                             Stem{"percent", Role::share},
                             Stem{"percentage", Role::share},
                             Stem{"rate", Role::share},
                             Stem{"ratio", Role::share},
                             Stem{"fraction", Role::share},
                             Stem{"share", Role::share}};

// Words of letters and digits in lower case; "maxDiff" is two, "%" reads "pct", "/s" reads "per s",
// "1 - x" reads "minus".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const bool letter = std::isalnum(byte) != 0 || byte >= 0x80;
    const bool hump = i > 0 && std::isupper(byte) != 0 &&
                      std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (!letter || hump) end_word();
    if (letter) word += static_cast<char>(std::tolower(byte));
    if (name[i] == '%') words.emplace_back("pct");
    if (name[i] == '/') words.emplace_back("per");
    if (name[i] == '-' && !words.empty() && (words.back() == "1" || words.back() == "100")) {
      words.emplace_back("minus");
    }
  }
  end_word();
  return words;
}

const Stem* find_stem(std::string_view word) {
  for (const Stem& stem : kParts) {
    if (word.find(stem.text) == std::string_view::npos) continue;
    return stem.role == Role::none ? nullptr : &stem;
  }
  const auto found = std::find_if(kWholes.begin(), kWholes.end(),
                                  [&](const Stem& stem) { return stem.text == word; });
  return found == kWholes.end() ? nullptr : &*found;
}

// The same prompt, seed or model is a condition, no measure.
bool is_condition(std::string_view next) {
  constexpr std::array kMeasured{"top",    "top1",    "token",  "tokens",  "argmax",
                                 "output", "outputs", "answer", "answers", "text",
                                 "pct",    "percent", "rate",   "ratio",   "fraction"};
  return !next.empty() && std::find(kMeasured.begin(), kMeasured.end(), next) == kMeasured.end();
}

// A word's role with those around it.
Role role_at(std::span<const std::string> words, std::size_t i, const Stem& stem) {
  const std::string_view before = i > 0 ? std::string_view(words[i - 1]) : std::string_view();
  const std::string_view next =
      i + 1 < words.size() ? std::string_view(words[i + 1]) : std::string_view();
  if (stem.role == Role::agreement || stem.role == Role::correlation) {
    // "1 - cosine", but not "top-1 match"
    const bool one_minus = before == "minus" && (i < 3 || words[i - 3] != "top");
    if (one_minus || before == "non" || before == "not" || before == "no") return Role::difference;
    if ((stem.text == "same" || stem.text == "equal") && is_condition(next)) return Role::none;
  }
  if (stem.text == "delta" && next == "net") return Role::none;
  if (stem.text == "memory" && next == "efficient") return Role::none;
  return stem.role;
}

}  // namespace

FigureMeasure measure_of(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  FigureMeasure measure;
  bool seen[static_cast<std::size_t>(Role::share) + 1] = {};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Stem* stem = find_stem(words[i]);
    Role role = stem == nullptr ? Role::none : role_at(words, i, *stem);
    if (words[i] == "s" && i > 0 && words[i - 1] == "per") role = Role::unrelated;
    if (words[i] == "count" && seen[static_cast<std::size_t>(Role::agreement)]) {
      role = Role::unrelated;  // of how many is not known
    }
    if (role == Role::none) continue;
    seen[static_cast<std::size_t>(role)] = true;
    measure.squared = measure.squared || (stem != nullptr && stem->squared);
    measure.percent = measure.percent || words[i] == "pct" || words[i].starts_with("percent");
    measure.words += (measure.words.empty() ? "" : " ") + words[i];
  }
  const auto has = [&](Role role) { return seen[static_cast<std::size_t>(role)]; };
  measure.certain = true;
  if (has(Role::unrelated) || has(Role::place)) {
    measure.kind = MeasureKind::unrelated;
    measure.place = !has(Role::unrelated) && !has(Role::difference) && !has(Role::agreement) &&
                    !has(Role::correlation);
  } else if (has(Role::difference)) {
    measure.kind = MeasureKind::difference;
  } else if (has(Role::agreement) || has(Role::correlation)) {
    measure.kind = MeasureKind::agreement;
    measure.correlation = !has(Role::agreement);
  } else if (has(Role::other)) {
    measure.kind = MeasureKind::unrelated;
  } else {
    measure.kind = has(Role::extent) ? MeasureKind::difference : MeasureKind::unnamed;
    measure.certain = false;
  }
  return measure;
}

bool is_measure_word(std::string_view word) {
  const Stem* stem = find_stem(word);
  return word == "pct" ||
         (stem != nullptr && stem->role != Role::extent && stem->role != Role::average &&
          stem->role != Role::other && stem->text != "same");
}

}  // namespace driftscope
