#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes quantised_vectors.json: tiny checkpoints in every quantised layout, and their values.

Needs numpy. Random codes and scales are packed by loops written after the published packers, and
the values come from the codes before packing, in float32: (code - zero) * scale. The test reads
the packed form back. Large value lists are given as the SHA-256 of their little-endian f32 bytes.

    python3 quantised_vectors.py > quantised_vectors.json
"""
import hashlib
import json
import sys

import numpy as np

HIDDEN, KV, WIDE, VOCABULARY = 32, 32, 64, 16
LINEAR = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (KV, HIDDEN),
    "self_attn.v_proj": (KV, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (WIDE, HIDDEN),
    "mlp.up_proj": (WIDE, HIDDEN),
    "mlp.down_proj": (HIDDEN, WIDE),
}
CONFIG = {
    "model_type": "llama", "hidden_size": HIDDEN, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": WIDE,
    "vocab_size": VOCABULARY, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "float16",
}


def stored(name, dtype, array):
    return {"name": name, "dtype": dtype, "shape": list(array.shape),
            "hex": np.ascontiguousarray(array).tobytes().hex()}


def bf16(values):
    """Values that bf16 holds, and their stored halves."""
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32), (bits >> 16).astype(np.uint16)


def e4m3_value(code):
    sign, exponent, fraction = code >> 7, (code >> 3) & 15, code & 7
    value = fraction / 8 * 2.0**-6 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7)
    return -value if sign else value


def bits_of(values, bits):
    """A list of integers as one stream of bits, lowest first, cut into 32-bit words."""
    stream = 0
    for place, value in enumerate(values):
        stream |= int(value) << (place * bits)
    return [(stream >> (32 * i)) & 0xFFFFFFFF for i in range(len(values) * bits // 32)]


def scales(rng, shape):
    return (rng.uniform(0.5, 2.0, shape) / 64).astype(np.float16)


def gptq(rng, name, shape, bits, group, symmetric, reordered, plus_one):
    rows, columns = shape
    groups = 1 if group == -1 else columns // group
    codes = rng.integers(0, 2**bits, shape)
    zeros = np.full((rows, groups), 2 ** (bits - 1)) if symmetric else rng.integers(
        1, 2**bits, (rows, groups))
    scale = scales(rng, (rows, groups))
    index = np.arange(columns) // (columns if group == -1 else group)
    if reordered:
        index = rng.permutation(index)
    values = (codes - zeros[:, index]).astype(np.float32) * scale[:, index].astype(np.float32)
    # Codes: one stream down every column of the transposed matrix.
    qweight = np.array([bits_of(codes[r], bits) for r in range(rows)], dtype=np.uint32).T
    kept = zeros - (1 if plus_one else 0)
    qzeros = np.array([bits_of(kept[:, g], bits) for g in range(groups)], dtype=np.uint32)
    parts = [stored(name + ".qweight", "I32", qweight), stored(name + ".qzeros", "I32", qzeros),
             stored(name + ".scales", "F16", scale.T)]
    if reordered or group != -1:
        parts.append(stored(name + ".g_idx", "I32", index.astype(np.int32)))
    return parts, values


def awq(rng, name, shape, group):
    rows, columns = shape
    codes = rng.integers(0, 16, shape)
    zeros = rng.integers(0, 16, (rows, columns // group))
    scale = scales(rng, zeros.shape)
    index = np.arange(columns) // group
    values = (codes - zeros[:, index]).astype(np.float32) * scale[:, index].astype(np.float32)

    def pack(matrix):  # [lines, rows] -> [lines, rows / 8]
        packed = np.zeros((matrix.shape[0], matrix.shape[1] // 8), dtype=np.uint32)
        order_map = [0, 2, 4, 6, 1, 3, 5, 7]
        for column in range(packed.shape[1]):
            for i in range(8):
                part = matrix[:, column * 8 + order_map[i]].astype(np.uint32)
                packed[:, column] |= part << np.uint32(i * 4)
        return packed

    return [stored(name + ".qweight", "I32", pack(codes.T)),
            stored(name + ".qzeros", "I32", pack(zeros.T)),
            stored(name + ".scales", "F16", scale.T)], values


def fp8(rng, name, shape, kind, block=None):
    rows, columns = shape
    codes = rng.integers(0, 256, shape).astype(np.uint8)
    codes[(codes & 127) == 127] = 0  # no NaN here
    value = np.array([[e4m3_value(int(c)) for c in row] for row in codes], dtype=np.float32)
    if kind == "tensor":
        scale = np.array(rng.uniform(0.01, 0.02), dtype=np.float32)
        parts = [stored(name + ".weight_scale", "F32", scale)]
        spread = scale
    elif kind == "channel":
        scale, halves = bf16(rng.uniform(0.01, 0.02, (rows, 1)))
        parts = [stored(name + ".weight_scale", "BF16", halves)]
        spread = scale
    else:
        down, across = -(-rows // block[0]), -(-columns // block[1])
        scale = rng.uniform(0.01, 0.02, (down, across)).astype(np.float32)
        parts = [stored(name + ".weight_scale_inv", "F32", scale)]
        spread = scale[np.arange(rows)[:, None] // block[0], np.arange(columns)[None] // block[1]]
    return parts + [stored(name + ".weight", "F8_E4M3", codes)], value * spread


def int8(rng, name, shape, zero_points):
    rows = shape[0]
    codes = rng.integers(-128, 128, shape).astype(np.int8)
    scale = rng.uniform(0.01, 0.02, (rows, 1)).astype(np.float32)
    zeros = rng.integers(-20, 20, (rows, 1)).astype(np.int8) if zero_points else np.zeros(
        (rows, 1), dtype=np.int8)
    values = (codes.astype(np.int32) - zeros).astype(np.float32) * scale
    parts = [stored(name + ".weight", "I8", codes), stored(name + ".weight_scale", "F32", scale)]
    if zero_points:
        parts.append(stored(name + ".weight_zero_point", "I8", zeros))
    return parts, values


def pack_to_int32(signed, bits):
    """Offset codes, padded to whole words along the last axis."""
    in_word = 32 // bits
    unsigned = (signed + 2 ** (bits - 1)).astype(np.uint32)
    padding = -signed.shape[1] % in_word
    unsigned = np.pad(unsigned, ((0, 0), (0, padding)))
    packed = np.zeros((signed.shape[0], unsigned.shape[1] // in_word), dtype=np.uint32)
    for i in range(in_word):
        packed |= unsigned[:, i::in_word] << np.uint32(bits * i)
    return packed


def packed_int(rng, name, shape, bits, group, zero_points, reordered):
    rows, columns = shape
    groups = columns // group
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)
    codes = rng.integers(low, high, shape)
    zeros = rng.integers(low, high, (rows, groups)) if zero_points else np.zeros(
        (rows, groups), dtype=np.int64)
    scale, halves = bf16(rng.uniform(0.01, 0.02, (rows, groups)))
    index = np.arange(columns) // group
    if reordered:
        index = rng.permutation(index)
    values = (codes - zeros[:, index]).astype(np.float32) * scale[:, index]
    parts = [stored(name + ".weight_packed", "I32", pack_to_int32(codes, bits)),
             stored(name + ".weight_scale", "BF16", halves),
             stored(name + ".weight_shape", "I64", np.array(shape, dtype=np.int64))]
    if zero_points:
        parts.append(stored(name + ".weight_zero_point", "I32", pack_to_int32(zeros.T, bits).T))
    if reordered:
        parts.append(stored(name + ".weight_g_idx", "I32", index.astype(np.int32)))
    return parts, values


def mxfp4(rng, name, experts, inputs, outputs):
    table = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    codes = rng.integers(0, 16, (experts, outputs, inputs))
    exponents = rng.integers(120, 130, (experts, outputs, inputs // 32)).astype(np.uint8)
    value = np.array([table[c & 7] * (-1.0 if c & 8 else 1.0) for c in codes.ravel()],
                     dtype=np.float32).reshape(codes.shape)
    scale = np.exp2(exponents.astype(np.float32) - 127).repeat(32, axis=2)
    blocks = (codes[:, :, 0::2] | (codes[:, :, 1::2] << 4)).astype(np.uint8)
    parts = [stored(name + "_blocks", "U8", blocks.reshape(experts, outputs, inputs // 32, 16)),
             stored(name + "_scales", "U8", exponents)]
    return parts, (value * scale).transpose(0, 2, 1)


def checkpoint(name, seed, method, quantise):
    """A whole model: `quantise(rng, module, shape)` gives a module's tensors and values."""
    rng = np.random.default_rng(seed)
    tensors, expected = [], {}
    for key, shape in (("model.embed_tokens.weight", (VOCABULARY, HIDDEN)),
                       ("lm_head.weight", (VOCABULARY, HIDDEN)), ("model.norm.weight", (HIDDEN,)),
                       ("model.layers.0.input_layernorm.weight", (HIDDEN,)),
                       ("model.layers.0.post_attention_layernorm.weight", (HIDDEN,))):
        tensors.append(stored(key, "F16", rng.normal(0, 1, shape).astype(np.float16)))
    for module, shape in LINEAR.items():
        path = "model.layers.0." + module
        parts, values = quantise(rng, path, shape)
        tensors += parts
        expected[path + ".weight"] = digest(values)
    return {"name": name, "config": {**CONFIG, "quantization_config": method},
            "tensors": tensors, "expected": expected}


