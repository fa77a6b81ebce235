#!/usr/bin/env python3
"""Makes tests/reference/golden/attn_exact.{txt,bin}: softmax attention by PyTorch, forward and backward, in double.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install numpy torch
    /tmp/reference/bin/python tests/reference/attn_exact.py

Only developers who change the set need it; what it makes is committed. Every sequence is computed on its own, without
padding, by torch.nn.functional.scaled_dot_product_attention, and compared here with a softmax written out.
"""

import math

import numpy
import torch

from golden import Writer, single

SEED = 20261129

# Head width, heads, lengths. 16 and 24 are ESM-2's smallest models' (24 is no power of two), 64 its larger ones'.
SETS = [(16, 2, [1, 7, 4]), (24, 1, [5, 1]), (64, 1, [1, 5]), (16, 1, [27])]


def written_out(q, k, v, causal):
    """(H, n, D) -> (H, n, D)"""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        n = q.shape[-2]
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -math.inf)
    return scores.softmax(-1) @ v


def attention(q, k, v, dout, heads, causal):
    """One sequence, (n, H D) each: out, dq, dk, dv."""
    n = q.shape[0]
    split = [torch.tensor(x).reshape(n, heads, -1).transpose(0, 1).contiguous().requires_grad_() for x in (q, k, v)]
    seed = torch.tensor(dout).reshape(n, heads, -1).transpose(0, 1)
    results = []
    for f in (torch.nn.functional.scaled_dot_product_attention, written_out):
        out = f(*split, is_causal=causal) if f is not written_out else f(*split, causal)
        results.append([out, *torch.autograd.grad(out, split, seed)])
    for a, b in zip(*results):
        assert (a - b).abs().max() <= 1e-13 * (1 + b.abs().max())
    return [x.detach().transpose(0, 1).reshape(n, -1).numpy() for x in results[0]]


def main():
    random = numpy.random.default_rng(SEED)
    about = [
        "Softmax attention of sequences computed one at a time: rows of all sequences one after the other, (N, H D).",
        f"Scores are divided by sqrt(D). full: all keys; causal: keys up to the query's own. Seed {SEED}.",
    ]
    w = Writer("attn_exact", about, [f"torch {torch.__version__}", f"numpy {numpy.__version__}"], "attn_exact.py")
    for number, (width, heads, lengths) in enumerate(SETS):
        rows = sum(lengths)
        # Keys and queries of length about sqrt(2 D): softmax is neither flat nor one key's alone.
        q, k = (single(random, (rows, heads * width), math.sqrt(2)) for _ in range(2))
        v, dout = (single(random, (rows, heads * width)) for _ in range(2))
        w.add(f"{number}.heads", "i64", heads)
        w.add(f"{number}.lengths", "i64", lengths)
        for name, x in zip(("q", "k", "v", "dout"), (q, k, v, dout)):
            w.add(f"{number}.{name}", "f32", x)
        borders = numpy.cumsum([0, *lengths])
        for causal in (False, True):
            parts = [
                attention(q[a:b], k[a:b], v[a:b], dout[a:b], heads, causal) for a, b in zip(borders, borders[1:])
            ]
            for name, pieces in zip(("out", "dq", "dk", "dv"), zip(*parts)):
                w.add(f"{number}.{'causal' if causal else 'full'}.{name}", "f64", numpy.concatenate(pieces))
    w.close()


main()
