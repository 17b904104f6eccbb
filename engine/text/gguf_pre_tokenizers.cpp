// SPDX-License-Identifier: Apache-2.0
#include "engine/text/gguf_pre_tokenizers.h"

#include <algorithm>
#include <array>

namespace driftscope {
namespace {

template <std::size_t Count>
using Patterns = std::array<std::string_view, Count>;

constexpr std::string_view kGpt2Words =
    R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)re";

constexpr Patterns<4> kDefault{R"re([\p{P}\$\+<=>\^~\|]+)re", kGpt2Words, R"re(\p{N}+)re",
                               R"re([0-9][0-9][0-9])re"};
constexpr Patterns<1> kGpt2{kGpt2Words};
constexpr Patterns<2> kDigitsThenGpt2{R"re(\p{N})re", kGpt2Words};
constexpr Patterns<3> kFalcon{R"re([\p{P}\$\+<=>\^~\|`]+)re", kGpt2Words, R"re([0-9][0-9][0-9])re"};

// GPT-4 (cl100k_base): digits in threes.
constexpr Patterns<1> kLlama3{
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
// Digits one by one.
constexpr Patterns<1> kQwen2{
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr Patterns<1> kQwen35{
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
// GPT-4o (o200k_base): words cut where lower case turns into upper case.
constexpr Patterns<1> kGpt4o{
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr Patterns<1> kTekken{
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};

constexpr Patterns<3> kDeepSeekV3{
    R"re(\p{N}{1,3})re", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};
constexpr Patterns<6> kDeepSeekLlm{
    R"re([\r\n])re",
    "\\s?[A-Za-z"
    "\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-"
    "\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}"
    "\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}"
    "\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-"
    "\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-"
    "\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-"
    "\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}"
    "\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}"
    "\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-"
    "\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}"
    "\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}"
    "\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-"
    "\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-"
    "\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-"
    "\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-"
    "\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}"
    "\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-"
    "\\x{1E943}"
    "]+",
    "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
    R"re(\s+$)re",
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
    R"re(\p{N}+)re"};
constexpr Patterns<5> kDeepSeekCoder{R"re([\r\n])re", R"re(\s?\p{L}+)re", R"re(\s?\p{P}+)re",
                                     "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", R"re(\p{N})re"};

constexpr std::string_view kBloomWords =
    " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+";
constexpr Patterns<1> kBloom{kBloomWords};
constexpr Patterns<2> kViking{kBloomWords, R"re(\p{N})re"};

constexpr std::array kPreTokenizers{
    GgufPreTokenizer{.name = "a.x-4.0", .patterns = kGpt2},
    GgufPreTokenizer{.name = "bloom", .patterns = kBloom},
    GgufPreTokenizer{.name = "chatglm-bpe", .patterns = kLlama3},
    GgufPreTokenizer{.name = "codeshell", .patterns = kDigitsThenGpt2},
    GgufPreTokenizer{.name = "command-r", .patterns = kDigitsThenGpt2},
    GgufPreTokenizer{.name = "dbrx", .patterns = kLlama3},
    GgufPreTokenizer{.name = "deepseek-coder", .patterns = kDeepSeekCoder},
    GgufPreTokenizer{.name = "deepseek-llm", .patterns = kDeepSeekLlm},
    GgufPreTokenizer{.name = "deepseek-r1-qwen", .patterns = kQwen2},
    GgufPreTokenizer{.name = "deepseek-v3", .patterns = kDeepSeekV3},
    GgufPreTokenizer{.name = "default", .patterns = kDefault},
    GgufPreTokenizer{.name = "exaone", .patterns = kDigitsThenGpt2},
    GgufPreTokenizer{.name = "exaone4", .patterns = kGpt2},
    GgufPreTokenizer{.name = "f2llmv2", .patterns = kQwen2},
    GgufPreTokenizer{.name = "falcon", .patterns = kFalcon},
    GgufPreTokenizer{
        .name = "falcon-h1", .patterns = kLlama3, .ignore_merges = true, .adds_bos = true},
    GgufPreTokenizer{
        .name = "falcon3", .patterns = kLlama3, .ignore_merges = true, .adds_bos = true},
    GgufPreTokenizer{.name = "gigachat", .patterns = kGpt2},
    GgufPreTokenizer{.name = "glm4", .patterns = kLlama3},
    GgufPreTokenizer{.name = "gpt-2", .patterns = kGpt2},
    GgufPreTokenizer{.name = "gpt-4o", .patterns = kGpt4o},
    GgufPreTokenizer{.name = "gpt3-finnish", .patterns = kBloom},
    GgufPreTokenizer{.name = "granite-docling", .patterns = kGpt2},
    GgufPreTokenizer{.name = "grok-2", .patterns = kQwen2},
    GgufPreTokenizer{.name = "hunyuan", .patterns = kQwen2},
    GgufPreTokenizer{.name = "hunyuan-dense", .patterns = kDeepSeekV3},
    GgufPreTokenizer{.name = "hy_v4", .patterns = kDeepSeekV3},
    GgufPreTokenizer{.name = "jais", .patterns = kGpt2},
    GgufPreTokenizer{.name = "joyai-llm", .patterns = kDeepSeekV3},
    GgufPreTokenizer{.name = "kanana2", .patterns = kGpt4o},
    GgufPreTokenizer{.name = "kormo", .patterns = kQwen2},
    GgufPreTokenizer{.name = "lfm2", .patterns = kLlama3, .ignore_merges = true, .adds_bos = true},
    GgufPreTokenizer{
        .name = "llama-bpe", .patterns = kLlama3, .ignore_merges = true, .adds_bos = true},
    GgufPreTokenizer{
        .name = "llama-v3", .patterns = kLlama3, .ignore_merges = true, .adds_bos = true},
    GgufPreTokenizer{
        .name = "llama3", .patterns = kLlama3, .ignore_merges = true, .adds_bos = true},
    GgufPreTokenizer{.name = "llama4", .patterns = kGpt4o},
    GgufPreTokenizer{.name = "megrez", .patterns = kQwen2},
    GgufPreTokenizer{.name = "mellum", .patterns = kGpt2},
    GgufPreTokenizer{.name = "mellum2", .patterns = kDigitsThenGpt2},
    GgufPreTokenizer{
        .name = "midm-2.0", .patterns = kLlama3, .ignore_merges = true, .adds_bos = true},
    GgufPreTokenizer{.name = "minerva-7b", .patterns = kDigitsThenGpt2},
    GgufPreTokenizer{.name = "minimax-m2", .patterns = kGpt4o},
    GgufPreTokenizer{.name = "modern-bert", .patterns = kGpt2},
    GgufPreTokenizer{.name = "mpt", .patterns = kGpt2},
    GgufPreTokenizer{.name = "olmo", .patterns = kGpt2},
    GgufPreTokenizer{.name = "phi-2", .patterns = kGpt2},
    GgufPreTokenizer{
        .name = "pixtral", .patterns = kLlama3, .ignore_merges = true, .adds_bos = true},
    GgufPreTokenizer{.name = "poro-chat", .patterns = kBloom},
    GgufPreTokenizer{.name = "qwen2", .patterns = kQwen2},
    GgufPreTokenizer{.name = "qwen35", .patterns = kQwen35},
    GgufPreTokenizer{.name = "refact", .patterns = kDigitsThenGpt2},
    GgufPreTokenizer{.name = "smaug-bpe", .patterns = kLlama3},
    GgufPreTokenizer{.name = "smollm", .patterns = kDigitsThenGpt2},
    GgufPreTokenizer{.name = "solar-open", .patterns = kQwen2},
    GgufPreTokenizer{.name = "stablelm2", .patterns = kQwen2},
    GgufPreTokenizer{.name = "starcoder", .patterns = kDigitsThenGpt2},
    GgufPreTokenizer{.name = "talkie", .patterns = kGpt4o},
    GgufPreTokenizer{
        .name = "tekken", .patterns = kTekken, .ignore_merges = true, .adds_bos = true},
    GgufPreTokenizer{.name = "trillion", .patterns = kGpt2},
    GgufPreTokenizer{.name = "viking", .patterns = kViking},
};

}  // namespace

std::span<const GgufPreTokenizer> gguf_pre_tokenizers() { return kPreTokenizers; }

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  const auto found = std::ranges::find(kPreTokenizers, name, &GgufPreTokenizer::name);
  return found == kPreTokenizers.end() ? nullptr : &*found;
}

}  // namespace driftscope