def digest(values):
    flat = np.ascontiguousarray(values.astype("<f4"))
    return {"shape": list(values.shape), "first": [float(v) for v in flat.ravel()[:4]],
            "sha256": hashlib.sha256(flat.tobytes()).hexdigest()}


def weights_group(bits, kind, strategy, **more):
    return {"config_groups": {"group_0": {
        "targets": ["Linear"], "input_activations": None, "output_activations": None,
        "weights": {"num_bits": bits, "type": kind, "strategy": strategy, "dynamic": False,
                    "symmetric": True, **more}}},
            "ignore": ["lm_head"], "quant_method": "compressed-tensors",
            "quantization_status": "compressed"}


def main():
    def gptq_config(bits, group, sym, desc_act, form):
        return {"quant_method": "gptq", "bits": bits, "group_size": group, "sym": sym,
                "desc_act": desc_act, "checkpoint_format": form}

    models = []
    for name, bits, group, sym, reordered, form in (
            ("gptq4_reordered", 4, 16, False, True, "gptq"),
            ("gptq4_v2", 4, 32, True, False, "gptq_v2"),
            ("gptq8_one_group", 8, -1, False, False, "gptq"),
            ("gptq3", 3, 16, False, False, "gptq"),
            ("gptq2", 2, 16, True, False, "gptq")):
        models.append(checkpoint(
            name, len(models) + 1, gptq_config(bits, group, sym, reordered, form),
            lambda rng, path, shape: gptq(rng, path, shape, bits, group, sym, reordered,
                                          form == "gptq")))
    models.append(checkpoint(
        "awq", 11, {"quant_method": "awq", "bits": 4, "group_size": 16, "zero_point": True,
                    "version": "gemm", "modules_to_not_convert": ["lm_head"]},
        lambda rng, path, shape: awq(rng, path, shape, 16)))
    fp8_config = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    models.append(checkpoint("fp8_tensor", 21, {**fp8_config, "activation_scheme": "static"},
                             lambda rng, path, shape: fp8(rng, path, shape, "tensor")))
    models.append(checkpoint("fp8_channel", 22, fp8_config,
                             lambda rng, path, shape: fp8(rng, path, shape, "channel")))
    models.append(checkpoint("fp8_block", 23, {**fp8_config, "weight_block_size": [24, 20]},
                             lambda rng, path, shape: fp8(rng, path, shape, "block", (24, 20))))
    models.append(checkpoint(
        "ct_int8", 31, {**weights_group(8, "int", "channel"), "format": "int-quantized"},
        lambda rng, path, shape: int8(rng, path, shape, False)))
    models.append(checkpoint(
        "ct_int8_zero_points", 32,
        {**weights_group(8, "int", "channel", symmetric=False), "format": "int-quantized"},
        lambda rng, path, shape: int8(rng, path, shape, True)))
    models.append(checkpoint(
        "ct_fp8", 33, {**weights_group(8, "float", "channel"), "format": "float-quantized"},
        lambda rng, path, shape: fp8(rng, path, shape, "channel")))
    models.append(checkpoint(
        "ct_int4_group", 34,
        {**weights_group(4, "int", "group", group_size=16, symmetric=False),
         "format": "pack-quantized"},
        lambda rng, path, shape: packed_int(rng, path, shape, 4, 16, True, False)))
    models.append(checkpoint(
        "ct_int4_reordered", 35,
        {**weights_group(4, "int", "group", group_size=16), "format": "pack-quantized"},
        lambda rng, path, shape: packed_int(rng, path, shape, 4, 16, False, True)))
    models.append(checkpoint(
        "ct_int8_packed", 36,
        {**weights_group(8, "int", "group", group_size=32), "format": "pack-quantized"},
        lambda rng, path, shape: packed_int(rng, path, shape, 8, 32, False, False)))
    rng = np.random.default_rng(41)
    parts, values = mxfp4(rng, "model.layers.0.mlp.experts.gate_up_proj", 3, 64, 10)
    experts = {"tensors": parts, "expected": {
        "model.layers.0.mlp.experts.gate_up_proj": digest(values)}}
    json.dump({"models": models, "mxfp4": experts}, sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
