#!/usr/bin/python3
"""A forward pass of the exported checkpoint in float64, on numpy alone.

    /usr/bin/python3 oracle.py --model samples/model --out samples/oracle

It shares no code with the training: it reads config.json, tokenizer.json and
model.safetensors as any other program would, widens the bfloat16 weights to
float64 and rounds nothing in between.  For every prompt it writes one JSON file
with the ten largest logits at each position, all logits at the last position,
and a greedy continuation with the margin of every choice.
"""

import argparse
import json
import os
import struct

import numpy as np

PROMPT_IDS = 24  # a prompt is cut to this many ids, the bos included
GREEDY = 40
TOP = 10
PROMPTS = {
    "creation": "In the beginning God created the heaven and the earth. And the earth was "
                "without form, and void; and darkness was upon the face of the deep.",
    "hacker": "hacker: n. A person who enjoys exploring the details of programmable systems "
              "and how to stretch their capabilities, as opposed to most users.",
}


def read_safetensors(path):
    with open(path, "rb") as handle:
        data = handle.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "BF16":
            raise ValueError("%s is %s, not BF16" % (name, entry["dtype"]))
        begin, end = entry["data_offsets"]
        bits = np.frombuffer(data[8 + length + begin:8 + length + end], dtype="<u2")
        wide = (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        tensors[name] = wide.reshape(entry["shape"])
    return tensors


def rms_norm(x, gain, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * gain


def rotate(x, theta):
    """x is positions by heads by dim; the first half pairs with the second."""
    positions, _, dim = x.shape
    inverse = theta ** (-np.arange(0, dim, 2, dtype=np.float64) / dim)
    angle = np.arange(positions, dtype=np.float64)[:, None] * inverse[None, :]
    cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
    low, high = x[..., :dim // 2], x[..., dim // 2:]
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def forward(config, tensors, ids):
    """Logits, positions by vocabulary."""
    n, dim = len(ids), config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    eps, theta = config["rms_norm_eps"], config["rope_theta"]
    x = tensors["model.embed_tokens.weight"][ids]
    future = np.triu(np.full((n, n), -np.inf), 1)
    for layer in range(config["num_hidden_layers"]):
        def weight(name):
            return tensors["model.layers.%d.%s.weight" % (layer, name)]
        h = rms_norm(x, weight("input_layernorm"), eps)
        q = rotate((h @ weight("self_attn.q_proj").T).reshape(n, heads, dim), theta)
        k = rotate((h @ weight("self_attn.k_proj").T).reshape(n, kv_heads, dim), theta)
        v = (h @ weight("self_attn.v_proj").T).reshape(n, kv_heads, dim)
        mixed = np.empty((n, heads, dim))
        for head in range(heads):
            shared = head // (heads // kv_heads)
            scores = q[:, head] @ k[:, shared].T / np.sqrt(dim) + future
            mixed[:, head] = softmax(scores) @ v[:, shared]
        x = x + mixed.reshape(n, heads * dim) @ weight("self_attn.o_proj").T
        h = rms_norm(x, weight("post_attention_layernorm"), eps)
        gate = h @ weight("mlp.gate_proj").T
        up = h @ weight("mlp.up_proj").T
        x = x + (gate / (1.0 + np.exp(-gate)) * up) @ weight("mlp.down_proj").T
    x = rms_norm(x, tensors["model.norm.weight"], eps)
    return x @ tensors["model.embed_tokens.weight"].T


def largest(logits, count):
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))[:count]
    return [{"id": i, "logit": float(logits[i])} for i in order]


def greedy(config, tensors, ids, count):
    """Choices and margins (largest logit less second); goes on past eos.

    Of equal logits the lower id is taken.
    """
    ids, steps = list(ids), []
    for _ in range(count):
        first, second = largest(forward(config, tensors, ids)[-1], 2)
        steps.append({"id": first["id"], "logit": first["logit"], "second_id": second["id"],
                      "margin": first["logit"] - second["logit"]})
        ids.append(first["id"])
    return steps


def write(path, value):
    """JSON whose doubles read back to the same bits (17 significant digits)."""
    def text(item, depth):
        pad = "\n" + " " * depth
        if isinstance(item, float):
            return "%.17g" % item
        if isinstance(item, dict):
            if all(not isinstance(v, (dict, list)) for v in item.values()):
                pad = ""
            parts = [pad + json.dumps(k) + ": " + text(v, depth + 1) for k, v in item.items()]
            return "{" + (", " if not pad else ",").join(parts) + "}"
        if isinstance(item, list):
            pad = pad if any(isinstance(v, (dict, list, float)) for v in item) else ""
            return "[" + (", " if not pad else ",").join(pad + text(v, depth + 1)
                                                         for v in item) + "]"
        return json.dumps(item, ensure_ascii=False)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text(value, 1) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    with open(os.path.join(arguments.model, "config.json"), encoding="utf-8") as handle:
        config = json.load(handle)
    tensors = read_safetensors(os.path.join(arguments.model, "model.safetensors"))
    import bpe  # only to turn the prompts into ids
    tokenizer = bpe.Tokenizer.load(os.path.join(arguments.model, "tokenizer.json"))
    os.makedirs(arguments.out, exist_ok=True)
    for name, prompt in PROMPTS.items():
        ids = tokenizer.encode(prompt)[:PROMPT_IDS]
        logits = forward(config, tensors, ids)
        steps = greedy(config, tensors, ids, GREEDY)
        continuation = [step["id"] for step in steps]
        write(os.path.join(arguments.out, name + ".json"), {
            "arithmetic": "float64",
            "prompt": tokenizer.decode(ids),
            "ids": ids,
            "top": [{"position": p, "largest": largest(row, TOP)}
                    for p, row in enumerate(logits)],
            "last_logits": [float(v) for v in logits[-1]],
            "greedy_ids": continuation,
            "greedy_text": tokenizer.decode(continuation),
            "greedy": steps,
        })
        print(name, len(ids), "ids; smallest margin %.6f at step %d"
              % min((step["margin"], i) for i, step in enumerate(steps)))
        print("  " + tokenizer.decode(ids) + " | " + tokenizer.decode(continuation))


if __name__ == "__main__":
    main()
