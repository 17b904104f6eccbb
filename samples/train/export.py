#!/usr/bin/python3
"""Writes a training checkpoint in the Hugging Face layout.

    /usr/bin/python3 export.py --work DIR --out samples/model

Weights are rounded to bfloat16 (to nearest, ties to even).  lm_head.weight is
not written: it is the embedding.
"""

import argparse
import json
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402

import bpe  # noqa: E402
from model import CONFIG  # noqa: E402


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as handle:
        json.dump(value, handle, ensure_ascii=False, indent=2)
        handle.write("\n")


def write_safetensors(path, tensors, metadata):
    """Tensors in the order of their names, bfloat16, one after the other."""
    header, chunks, at = {"__metadata__": metadata}, [], 0
    for name in sorted(tensors):
        tensor = tensors[name].detach().to(torch.bfloat16).contiguous()
        data = tensor.view(torch.int16).numpy().astype("<i2").tobytes()
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(data)]}
        chunks.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as handle:
        handle.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def model_config(tokenizer):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": CONFIG["vocab_size"],
        "hidden_size": CONFIG["hidden_size"],
        "intermediate_size": CONFIG["intermediate_size"],
        "num_hidden_layers": CONFIG["num_hidden_layers"],
        "num_attention_heads": CONFIG["num_attention_heads"],
        "num_key_value_heads": CONFIG["num_key_value_heads"],
        "head_dim": CONFIG["head_dim"],
        "hidden_act": "silu",
        "max_position_embeddings": CONFIG["max_position_embeddings"],
        "rms_norm_eps": CONFIG["rms_norm_eps"],
        "rope_theta": CONFIG["rope_theta"],
        "rope_scaling": None,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "initializer_range": 0.04,
        "bos_token_id": tokenizer.bos,
        "eos_token_id": tokenizer.eos,
        "pretraining_tp": 1,
        "torch_dtype": "bfloat16",
        "use_cache": True,
    }


def tokenizer_config(tokenizer):
    def special(content):
        return {"content": content, "lstrip": False, "normalized": False,
                "rstrip": False, "single_word": False, "special": True}
    return {
        "add_bos_token": True,
        "add_eos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": {str(tokenizer.ids[s]): special(s) for s in bpe.SPECIALS},
        "bos_token": bpe.BOS,
        "clean_up_tokenization_spaces": False,
        "eos_token": bpe.EOS,
        "model_max_length": CONFIG["max_position_embeddings"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    tokenizer = bpe.Tokenizer.load(os.path.join(arguments.work, "tokenizer.json"))
    state = torch.load(os.path.join(arguments.work, "checkpoint.pt"), map_location="cpu")
    tensors = {"model." + name: tensor for name, tensor in state["model"].items()}
    write_safetensors(os.path.join(arguments.out, "model.safetensors"), tensors,
                      {"format": "pt", "training_step": str(state["step"])})
    write_json(os.path.join(arguments.out, "config.json"), model_config(tokenizer))
    write_json(os.path.join(arguments.out, "generation_config.json"), {
        "bos_token_id": tokenizer.bos, "eos_token_id": tokenizer.eos,
        "do_sample": False, "max_length": CONFIG["max_position_embeddings"]})
    write_json(os.path.join(arguments.out, "tokenizer_config.json"), tokenizer_config(tokenizer))
    tokenizer.save(os.path.join(arguments.out, "tokenizer.json"))
    print("step %d, %d tensors, %d parameters"
          % (state["step"], len(tensors), sum(t.numel() for t in tensors.values())))


if __name__ == "__main__":
    main()
