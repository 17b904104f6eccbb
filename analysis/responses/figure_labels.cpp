// SPDX-License-Identifier: Apache-2.0
// Labels of rows and columns, taken apart: types, batch sizes, "vs", reruns.
#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "analysis/responses/figure_rules.h"

namespace driftscope {
namespace {

struct DtypeName {
  std::string_view word;
  std::string_view name;
  int bits;  // of the significand, as a measure of how fine it is
};
constexpr std::array kDtypes{DtypeName{"fp64", "fp64", 53},    DtypeName{"f64", "fp64", 53},
                             DtypeName{"float64", "fp64", 53}, DtypeName{"fp32", "fp32", 24},
                             DtypeName{"f32", "fp32", 24},     DtypeName{"float32", "fp32", 24},
                             DtypeName{"float", "fp32", 24},   DtypeName{"tf32", "tf32", 11},
                             DtypeName{"fp16", "fp16", 11},    DtypeName{"f16", "fp16", 11},
                             DtypeName{"float16", "fp16", 11}, DtypeName{"half", "fp16", 11},
                             DtypeName{"bf16", "bf16", 8},     DtypeName{"bfloat16", "bf16", 8},
                             DtypeName{"fp8", "fp8", 4},       DtypeName{"float8", "fp8", 4},
                             DtypeName{"e4m3", "fp8", 4},      DtypeName{"e5m2", "fp8", 3},
                             DtypeName{"mxfp8", "fp8", 4},     DtypeName{"int8", "int8", 8},
                             DtypeName{"w8a8", "int8", 8},     DtypeName{"w8a16", "int8", 8},
                             DtypeName{"q8", "int8", 8},       DtypeName{"fp4", "fp4", 2},
                             DtypeName{"nvfp4", "fp4", 2},     DtypeName{"mxfp4", "fp4", 2},
                             DtypeName{"int4", "int4", 4},     DtypeName{"w4a16", "int4", 4},
                             DtypeName{"q4", "int4", 4},       DtypeName{"awq", "int4", 4},
                             DtypeName{"gptq", "int4", 4}};

const DtypeName* find_dtype(std::string_view word) {
  const auto found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                  [&](const DtypeName& row) { return row.word == word; });
  return found == kDtypes.end() ? nullptr : found;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

// "b8", "bs8", "bsz8", "batch8"
std::optional<std::string> batch_of(std::string_view word) {
  for (const std::string_view prefix : {"batch", "bsz", "bs", "b"}) {
    if (word.starts_with(prefix) && all_digits(word.substr(prefix.size()))) {
      return std::string(word.substr(prefix.size()));
    }
  }
  return std::nullopt;
}

bool is_batch_word(std::string_view word) {
  return word == "batch" || word == "bs" || word == "bsz" || word == "b" || word == "batchsize" ||
         word == "concurrency";
}

bool is_versus(std::string_view word) { return word == "vs" || word == "vs." || word == "versus"; }
bool is_rerun(std::string_view word) {
  return word == "rerun" || word == "re-run" || word == "repeat" || word == "repeated" ||
         word == "again" || word == "self";
}

}  // namespace

int figure_dtype_bits(std::string_view dtype) {
  const DtypeName* found = find_dtype(dtype);
  return found == nullptr ? 0 : found->bits;
}

std::vector<std::string> figure_words(std::string_view label) {
  std::vector<std::string> words;
  std::string word;
  // "sglang-fp8": the type stands apart; "bloom-560m" stays whole.
  const auto end_word = [&] {
    const std::size_t at = word.rfind('-');
    const bool typed =
        at != std::string::npos && at > 0 && (find_dtype(word.substr(at + 1)) != nullptr);
    if (typed) words.push_back(word.substr(0, at));
    const std::string rest = typed ? word.substr(at + 1) : word;
    if (!rest.empty()) words.push_back(rest);
    word.clear();
  };
  for (const char c : label) {
    const auto byte = static_cast<unsigned char>(c);
    const bool part = std::isalnum(byte) != 0 || c == '.' || c == '-' || c == '+' || byte >= 0x80;
    if (part) {
      word += static_cast<char>(std::tolower(byte));
    } else {
      end_word();
    }
  }
  end_word();
  return words;
}

FigureLabel take_label_apart(std::string_view text) {
  FigureLabel label;
  FigureSide* side = &label.a;
  const std::vector<std::string> words = figure_words(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    // "bs=8", "batch size 8"
    std::size_t number = i + 1;
    if (number < words.size() && words[number] == "size") ++number;
    const bool counts = is_batch_word(word) && number < words.size() && all_digits(words[number]);
    if (is_versus(word)) {
      label.pair = true;
      side = &label.b;
    } else if (is_rerun(word)) {
      label.rerun = true;
    } else if (counts && side->batch.empty()) {
      side->batch = words[number];
      i = number;
    } else if (const DtypeName* dtype = find_dtype(word); dtype != nullptr && side->dtype.empty()) {
      side->dtype = dtype->name;
    } else if (auto batch = batch_of(word); batch && side->batch.empty()) {
      side->batch = std::move(*batch);
    } else if (side->batch.empty() && label.pair && !label.a.batch.empty() && all_digits(word)) {
      side->batch = word;  // "batch 1 vs 8"
    } else if (word != "size") {
      side->others.push_back(word);
    }
  }
  if (!label.pair) return label;
  // "bf16_b1_vs_b8": what only one side names holds for both.
  if (label.b.dtype.empty()) label.b.dtype = label.a.dtype;
  if (label.a.dtype.empty()) label.a.dtype = label.b.dtype;
  if (label.b.batch.empty()) label.b.batch = label.a.batch;
  if (label.a.batch.empty()) label.a.batch = label.b.batch;
  return label;
}

}  // namespace driftscope
