// SPDX-License-Identifier: Apache-2.0
// Wrong GGUF files, each opened as a checkpoint from the disk: one line that names the rule, and
// ErrorKind::malformed (exit code 4).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "engine/model/checkpoint.h"
#include "tests/model/checkpoint_builder.h"
#include "tests/model/gguf_builder.h"
#include "tests/model/temporary_directory.h"

namespace driftscope {
namespace {

using ::testing::HasSubstr;

struct Wrong {
  const char* name;
  std::function<std::string()> bytes;
  const char* reason;  // part of the message
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

// The small llama after a change.
std::function<std::string()> changed(std::function<void(GgufBuilder&)> change) {
  return [change = std::move(change)] {
    GgufBuilder file = small_llama();
    change(file);
    return file.bytes();
  };
}

std::function<std::string()> pair(std::uint32_t type, std::string value,
                                  std::string key = "extra") {
  return changed([=](GgufBuilder& file) { file.add(key, type, value); });
}

// One tensor with this description; 4096 bytes of data follow.
std::function<std::string()> described(std::vector<std::uint64_t> dimensions,
                                       std::uint32_t type = 0, std::uint64_t offset = 0,
                                       std::string name = "t") {
  return [=] {
    GgufBuilder file;
    file.infos = {gguf_info(name, dimensions, type, offset)};
    file.tail = std::string(4096, '\0');
    return file.bytes();
  };
}

std::function<std::string()> alignment(std::uint32_t value) {
  return changed([=](GgufBuilder& file) { file.add_u32("general.alignment", value); });
}

class MalformedGguf : public ::testing::TestWithParam<Wrong> {};

TEST_P(MalformedGguf, IsRefusedWithOneLine) {
  const TemporaryDirectory directory;
  const auto path = directory.write("model.gguf", GetParam().bytes());
  const auto result = ModelCheckpoint::open(path);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::malformed);
  EXPECT_EQ(exit_code(result.error().kind), 4);
  EXPECT_THAT(result.error().message, HasSubstr(GetParam().reason));
  EXPECT_THAT(result.error().message, HasSubstr("model.gguf"));
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << result.error().message;
}

constexpr std::uint64_t kHighest = ~std::uint64_t{0};

INSTANTIATE_TEST_SUITE_P(
    Start, MalformedGguf,
    testing::Values(
        Wrong{"empty", [] { return std::string(); }, "the file is empty"},
        Wrong{"three_bytes", [] { return std::string("GGU"); }, "the magic number at byte 0"},
        Wrong{"magic", changed([](GgufBuilder& f) { f.magic = "GGML"; }), "47 47 4d 4c"},
        Wrong{"version_0", changed([](GgufBuilder& f) { f.version = 0; }), "at byte 4 is 0"},
        Wrong{"version_1", changed([](GgufBuilder& f) { f.version = 1; }), "at byte 4 is 1"},
        Wrong{"version_4", changed([](GgufBuilder& f) { f.version = 4; }), "2 and 3 are read"},
        Wrong{"big_endian", changed([](GgufBuilder& f) { f.version = 0x03000000; }),
              "0x03000000: a big-endian GGUF file"},
        Wrong{"value_count", changed([](GgufBuilder& f) { f.extra_pairs = kHighest - 8; }),
              "the number of metadata keys at byte 16"},
        Wrong{"tensor_count", changed([](GgufBuilder& f) { f.extra_tensors = kHighest - 20; }),
              "the number of tensors at byte 8"},
        Wrong{"cut_in_the_header", [] { return small_llama().bytes().substr(0, 200); },
              "which the 176 bytes"},
        Wrong{"cut_in_the_data",
              [] {
                const std::string file = small_llama().bytes();
                return file.substr(0, file.size() - 100);
              },
              "cut short"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Metadata, MalformedGguf,
    testing::Values(
        Wrong{"key_length",
              changed([](GgufBuilder& f) { f.pairs[0] = u64_bytes(kHighest) + "general"; }),
              "a metadata key at byte 24 is 18446744073709551615 bytes long"},
        Wrong{"string_length", pair(8, u64_bytes(std::uint64_t{1} << 60) + "x"),
              "metadata extra at byte"},
        Wrong{"empty_key", pair(4, u32_text(1), ""), "has 0 bytes"},
        Wrong{"long_key", pair(4, u32_text(1), std::string(70000, 'k')), "has 70000 bytes"},
        Wrong{"duplicate_key", pair(4, u32_text(9), "llama.block_count"),
              "metadata llama.block_count at byte"},
        Wrong{"unknown_type", pair(13, u32_text(1)), "has type 13"},
        Wrong{"list_of_lists", pair(9, u32_text(9) + u64_bytes(1)), "a list of lists"},
        Wrong{"list_of_unknown", pair(9, u32_text(77) + u64_bytes(1)), "has type 77"},
        Wrong{"list_count", pair(9, u32_text(4) + u64_bytes(std::uint64_t{1} << 40)),
              "has 1099511627776 elements"},
        Wrong{"list_of_strings_count", pair(9, u32_text(8) + u64_bytes(std::uint64_t{1} << 62)),
              "has 4611686018427387904 elements"},
        Wrong{"boolean_2", pair(7, "\x02"), "is 2, not 0 or 1"},
        Wrong{"alignment_0", alignment(0), "general.alignment"},
        Wrong{"alignment_3", alignment(3), "it must be a power of two"},
        Wrong{"alignment_beyond_the_file", alignment(0x80000000), "is 2147483648"},
        Wrong{"alignment_of_another_type", pair(10, u64_bytes(32), "general.alignment"),
              "is u64, not a u32"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Tensors, MalformedGguf,
    testing::Values(
        Wrong{"five_dimensions", described({1, 1, 1, 1, 1}), "is 5, at most 4 are allowed"},
        Wrong{"product_wraps", described({(std::uint64_t{1} << 63) - 1, 2, 1, 1}),
              "shape [1, 1, 2, "},
        Wrong{"product_wraps_to_little",
              described({(std::uint64_t{1} << 42) + 1, (std::uint64_t{1} << 42) + 1}),
              "more than 2^64 bytes"},
        Wrong{"bytes_wrap", described({std::uint64_t{1} << 62}), "more than 2^64 bytes"},
        Wrong{"padding_wraps", described({kHighest / 4}), "needs 18446744073709551612 bytes"},
        Wrong{"dimension_0", described({4, 0}), "is 0; 1 to 2^63 - 1"},
        Wrong{"dimension_too_high", described({kHighest}), "1 to 2^63 - 1"},
        Wrong{"sizes_wrap_together",
              [] {
                constexpr std::uint64_t kSize = 0x7FFFFFFFFFFFFFC0;
                GgufBuilder file;
                file.infos = {gguf_info("a", {kSize}, 24, 0), gguf_info("b", {kSize}, 24, kSize)};
                return file.bytes();
              },
              "tensor a: shape [9223372036854775744] of I8"},
        Wrong{"offset_beyond_the_end", described({4}, 0, 1 << 20), "end beyond the file"},
        Wrong{"offset_wraps", described({4}, 0, kHighest - 31), "end beyond the file"},
        Wrong{"offset_unaligned", described({4}, 0, 4), "is not a multiple of the alignment 32"},
        Wrong{"overlap", changed([](GgufBuilder& f) { f.offset_of_second = 32; }), "they overlap"},
        Wrong{"unknown_tensor_type", described({32}, 31), "is 31, which is none of the format"},
        Wrong{"part_of_a_block", described({33}, 2),
              "rows of 33 elements are no multiple of the 32"},
        Wrong{"duplicate_tensor",
              changed([](GgufBuilder& f) { f.tensors[1].name = f.tensors[0].name; }),
              "tensor token_embd.weight at byte"},
        Wrong{"long_name", described({4}, 0, 0, std::string(64, 'n')), "has 64 bytes"},
        Wrong{"name_with_nul", described({4}, 0, 0, std::string("a\0b", 3)), "without NUL"},
        Wrong{"empty_name", described({4}, 0, 0, ""), "has 0 bytes"}),
    [](const auto& test) { return test.param.name; });

std::function<std::string()> without(std::string_view key) {
  return changed([key = std::string(key)](GgufBuilder& file) {
    std::erase_if(file.pairs, [&](const std::string& pair_text) {
      return pair_text.starts_with(gguf_text(key));
    });
  });
}

std::function<std::string()> instead(std::string_view key, std::uint32_t type, std::string value) {
  return changed([key = std::string(key), type, value = std::move(value)](GgufBuilder& file) {
    for (std::string& pair_text : file.pairs) {
      if (pair_text.starts_with(gguf_text(key)))
        pair_text = gguf_text(key) + u32_text(type) + value;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Model, MalformedGguf,
    testing::Values(
        Wrong{"no_architecture", without("general.architecture"),
              "metadata general.architecture is missing"},
        Wrong{"unknown_architecture", instead("general.architecture", 8, gguf_text("mamba")),
              "\"mamba\" is not supported; supported are llama, qwen2, "},
        Wrong{"no_layers", without("llama.block_count"), "llama.block_count is missing"},
        Wrong{"layers_of_another_type", instead("llama.block_count", 6, f32_text(2)),
              "is f32, not an integer"},
        Wrong{"negative_layers", instead("llama.block_count", 5, u32_text(0xfffffffe)), "is -2"},
        Wrong{"more_layers_than_tensors", instead("llama.block_count", 4, u32_text(0x7fffffff)),
              "llama.block_count 2147483647 cannot be"},
        Wrong{"no_heads", instead("llama.attention.head_count", 4, u32_text(0)),
              "it must be from 1 on"},
        Wrong{"epsilon_nan",
              instead("llama.attention.layer_norm_rms_epsilon", 6, u32_text(0x7fc00000)),
              "it must be above 0"},
        Wrong{"other_width", instead("llama.embedding_length", 4, u32_text(12)),
              "tensor token_embd.weight: shape [16, 8], expected [16, 12]"},
        Wrong{"missing_tensor",
              changed([](GgufBuilder& f) { f.tensors.erase(f.tensors.begin() + 4); }),
              "tensor blk.0.attn_q.weight is missing"},
        Wrong{"tensor_of_no_use", changed([](GgufBuilder& f) {
                f.tensors.push_back({"blk.0.attn_gate.weight", {8}, 0, {}});
              }),
              "tensor blk.0.attn_gate.weight is no part of a llama model"},
        Wrong{"unsupported_type", changed([](GgufBuilder& f) {
                // 256 columns, so that rows are whole blocks of 66 bytes.
                f.tensors[0] = {"token_embd.weight", {256, 1}, 16, std::string(66, '\0')};
              }),
              "tensor token_embd.weight: type IQ2_XXS is not supported; supported are F32"},
        Wrong{"bos_beyond_the_vocabulary", pair(4, u32_text(16), "tokenizer.ggml.bos_token_id"),
              "is 16; it must be a token id"},
        Wrong{"experts_of_nothing", pair(4, u32_text(4), "llama.expert_count"),
              "llama.expert_used_count is missing"},
        Wrong{"a_part_alone", pair(2, std::string("\3\0", 2), "split.count"),
              "does not end in -00001-of-00003.gguf"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace driftscope
