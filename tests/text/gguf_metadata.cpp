// SPDX-License-Identifier: Apache-2.0
#include "tests/text/gguf_metadata.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace driftscope {
namespace {

enum ValueType : std::uint32_t { kInt32 = 5, kFloat32 = 6, kBool = 7, kString = 8, kArray = 9 };

class Reader {
 public:
  explicit Reader(std::string bytes) : m_bytes(std::move(bytes)) {}

  template <class Value>
  Value take() {
    Value value;
    std::memcpy(&value, m_bytes.data() + move(sizeof(Value)), sizeof(Value));
    return value;
  }
  std::string text() {
    const auto length = take<std::uint64_t>();
    return m_bytes.substr(move(length), length);
  }
  // A value that is not asked for.
  void skip(std::uint32_t type) {
    constexpr std::size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == kString) {
      text();
    } else if (type == kArray) {
      const auto element = take<std::uint32_t>();
      const auto count = take<std::uint64_t>();
      for (std::uint64_t i = 0; i < count; ++i) skip(element);
    } else {
      move(kBytes[type]);
    }
  }

 private:
  std::size_t move(std::size_t bytes) {
    if (bytes > m_bytes.size() - m_at) throw std::out_of_range("GGUF file ends early");
    m_at += bytes;
    return m_at - bytes;
  }
  std::string m_bytes;
  std::size_t m_at = 0;
};

template <class Value>
std::vector<Value> list(Reader& reader) {
  reader.take<std::uint32_t>();
  std::vector<Value> values;
  const auto count = reader.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Value, std::string>) {
      values.push_back(reader.text());
    } else {
      values.push_back(reader.take<Value>());
    }
  }
  return values;
}

void take_key(const std::string& key, std::uint32_t type, Reader& reader, GgufVocabulary& target) {
  if (key == "general.name") {
    target.general_name = reader.text();
  } else if (key == "tokenizer.ggml.model") {
    target.model = reader.text();
  } else if (key == "tokenizer.ggml.pre") {
    target.pre = reader.text();
  } else if (key == "tokenizer.ggml.tokens") {
    target.tokens = list<std::string>(reader);
  } else if (key == "tokenizer.ggml.scores") {
    target.scores = list<float>(reader);
  } else if (key == "tokenizer.ggml.token_type") {
    target.token_types = list<std::int32_t>(reader);
  } else if (key == "tokenizer.ggml.merges") {
    target.merges = list<std::string>(reader);
  } else if (key == "tokenizer.ggml.bos_token_id") {
    target.bos_id = reader.take<std::uint32_t>();
  } else if (key == "tokenizer.ggml.eos_token_id") {
    target.eos_id = reader.take<std::uint32_t>();
  } else if (key == "tokenizer.ggml.unknown_token_id") {
    target.unknown_id = reader.take<std::uint32_t>();
  } else if (key == "tokenizer.ggml.add_bos_token") {
    target.add_bos = reader.take<std::uint8_t>() != 0;
  } else if (key == "tokenizer.ggml.add_eos_token") {
    target.add_eos = reader.take<std::uint8_t>() != 0;
  } else if (key == "tokenizer.ggml.add_space_prefix") {
    target.add_space_prefix = reader.take<std::uint8_t>() != 0;
  } else {
    reader.skip(type);
  }
}

}  // namespace

GgufVocabulary read_gguf_vocabulary(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  Reader reader(std::string(std::istreambuf_iterator<char>(stream), {}));
  reader.take<std::uint32_t>();  // "GGUF"
  reader.take<std::uint32_t>();  // version
  reader.take<std::uint64_t>();  // tensors
  const auto keys = reader.take<std::uint64_t>();
  GgufVocabulary vocabulary;
  vocabulary.name = path.filename().string();
  for (std::uint64_t i = 0; i < keys; ++i) {
    const std::string key = reader.text();
    const auto type = reader.take<std::uint32_t>();
    take_key(key, type, reader, vocabulary);
  }
  return vocabulary;
}

}  // namespace driftscope
