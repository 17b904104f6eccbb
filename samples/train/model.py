"""The Llama architecture, small: RMSNorm, rotary positions, SwiGLU, grouped keys."""

import math

import torch
import torch.nn.functional as F

CONFIG = {
    "vocab_size": 2048,
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
}


class RMSNorm(torch.nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        self.dim = c["head_dim"]
        width = c["hidden_size"]
        self.q_proj = torch.nn.Linear(width, self.heads * self.dim, bias=False)
        self.k_proj = torch.nn.Linear(width, self.kv_heads * self.dim, bias=False)
        self.v_proj = torch.nn.Linear(width, self.kv_heads * self.dim, bias=False)
        self.o_proj = torch.nn.Linear(self.heads * self.dim, width, bias=False)

    def forward(self, x, cos, sin, mask):
        batch, length, _ = x.shape
        weight = torch.cat([self.q_proj.weight, self.k_proj.weight, self.v_proj.weight])
        qkv = F.linear(x, weight).view(batch, length, -1, self.dim).transpose(1, 2)
        qk, v = qkv.split([self.heads + self.kv_heads, self.kv_heads], dim=1)
        half = self.dim // 2
        turned = torch.cat([-qk[..., half:], qk[..., :half]], dim=-1)
        qk = qk * cos + turned * sin
        q, k = qk.split([self.heads, self.kv_heads], dim=1)
        # Query heads that share a key head are laid along the length, so that
        # one product serves the whole group.
        group = self.heads // self.kv_heads
        q = q.reshape(batch * self.kv_heads, group * length, self.dim)
        k = k.reshape(batch * self.kv_heads, length, self.dim)
        v = v.reshape(batch * self.kv_heads, length, self.dim)
        scores = torch.bmm(q * (1.0 / math.sqrt(self.dim)), k.transpose(1, 2))
        scores = scores.view(-1, group, length, length) + mask
        weights = torch.softmax(scores, dim=-1).view(-1, group * length, length)
        mixed = torch.bmm(weights, v).view(batch, self.heads, length, self.dim)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class MLP(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner = c["hidden_size"], c["intermediate_size"]
        self.gate_proj = torch.nn.Linear(width, inner, bias=False)
        self.up_proj = torch.nn.Linear(width, inner, bias=False)
        self.down_proj = torch.nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.mlp = MLP(c)

    def forward(self, x, cos, sin, mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(torch.nn.Module):
    """Parameter names are those of the Hugging Face layout, less "model."."""

    def __init__(self, c=CONFIG):
        super().__init__()
        self.config = c
        self.embed_tokens = torch.nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = torch.nn.ModuleList([Layer(c) for _ in range(c["num_hidden_layers"])])
        self.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        length, dim = c["max_position_embeddings"], c["head_dim"]
        inverse = c["rope_theta"] ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        angle = torch.outer(torch.arange(length, dtype=torch.float64), inverse)
        angle = torch.cat([angle, angle], dim=-1)
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)
        mask = torch.full((length, length), -1e9).triu(1)
        self.register_buffer("mask", mask, persistent=False)
        self._initialise()

    def _initialise(self):
        residual = 0.02 / math.sqrt(2 * self.config["num_hidden_layers"])
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                deep = name.endswith(("o_proj.weight", "down_proj.weight"))
                torch.nn.init.normal_(parameter, 0.0, residual if deep else 0.04)

    def forward(self, ids):
        length = ids.shape[1]
        x = self.embed_tokens(ids)
        cos, sin = self.cos[:length], self.sin[:length]
        mask = self.mask[:length, :length]
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return F.linear(self.norm(x), self.embed_tokens.weight)


@torch.no_grad()
def greedy(model, ids, count, eos):
    ids = list(ids)
    for _ in range(count):
        window = ids[-model.config["max_position_embeddings"]:]
        following = int(model(torch.tensor([window]))[0, -1].argmax())
        ids.append(following)
        if following == eos:
            break
    return ids
