#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders every template here with every conversation through jinja2, with the settings of
transformers, and prints the result as JSON: the goldens of chat_template_test.cpp.

    python3 render.py > goldens.json
"""
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

DATE = datetime.datetime(2025, 3, 9)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}


class Refused(Exception):
    """raise_exception was called."""


class GenerationTag(jinja2.ext.Extension):
    """{% generation %} marks the assistant's text; it changes nothing in the output."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_write"), [], [], body).set_lineno(line)

    def _write(self, caller):
        return caller()


def refuse(message):
    raise Refused(str(message))


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols])
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = DATE.strftime
    return made


def outcome(template, conversation):
    try:
        return {"text": template.render(**{**TOKENS, **conversation})}
    except Refused as refused:
        return {"refused": str(refused)}
    except Exception:  # undefined values and wrong types: only that it fails is compared
        return {"error": True}


def main():
    here = pathlib.Path(__file__).parent
    conversations = json.loads((here / "conversations.json").read_text(encoding="utf-8"))
    goldens = {}
    for path in sorted(here.glob("*.jinja")):
        template = environment().from_string(path.read_text(encoding="utf-8"))
        goldens[path.stem] = {name: outcome(template, conversation)
                              for name, conversation in conversations.items()}
    json.dump(goldens, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
