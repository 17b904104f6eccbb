"""Byte-level BPE: a trainer, an encoder and a decoder.

The scheme is that of GPT-2: text is cut by the GPT-2 pattern, each piece is
written in UTF-8, each byte is shown as one printable character, and the merges
are then applied in order of rank.  Two special tokens come first in the
vocabulary, then the 256 bytes, then one entry for every merge.
"""

import json
import sys
import unicodedata
from collections import Counter, defaultdict

BOS, EOS = "<|bos|>", "<|eos|>"
SPECIALS = [BOS, EOS]


def byte_alphabet():
    """byte -> printable character (the table that GPT-2 uses)."""
    printable = (list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100)))
    table, extra = {}, 0
    for byte in range(256):
        if byte in printable:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(256 + extra)
            extra += 1
    return table


ENCODE_BYTE = byte_alphabet()
DECODE_BYTE = {ch: byte for byte, ch in ENCODE_BYTE.items()}

_WHITE_SPACE = set("\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000")
_WHITE_SPACE.update(chr(code) for code in range(0x2000, 0x200B))


def _kind(ch):
    """'s' white space, 'L' letter, 'N' number, 'o' anything else."""
    if ch in _WHITE_SPACE:
        return "s"
    category = unicodedata.category(ch)[0]
    return category if category in "LN" else "o"


def pre_tokenize(text):
    r"""Pieces of the GPT-2 pattern, in order:

    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+

    Written by hand because the re module knows no \p{...} classes.
    """
    kinds = [_kind(ch) for ch in text]
    pieces, i, n = [], 0, len(text)
    while i < n:
        if text[i] == "'":
            for suffix in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d"):
                if text.startswith(suffix, i):
                    break
            else:
                suffix = ""
            if suffix:
                pieces.append(suffix)
                i += len(suffix)
                continue
        first = i + 1 if text[i] == " " and i + 1 < n else i
        if kinds[first] != "s":
            end = first
            while end < n and kinds[end] == kinds[first]:
                end += 1
        else:
            end = i
            while end < n and kinds[end] == "s":
                end += 1
            if end < n and end - i > 1:
                end -= 1  # \s+(?!\S): the last space goes with what follows
        pieces.append(text[i:end])
        i = end
    return pieces


def train(documents, entries):
    """Merges that bring the vocabulary to `entries`; ties go to the lower ids."""
    counts = Counter()
    for document in documents:
        counts.update(pre_tokenize(document))
    vocabulary = list(SPECIALS) + sorted(ENCODE_BYTE.values())
    ids = {token: i for i, token in enumerate(vocabulary)}
    words, weights = [], []
    for piece, count in sorted(counts.items()):
        words.append([ids[ENCODE_BYTE[b]] for b in piece.encode("utf-8")])
        weights.append(count)
    pair_counts, where = Counter(), defaultdict(set)
    for index, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pair_counts[pair] += weights[index]
            where[pair].add(index)
    merges = []
    while len(vocabulary) < entries:
        best = min(pair_counts, key=lambda pair: (-pair_counts[pair], pair))
        if pair_counts[best] < 2:
            break
        new_token = vocabulary[best[0]] + vocabulary[best[1]]
        merges.append((vocabulary[best[0]], vocabulary[best[1]]))
        if new_token in ids:  # two ways to the same text: keep the first id
            new_id = ids[new_token]
        else:
            new_id = ids[new_token] = len(vocabulary)
            vocabulary.append(new_token)
        for index in sorted(where.pop(best)):
            word, weight = words[index], weights[index]
            for pair in zip(word, word[1:]):
                pair_counts[pair] -= weight
                if pair_counts[pair] <= 0:
                    del pair_counts[pair]
            merged, i = [], 0
            while i < len(word):
                if i + 1 < len(word) and (word[i], word[i + 1]) == best:
                    merged.append(new_id)
                    i += 2
                else:
                    merged.append(word[i])
                    i += 1
            words[index] = merged
            for pair in zip(merged, merged[1:]):
                pair_counts[pair] += weight
                where[pair].add(index)
    return vocabulary, merges


class Tokenizer:
    def __init__(self, vocabulary, merges):
        self.vocabulary = list(vocabulary)
        self.merges = [tuple(pair) for pair in merges]
        self.ids = {token: i for i, token in enumerate(self.vocabulary)}
        self.ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self.bos, self.eos = self.ids[BOS], self.ids[EOS]
        self._cache = {}

    def _encode_piece(self, piece):
        known = self._cache.get(piece)
        if known is not None:
            return known
        parts = [ENCODE_BYTE[b] for b in piece.encode("utf-8")]
        while len(parts) > 1:
            ranked = [(self.ranks.get(pair, sys.maxsize), i)
                      for i, pair in enumerate(zip(parts, parts[1:]))]
            rank, at = min(ranked)
            if rank == sys.maxsize:
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        self._cache[piece] = result = [self.ids[part] for part in parts]
        return result

    def encode_text(self, text):
        """Ids of text in which no special token is recognised."""
        return [i for piece in pre_tokenize(text) for i in self._encode_piece(piece)]

    def encode(self, text, add_special_tokens=True):
        """Special tokens in the text count as such; bos is put in front if asked."""
        result = [self.bos] if add_special_tokens else []
        rest = text
        while rest:
            found = [(rest.find(s), s) for s in SPECIALS if s in rest]
            if not found:
                result += self.encode_text(rest)
                break
            at, special = min(found)
            result += self.encode_text(rest[:at])
            result.append(self.ids[special])
            rest = rest[at + len(special):]
        return result

    def decode(self, ids, skip_special_tokens=True):
        data = bytearray()
        for i in ids:
            token = self.vocabulary[i]
            if token not in SPECIALS:
                data += bytes(DECODE_BYTE[ch] for ch in token)
            elif not skip_special_tokens:
                data += token.encode("utf-8")
        return data.decode("utf-8", "replace")

    def tokenizer_json(self):
        """The file that the Hugging Face tokenizers library reads."""
        byte_level = {"type": "ByteLevel", "add_prefix_space": False,
                      "trim_offsets": True, "use_regex": True}
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": self.ids[s], "content": s, "single_word": False, "lstrip": False,
                 "rstrip": False, "normalized": False, "special": True} for s in SPECIALS],
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": BOS, "type_id": 0}},
                           {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"SpecialToken": {"id": BOS, "type_id": 0}},
                         {"Sequence": {"id": "A", "type_id": 0}},
                         {"SpecialToken": {"id": BOS, "type_id": 1}},
                         {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {BOS: {"id": BOS, "ids": [self.bos], "tokens": [BOS]}},
            },
            "decoder": byte_level,
            "model": {
                "type": "BPE", "dropout": None, "unk_token": None,
                "continuing_subword_prefix": None, "end_of_word_suffix": None,
                "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                "vocab": self.ids,
                "merges": ["%s %s" % pair for pair in self.merges],
            },
        }

    def save(self, path):
        with open(path, "w", encoding="utf-8") as handle:
            json.dump(self.tokenizer_json(), handle, ensure_ascii=False, indent=1)
            handle.write("\n")

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as handle:
            model = json.load(handle)["model"]
        vocabulary = sorted(model["vocab"], key=model["vocab"].get)
        return cls(vocabulary, [tuple(m.split(" ")) for m in model["merges"]])
