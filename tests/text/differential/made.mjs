// SPDX-License-Identifier: Apache-2.0
// Small tokenizers made up so that every part of tokenizer.json is met: Unigram models, and each
// normaliser, pre-tokeniser, post-processor and decoder in its variants.

const marker = "\u2581";

function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

// Pieces cut out of the strings themselves, so that many of them match.
function pieces(strings, count, longest, seed) {
  const random = generator(seed);
  const found = new Set();
  for (let i = 0; found.size < count && i < count * 20; ++i) {
    const text = [...strings[Math.floor(random() * strings.length)].replaceAll(" ", marker)];
    if (text.length === 0) continue;
    const begin = Math.floor(random() * text.length);
    found.add(text.slice(begin, begin + 1 + Math.floor(random() * longest)).join(""));
  }
  return [...found].filter((piece) => piece.length > 0 && piece.isWellFormed());
}

const byteTokens = Array.from({ length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);

function unigram(strings, { byteFallback = false, seed = 1, longest = 5 } = {}) {
  const random = generator(seed + 77);
  const vocab = [["<unk>", 0], ["<s>", 0], ["</s>", 0]];
  if (byteFallback) for (const token of byteTokens) vocab.push([token, 0]);
  vocab.push([marker, -3.5]);
  const known = new Set(vocab.map(([token]) => token));
  for (const piece of pieces(strings, 1500, longest, seed)) {
    if (!known.has(piece)) vocab.push([piece, -1 - 12 * random()]);
  }
  return { type: "Unigram", unk_id: 0, vocab, byte_fallback: byteFallback };
}

// A byte alphabet and no merges: words show in nothing but their order, so every word of up to
// three characters that the strings have is made a token of its own by ignore_merges.
function words(strings, seed = 5) {
  const vocab = { "<unk>": 0 };
  for (const piece of pieces(strings, 2500, 4, seed)) vocab[piece] ??= Object.keys(vocab).length;
  for (const piece of pieces(strings, 900, 1, seed + 1)) vocab[piece] ??= Object.keys(vocab).length;
  return { type: "BPE", vocab, merges: [], unk_token: "<unk>", fuse_unk: false, ignore_merges: true };
}

// A trie as darts-clone lays it out, with one block of 256 units per node: large but simple.
function charsmap(rules) {
  const root = { children: new Map() };
  let replacements = Buffer.alloc(0);
  for (const [from, to] of rules) {
    let node = root;
    for (const byte of Buffer.from(from)) {
      if (!node.children.has(byte)) node.children.set(byte, { children: new Map() });
      node = node.children.get(byte);
    }
    node.value = replacements.length;
    replacements = Buffer.concat([replacements, Buffer.from(to), Buffer.from([0])]);
  }
  // Node at position p (label checked there) has its children at (p ^ offset) ^ byte, its value at
  // p ^ offset. Blocks begin at multiples of 256, so offset = p ^ block.
  const nodes = [];
  const place = (node) => {
    node.block = 256 * (nodes.push(node));
    for (const child of node.children.values()) place(child);
  };
  place(root);
  const units = new Uint32Array(256 * (nodes.length + 1)).fill(0x80000000);
  const write = (node, position, label) => {
    const offset = position ^ node.block;
    const packed = offset < 1 << 21 ? offset << 10 : ((offset >>> 8) << 10) | 0x200;
    units[position] = (packed | (node.value !== undefined ? 0x100 : 0) | label) >>> 0;
    if (node.value !== undefined) units[node.block] = (0x80000000 | node.value) >>> 0;
    for (const [byte, child] of node.children) write(child, node.block ^ byte, byte);
  };
  write(root, 0, 0);
  const header = Buffer.alloc(4);
  header.writeUInt32LE(units.length * 4);
  return Buffer.concat([header, Buffer.from(units.buffer), replacements]).toString("base64");
}

const kRules = [["ﬁ", "fi"], ["é", "e"], ["e\u0301", "é!"], ["²", "2"], ["\u00a0", " "], ["\u3000", " "],
  ["\t", " "], ["\u200b", ""], ["…", "..."], ["Ⅷ", "VIII"], ["한", "한"], ["ｆ", "f"], ["''", "\""], ["你", "你好"]];

const added = [
  { id: 1, content: "<s>", special: true, normalized: false, single_word: false, lstrip: false, rstrip: false },
  { id: 2, content: "</s>", special: true, normalized: false, single_word: false, lstrip: true, rstrip: false },
];
const wordAdded = (vocab) => [
  { id: 0, content: "harvest", special: false, normalized: true, single_word: true, lstrip: false, rstrip: false },
  { id: 0, content: "village", special: false, normalized: false, single_word: false, lstrip: true, rstrip: true },
  { id: 0, content: "THE", special: false, normalized: true, single_word: false, lstrip: false, rstrip: false },
  { id: 0, content: "\n\n", special: false, normalized: false, single_word: false, lstrip: false, rstrip: false },
].map((token, i) => ({ ...token, id: vocab[token.content] ?? Object.keys(vocab).length + i }));

function whole(model, parts = {}) {
  return { version: "1.0", truncation: null, padding: null, added_tokens: [], normalizer: null,
    pre_tokenizer: null, post_processor: null, decoder: null, model, ...parts };
}

const metaspace = (prepend_scheme, split) => ({ type: "Metaspace", replacement: marker, prepend_scheme, split });
const sequence = (type, key, items) => ({ type: "Sequence", [key]: items });
const split = (pattern, behavior, invert = false) => ({ type: "Split", pattern, behavior, invert });
const template = {
  type: "TemplateProcessing",
  single: [{ SpecialToken: { id: "<s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } },
    { SpecialToken: { id: "</s>", type_id: 0 } }],
  pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
  special_tokens: { "<s>": { id: "<s>", ids: [1], tokens: ["<s>"] }, "</s>": { id: "</s>", ids: [2], tokens: ["</s>"] } },
};

export function madeTokenizers(strings) {
  const list = {};
  for (const scheme of ["always", "first", "never"]) {
    for (const cut of [true, false]) {
      list[`unigram-${scheme}-${cut ? "split" : "whole"}`] = whole(unigram(strings, { seed: cut ? 3 : 4 }), {
        added_tokens: added, pre_tokenizer: metaspace(scheme, cut), post_processor: template,
        decoder: metaspace(scheme, cut),
      });
    }
  }
  list["unigram-bytes"] = whole(unigram(strings, { byteFallback: true, longest: 3 }), {
    added_tokens: added,
    normalizer: sequence("Sequence", "normalizers", [{ type: "Precompiled", precompiled_charsmap: charsmap(kRules) },
      { type: "Replace", pattern: { Regex: " {2,}" }, content: marker }]),
    pre_tokenizer: sequence("Sequence", "pretokenizers", [{ type: "WhitespaceSplit" }, metaspace("always", true)]),
    decoder: sequence("Sequence", "decoders", [{ type: "Replace", pattern: { String: marker }, content: " " },
      { type: "ByteFallback" }, { type: "Fuse" }, { type: "Strip", content: " ", start: 1, stop: 0 }]),
  });
  const normalizers = {
    charsmap: { type: "Precompiled", precompiled_charsmap: charsmap(kRules) },
    nmt: { type: "Nmt" }, nfc: { type: "NFC" }, nfd: { type: "NFD" }, nfkc: { type: "NFKC" }, nfkd: { type: "NFKD" },
    lowercase: { type: "Lowercase" },
    accents: sequence("Sequence", "normalizers", [{ type: "NFD" }, { type: "StripAccents" }]),
    strip: { type: "Strip", strip_left: true, strip_right: false },
    "strip-both": { type: "Strip", strip_left: true, strip_right: true },
    prepend: sequence("Sequence", "normalizers", [{ type: "Prepend", prepend: marker },
      { type: "Replace", pattern: { String: " " }, content: marker }]),
    replace: { type: "Replace", pattern: { Regex: "[aeiou]+|\\s\\s" }, content: "#" },
  };
  for (const [name, normalizer] of Object.entries(normalizers)) {
    const model = words(strings);
    list[`normalizer-${name}`] = whole(model, { normalizer, added_tokens: wordAdded(model.vocab) });
  }
  const preTokenizers = {
    digits: { type: "Digits", individual_digits: false }, "digits-single": { type: "Digits", individual_digits: true },
    whitespace: { type: "Whitespace" }, "whitespace-split": { type: "WhitespaceSplit" },
    delimiter: { type: "CharDelimiterSplit", delimiter: "e" },
    "split-string": split({ String: "a" }, "Isolated"),
    sequence: sequence("Sequence", "pretokenizers", [split({ Regex: "\\p{N}{1,3}" }, "Isolated"),
      split({ Regex: "[\\p{P}\\p{S}]" }, "MergedWithPrevious"), { type: "Digits", individual_digits: true }]),
    classes: split({ Regex: "\\w+|\\d|[[:punct:]]|\\h+|[^\\s\\w]" }, "Isolated"),
    insensitive: split({ Regex: "(?i:'s|'t|'re|ss|k)" }, "Isolated"),
    lines: split({ Regex: "^.|.$|\\A.|.\\z" }, "Isolated"),
  };
  for (const behavior of ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]) {
    preTokenizers[`punctuation-${behavior}`] = { type: "Punctuation", behavior };
    for (const invert of [false, true]) {
      preTokenizers[`split-${behavior}${invert ? "-invert" : ""}`] = split({ Regex: "\\s|[aeiou]|\\p{Lo}" }, behavior, invert);
    }
  }
  for (const [name, pre_tokenizer] of Object.entries(preTokenizers)) {
    list[`words-${name}`] = whole(words(strings), { pre_tokenizer });
  }
  return list;
}
