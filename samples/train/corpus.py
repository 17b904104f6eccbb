"""Reads and cleans the public-domain training text.

Two Debian packages hold the text:

  bible-kjv-text  /usr/lib/bible.data               King James Version, one verse a line
  dict-jargon     /usr/share/dictd/jargon.dict.dz   The Jargon File 4.4.7

bible.data is a "squished" file: a header, a table of window offsets, then one
LZW stream (the bit layout of compress(1), at most 16 bits a code) for every
64 KiB of text.  A window ends with code 256 and the next starts from an empty
table.
"""

import gzip
import re
import struct

BIBLE_PATH = "/usr/lib/bible.data"
JARGON_PATH = "/usr/share/dictd/jargon.dict.dz"
HOLD_OUT_EVERY = 20  # documents 10, 30, 50, ... of each source are for validation


def _lzw_window(data):
    """One LZW window: codes of 9 to 16 bits, least significant bit first."""
    table = [bytes([i]) for i in range(256)] + [b""]  # 256 closes the window
    out = []
    previous = None
    bits, bit_pos, codes_in_group = 9, 0, 0
    total_bits = len(data) * 8
    while True:
        if len(table) > (1 << bits) - 1 and bits < 16:
            # compress(1) writes codes in groups of eight; a wider code starts
            # on the boundary of such a group.
            bit_pos += (-codes_in_group % 8) * bits
            codes_in_group = 0
            bits += 1
        if bit_pos + bits > total_bits:
            break
        at = bit_pos >> 3
        code = int.from_bytes(data[at:at + 4], "little") >> (bit_pos & 7)
        code &= (1 << bits) - 1
        bit_pos += bits
        codes_in_group += 1
        if code == 256:
            break
        if previous is None:
            entry = table[code]
        else:
            if code < len(table):
                entry = table[code]
            elif code == len(table):
                entry = previous + previous[:1]
            else:
                raise ValueError("bible.data: LZW code %d is out of range" % code)
            if len(table) < 1 << 16:
                table.append(previous + entry[:1])
        out.append(entry)
        previous = entry
    return b"".join(out)


def read_bible(path=BIBLE_PATH):
    with open(path, "rb") as handle:
        data = handle.read()
    if data[:4] != b"EC02":
        raise ValueError("%s is not a squished text file" % path)
    _window, count = struct.unpack(">II", data[0x54:0x5C])
    offsets = list(struct.unpack(">%dI" % count, data[0x5C:0x5C + 4 * count]))
    ends = offsets[1:] + [len(data)]
    raw = b"".join(_lzw_window(data[a:b]) for a, b in zip(offsets, ends))
    return raw.decode("ascii")


def bible_documents(path=BIBLE_PATH):
    """One document a chapter; verses joined to paragraphs of some 400 letters."""
    chapters = []
    current = None
    for line in read_bible(path).split("\n"):
        match = re.match(r"([1-3]?[A-Za-z]+)(\d+):(\d+) (.*)$", line)
        if not match:
            continue  # the title line and the end of the file
        chapter = (match.group(1), match.group(2))
        if chapter != current:
            chapters.append([])
            current = chapter
        chapters[-1].append(re.sub(r"\s+", " ", match.group(4)).strip())
    documents = []
    for verses in chapters:
        paragraphs, open_paragraph = [], ""
        for verse in verses:
            open_paragraph = (open_paragraph + " " + verse).strip()
            if len(open_paragraph) >= 400 and verse[-1] in ".?!":
                paragraphs.append(open_paragraph)
                open_paragraph = ""
        if open_paragraph:
            paragraphs.append(open_paragraph)
        documents.append("\n\n".join(paragraphs))
    return documents


_PLAIN = str.maketrans({
    "\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'",
    "\u00a0": " ", "\u00ad": None, "\u00b7": None, "\u00b4": "'",
})
_BOX = re.compile(r"[\u2500-\u257f]")


def _jargon_entry(headword, lines):
    """An entry as prose: "headword: n. First paragraph ..." """
    word_class = re.sub(r"/.*/,?", "", lines[0]).strip().strip(",").strip()
    if not re.fullmatch(r"[a-z. ,]{0,14}", word_class):
        return None
    paragraphs, current = [], []
    for line in lines[1:] + [""]:
        if line.strip():
            current.append(line.strip())
        elif current:
            paragraphs.append(" ".join(current))
            current = []
    kept = []
    for text in paragraphs:
        text = re.sub(r"\{ ?([^{}]*?) ?\}", r"\1", text)
        text = re.sub(r"\s+", " ", text).strip()
        letters = sum(ch.isalpha() or ch == " " for ch in text)
        if len(text) >= 12 and letters >= 0.8 * len(text):
            kept.append(text)
    if not kept:
        return None
    kept[0] = "%s: %s" % (headword, (word_class + " " if word_class else "") + kept[0])
    return "\n\n".join(kept)


def jargon_documents(path=JARGON_PATH):
    """One document an entry; pronunciations, tables and link braces are dropped."""
    with gzip.open(path, "rb") as handle:
        lines = handle.read().decode("utf-8").translate(_PLAIN).split("\n")
    documents = []
    headword, body = None, []
    for line in lines + ["end"]:
        if line and not line[0].isspace():
            if headword and not headword.startswith("00-database") and len(body) > 1:
                plain = [text for text in body if not _BOX.search(text)]
                entry = _jargon_entry(headword, plain) if plain else None
                if entry:
                    documents.append(entry)
            headword, body = line.strip(), []
        else:
            body.append(line)
    return documents


def load():
    """{source: (training documents, validation documents)}, in a fixed order."""
    result = {}
    for name, documents in (("bible", bible_documents()), ("jargon", jargon_documents())):
        middle = HOLD_OUT_EVERY // 2
        held_out = documents[middle::HOLD_OUT_EVERY]
        training = [d for i, d in enumerate(documents) if i % HOLD_OUT_EVERY != middle]
        result[name] = (training, held_out)
    return result


if __name__ == "__main__":
    for source, (training, held_out) in load().items():
        print(source, len(training), "documents,", sum(map(len, training)), "characters;",
              len(held_out), "held out,", sum(map(len, held_out)), "characters")
        for document in training[1:400:130]:
            print("-" * 60)
            print(document[:900])
