#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes answers/*.json: two lanes of a saved capture as a server would have answered.

    make_answers.py        # from captures/neighbours.h5

An OpenAI chat completion each, with the log probabilities of the five likeliest tokens to nine
significant digits, worked out in float64 from the capture's logits. Needs python3-h5py and
python3-numpy.
"""

import json
import pathlib

import h5py
import numpy

HERE = pathlib.Path(__file__).resolve().parent
ALTERNATIVES = 5


def log_softmax(logits):
    shifted = logits.astype(numpy.float64) - logits.max()
    return shifted - numpy.log(numpy.exp(shifted).sum())


def entry(piece, value):
    return {"token": piece.decode("utf-8", "replace"),
            "logprob": float(f"{value:.9g}"),
            "bytes": list(piece)}


def answer(capture, lane, pieces, name):
    steps, text = [], b""
    trace = capture["traces"][lane]
    for logits, chosen in zip(trace["logits"][()], trace["choices"][()]):
        values = log_softmax(logits)
        best = numpy.argsort(-values, kind="stable")[:ALTERNATIVES]
        step = entry(pieces[chosen], values[chosen])
        step["top_logprobs"] = [entry(pieces[i], values[i]) for i in best]
        steps.append(step)
        text += pieces[chosen]
    prompt = len(capture["prompt"]["ids"])
    return {"id": "chatcmpl-" + name, "object": "chat.completion", "created": 1764460800,
            "model": "driftscope-sample", "system_fingerprint": "fp_sample",
            "choices": [{"index": 0,
                         "message": {"role": "assistant", "content": text.decode("utf-8")},
                         "logprobs": {"content": steps}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": len(steps),
                      "total_tokens": prompt + len(steps)}}


def main():
    with h5py.File(HERE / "captures" / "neighbours.h5") as capture:
        offsets = capture["vocab"]["offsets"][()]
        joined = capture["vocab"]["bytes"][()].tobytes()
        pieces = [joined[begin:end] for begin, end in zip(offsets[:-1], offsets[1:])]
        for lane, name in (("a", "alone"), ("b", "among_seven")):
            target = HERE / "answers" / (name + ".json")
            target.parent.mkdir(exist_ok=True)
            text = json.dumps(answer(capture, lane, pieces, name), ensure_ascii=False, indent=1)
            target.write_text(text + "\n", encoding="utf-8")
            print("wrote", target.relative_to(HERE))


if __name__ == "__main__":
    main()
