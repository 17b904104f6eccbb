// SPDX-License-Identifier: Apache-2.0
#include "engine/text/sentencepiece_file.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/text/protobuf_reader.h"
#include "kernels/base/utf8.h"

namespace driftscope {
namespace {

using Field = ProtobufReader::Field;
using Wire = ProtobufReader::Wire;

constexpr std::size_t kMaxPieces = 16'777'216;

class FileReader {
 public:
  FileReader(const std::string& name, SentencePieceFile& file) : m_name(name), m_file(file) {}

  Result<void> read(std::string_view bytes) {
    ProtobufReader message(bytes);
    while (const auto field = message.next()) {
      Result<void> done;
      if (field->wire != Wire::bytes) continue;
      if (field->number == 1) done = read_piece(field->bytes);
      if (field->number == 2) done = read_trainer(field->bytes);
      if (field->number == 3) done = read_normalizer(field->bytes);
      if (!done) return done;
    }
    if (message.damaged()) return damaged("the file");
    if (m_file.pieces.empty()) return refuse("has no pieces; give a SentencePiece model");
    if (m_model == 1 || m_model == 2) {
      m_file.model = static_cast<SentencePieceFile::Model>(m_model);
      check_ids();
      return {};
    }
    constexpr std::string_view kNames[] = {"word", "character"};
    return refuse(fmt::format("model type {} is not supported; supported are unigram and BPE",
                              m_model == 3 || m_model == 4 ? std::string(kNames[m_model - 3])
                                                           : fmt::format("{}", m_model)));
  }

 private:
  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view what) const {
    return fail(ErrorKind::malformed, fmt::format("{}: {}", m_name, what));
  }
  [[nodiscard]] tl::unexpected<Error> damaged(std::string_view what) const {
    return refuse(fmt::format("{} is damaged or no SentencePiece model; download it again", what));
  }

  Result<void> read_piece(std::string_view bytes) {
    const std::size_t id = m_file.pieces.size();
    if (id >= kMaxPieces) return refuse(fmt::format("has more than {} pieces", kMaxPieces));
    std::string_view text;
    float score = 0;
    std::uint64_t type = 1;
    ProtobufReader message(bytes);
    while (const auto field = message.next()) {
      if (field->number == 1 && field->wire == Wire::bytes) text = field->bytes;
      if (field->number == 2 && field->wire == Wire::fixed32) score = field->real();
      if (field->number == 3 && field->wire == Wire::varint) type = field->value;
    }
    if (message.damaged()) return damaged(fmt::format("piece {}", id));
    if (text.empty()) return refuse(fmt::format("piece {} is empty; download it again", id));
    if (find_invalid_utf8(text) != std::string_view::npos) {
      return refuse(fmt::format("piece {} is not UTF-8; download it again", id));
    }
    if (!std::isfinite(score)) {
      return refuse(fmt::format("piece {} has a score that is not finite; download it again", id));
    }
    if (type < 1 || type > 6) {
      return refuse(fmt::format("piece {} is of the unknown type {}", id, type));
    }
    constexpr PieceType kTypes[] = {PieceType::normal,       PieceType::unknown, PieceType::control,
                                    PieceType::user_defined, PieceType::unused,  PieceType::byte};
    m_file.pieces.emplace_back(text);
    m_file.scores.push_back(score);
    m_file.types.push_back(kTypes[type - 1]);
    return {};
  }

  Result<void> read_trainer(std::string_view bytes) {
    ProtobufReader message(bytes);
    while (const auto field = message.next()) {
      if (field->wire != Wire::varint) continue;
      // A negative number is a 64-bit varint: no such token.
      const bool is_id = field->value <= 0x7FFFFFFEU;
      const auto id = is_id ? std::optional(static_cast<std::int32_t>(field->value)) : std::nullopt;
      if (field->number == 3) m_model = field->value;
      if (field->number == 24 && field->value != 0) {
        return refuse("white space as suffix is not supported");
      }
      if (field->number == 40) m_file.unknown = id;
      if (field->number == 41) m_file.bos = id;
      if (field->number == 42) m_file.eos = id;
    }
    if (message.damaged()) return damaged("the trainer's part");
    return {};
  }

  Result<void> read_normalizer(std::string_view bytes) {
    ProtobufReader message(bytes);
    while (const auto field = message.next()) {
      if (field->number == 2 && field->wire == Wire::bytes) m_file.charsmap = field->bytes;
      if (field->wire != Wire::varint) continue;
      if (field->number == 3) m_file.add_dummy_prefix = field->value != 0;
      if (field->number == 4) m_file.remove_extra_whitespaces = field->value != 0;
      if (field->number == 5 && field->value == 0) {
        return refuse("a model that does not escape white space is not supported");
      }
    }
    if (message.damaged()) return damaged("the normalizer's part");
    return {};
  }

  // The defaults may name ids of another piece, or of none.
  void check_ids() {
    const auto check = [&](std::optional<std::int32_t>& id, PieceType type) {
      const bool good = id && static_cast<std::size_t>(*id) < m_file.types.size() &&
                        m_file.types[static_cast<std::size_t>(*id)] == type;
      if (!good) id.reset();
    };
    check(m_file.unknown, PieceType::unknown);
    check(m_file.bos, PieceType::control);
    check(m_file.eos, PieceType::control);
  }

  const std::string& m_name;
  SentencePieceFile& m_file;
  std::uint64_t m_model = 1;
};

}  // namespace

Result<SentencePieceFile> read_sentencepiece_file(std::string_view bytes, const std::string& name) {
  SentencePieceFile file;
  // The format's defaults.
  file.unknown = 0;
  file.bos = 1;
  file.eos = 2;
  if (auto done = FileReader(name, file).read(bytes); !done) {
    return tl::unexpected(std::move(done.error()));
  }
  return file;
}

}  // namespace driftscope
