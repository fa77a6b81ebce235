#!/usr/bin/env python3
"""Makes tests/reference/golden/{esm,bert}_layer.{txt,bin}: one encoder layer by transformers, in double.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install numpy torch transformers
    /tmp/reference/bin/python tests/reference/encoder_layer.py

Only developers who change a layer need it; what it makes is committed. ESM-2's layer (pre-norm, rotary by halves, gelu with
erf, biases, eps 1e-5) and BERT's (post-norm, no rotary, gelu with erf, biases, eps 1e-12): weights, input, output, and the
gradients of input and weights for a given gradient of the output. Every sequence is computed on its own, without padding;
gradients of weights are sums over the sequences. The same layers are written out here and compared.

transformers rounds q and k to float inside ESM's rotary even in a model in double; while it runs here, Tensor.float is
Tensor.double.
"""

import math

import numpy
import torch
import transformers
from transformers.models.bert.modeling_bert import BertLayer
from transformers.models.esm.modeling_esm import EsmLayer, EsmRotaryEmbedding

from golden import Writer, single

SEED = 20261129
WIDTH = 32


# ---- written out: x (n, C), w: name -> tensor ----


def linear(x, w, name):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def layernorm(x, w, name, eps):
    centred = x - x.mean(-1, keepdim=True)
    n = centred / (centred.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    return n * w[name + ".weight"] + w[name + ".bias"]


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def rotated(x, frequency):
    """(H, n, D): pairs are (j, j + D/2)."""
    if frequency is None:
        return x
    angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * frequency
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def attention(x, w, heads, frequency):
    n, width = x.shape
    q, k, v = (
        linear(x, w, f"attention.self.{which}").reshape(n, heads, -1).transpose(0, 1) for which in ("query", "key", "value")
    )
    scores = rotated(q, frequency) @ rotated(k, frequency).transpose(1, 2) / math.sqrt(width // heads)
    mixed = (scores.softmax(-1) @ v).transpose(0, 1).reshape(n, width)
    return linear(mixed, w, "attention.output.dense")


def feed_forward(x, w):
    return linear(gelu(linear(x, w, "intermediate.dense")), w, "output.dense")


def esm_written_out(x, w, heads, eps, frequency):
    x = x + attention(layernorm(x, w, "attention.LayerNorm", eps), w, heads, frequency)
    return x + feed_forward(layernorm(x, w, "LayerNorm", eps), w)


def bert_written_out(x, w, heads, eps, frequency):
    x = layernorm(x + attention(x, w, heads, frequency), w, "attention.output.LayerNorm", eps)
    return layernorm(x + feed_forward(x, w), w, "output.LayerNorm", eps)


# ---- by transformers ----


def esm(hidden, heads):
    config = transformers.EsmConfig(
        vocab_size=33, hidden_size=WIDTH, num_attention_heads=heads, intermediate_size=hidden, layer_norm_eps=1e-5,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, position_embedding_type="rotary", num_hidden_layers=1,
    )
    config._attn_implementation = "eager"
    layer = EsmLayer(config).double()
    rotary = EsmRotaryEmbedding(config)
    if getattr(layer.attention.self, "position_embedding_type", None) != "rotary":
        layer.attention.self.position_embedding_type = "rotary"

    def run(x):
        position = torch.arange(x.shape[0])[None]
        float_method = torch.Tensor.float
        torch.Tensor.float = torch.Tensor.double
        try:
            return layer(x[None], position_embeddings=rotary(x, position))[0]
        finally:
            torch.Tensor.float = float_method

    return layer, run, config.layer_norm_eps, rotary.inv_freq.double(), esm_written_out


def bert(hidden, heads):
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=WIDTH, num_attention_heads=heads, intermediate_size=hidden, layer_norm_eps=1e-12,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, hidden_act="gelu", num_hidden_layers=1,
    )
    config._attn_implementation = "eager"
    layer = BertLayer(config).double()

    def run(x):
        out = layer(x[None])
        return (out[0] if isinstance(out, tuple) else out).reshape(x.shape)

    return layer, run, config.layer_norm_eps, None, bert_written_out


def set_weights(layer, random):
    """Nothing at its usual start: every bias, and every gain's difference from 1, must show."""
    for name, p in layer.named_parameters():
        if "LayerNorm" in name:
            value = single(random, tuple(p.shape), 0.2, 1.0 if name.endswith("weight") else 0.0)
        else:
            value = single(random, tuple(p.shape), 0.25 if p.ndim == 2 else 0.3)
        p.data = torch.tensor(value)


def run_all(f, weights, x, dout, lengths):
    """out and dx (N, C), and the weights' gradients."""
    borders = numpy.cumsum([0, *lengths])
    out, dx, dw = [], [], [torch.zeros_like(p) for p in weights]
    for a, b in zip(borders, borders[1:]):
        part = torch.tensor(x[a:b]).requires_grad_()
        y = f(part)
        gradient = torch.autograd.grad(y, [part, *weights], torch.tensor(dout[a:b]))
        out.append(y.detach())
        dx.append(gradient[0])
        dw = [s + g for s, g in zip(dw, gradient[1:])]
    return torch.cat(out), torch.cat(dx), dw


def make(name, about, build, hidden, heads, lengths, random):
    layer, run, eps, frequency, written_out = build(hidden, heads)
    set_weights(layer, random)
    named = dict(layer.named_parameters())
    weights = list(named.values())
    x, dout = (single(random, (sum(lengths), WIDTH)) for _ in range(2))
    out, dx, dw = run_all(run, weights, x, dout, lengths)
    again = run_all(lambda part: written_out(part, named, heads, eps, frequency), weights, x, dout, lengths)
    for a, b in zip([out, dx, *dw], [again[0], again[1], *again[2]]):
        assert (a - b).abs().max() <= 1e-12 * (1 + b.abs().max()), (a - b).abs().max()

    w = Writer(
        name,
        [about, f"Weights and their gradients (d.NAME) have the published names. Seed {SEED}."],
        [f"torch {torch.__version__}", f"transformers {transformers.__version__}", f"numpy {numpy.__version__}"],
        "encoder_layer.py",
    )
    w.add("heads", "i64", heads)
    w.add("lengths", "i64", lengths)
    w.add("eps", "f64", eps)
    if frequency is not None:
        w.add("rotary_embeddings.inv_freq", "f32", frequency)
    w.add("x", "f32", x)
    w.add("dout", "f32", dout)
    for key, p in named.items():
        w.add(key, "f32", p.detach())
    w.add("out", "f64", out)
    w.add("d.x", "f64", dx)
    for key, g in zip(named, dw):
        w.add(f"d.{key}", "f64", g)
    w.close()


def main():
    random = numpy.random.default_rng(SEED)
    make("esm_layer", "One layer of ESM-2's shape: pre-norm, rotary by halves, gelu with erf.", esm, 40, 2, [3, 1, 17], random)
    make("bert_layer", "One layer of BERT's shape: post-norm, gelu with erf, eps 1e-12.", bert, 36, 4, [1, 12], random)


main()
