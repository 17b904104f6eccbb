#!/usr/bin/python3
"""Writes tokenizer_vectors.json: strings and their ids.

    /usr/bin/python3 vectors.py --model samples/model --out samples/train/tokenizer_vectors.json

"ids" has no special token added, "ids_with_bos" has bos in front.  In both,
special-token text inside a string counts as the special token.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bpe  # noqa: E402

STRINGS = [
    "",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    "a",
    "In the beginning God created the heaven and the earth.",
    " In the beginning",
    "And the king said",
    "hacker: n. A person who enjoys exploring the details of systems.",
    "A program that",
    "The quick brown fox jumps over the lazy dog.",
    "UPPER lower MiXeD camelCase snake_case kebab-case",
    "It's what they'd said; we'll see if you're right, I'm sure he's not, I've no doubt.",
    "IT'S WHAT THEY'D SAID",
    "don't can't won't shan't",
    "'tis 'twas ''s 'd' 're-entry",
    "the kings\u2019 horses and the king\u2019s men",
    "\u201cQuoted,\u201d she said \u2014 and left\u2026",
    "one  two   three    four",
    "   leading and trailing   ",
    "line one\nline two\n\nline four\n",
    "tab\tseparated\t\tvalues",
    " \n \n  x",
    "a\n b\n  c\n   d",
    "a \n",
    "x\u00a0y\u2003z\u3000w",
    "zero\u200bwidth\u200djoin",
    "\u0085next\u2028line",
    "0 1 12 123 1234 12345 3.14159 1,000,000 -7 2^10",
    "room101b v2.0-rc1",
    "\u0663\u0664\u0665 \u00bd \u2167 x\u00b2",
    "caf\u00e9 na\u00efve r\u00e9sum\u00e9 \u00dcber stra\u00dfe",
    "cafe\u0301 decomposed",
    "\u0391\u03b2\u03b3 \u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002",
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0 \ud55c\uad6d\uc5b4",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "\u0928\u092e\u0938\u094d\u0924\u0947",
    "emoji \U0001f600\U0001f680 and \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1f0 \u2764\ufe0f",
    "int main(void) { return printf(\"%d\\n\", 42) < 0; }",
    "for (auto& [k, v] : map) {\n    sum += v;\n}\n",
    "def f(x):\n\treturn x**2  # square\n",
    "https://example.org/a?b=c&d=%20#e",
    "!!! ??? ... --- *** ### @@@ $$$ %%% ^^^ &&& ((())) [[]] {{}}",
    "a.b,c;d:e!f?g",
    "He said: \"Yea, hath God said?\" (Genesis)",
    "<|bos|>In the beginning",
    "first<|eos|><|bos|>second",
    "text <|eos|>",
    "<|eos|> text <|bos",
    "<|unknown|> <|bos |>",
    "\x00\x01\x1b[0m\x7f",
    "\x1c\x1d separators are not white space here",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    tokenizer = bpe.Tokenizer.load(os.path.join(arguments.model, "tokenizer.json"))
    lines = []
    for text in STRINGS:
        ids = tokenizer.encode(text, add_special_tokens=False)
        if tokenizer.decode(ids, skip_special_tokens=False) != text:
            raise SystemExit("no round trip: %r" % text)
        lines.append(" " + json.dumps({"text": text, "ids": ids,
                                       "ids_with_bos": tokenizer.encode(text)}))
    with open(arguments.out, "w", encoding="utf-8") as handle:
        handle.write("[\n" + ",\n".join(lines) + "\n]\n")
    print(len(STRINGS), "strings")


if __name__ == "__main__":
    main()
