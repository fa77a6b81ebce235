#!/usr/bin/env python3
"""Makes tests/reference/golden/attn_nystrom.{txt,bin}: Nystrom attention, forward and backward, in double.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install numpy torch transformers
    /tmp/reference/bin/python tests/reference/attn_nystrom.py

Only developers who change the set need it; what it makes is committed. Sets called hf and mlpen are published functions:
transformers' NystromformerSelfAttention (whose projections give q, k and v as they are), and the formulas of mlpen's
Nystromformer repository written out, with its start of the inverse for all heads together and head by head. They exist for
lengths that the landmarks divide, and are computed one sequence at a time, without padding: within a batch they depend on
neighbours. Sets called ours are other inverses and lengths that leave a remainder, written out by other means than the
library's. In double throughout: PyTorch's f32 gradient of a depthwise kernel is wrong by several per cent on some CPUs.
"""

import math

import numpy
import torch
import transformers
from transformers.models.nystromformer.modeling_nystromformer import NystromformerSelfAttention

from golden import Writer, single

SEED = 20261130
LAMBDA = 1e-3

# what, head width, heads, landmarks, width of the convolution, lengths (all above the landmarks)
SETS = [
    ("hf", 8, 3, 8, 5, [24, 16, 40]),
    ("hf", 16, 2, 4, 33, [20, 8]),
    ("hf", 24, 1, 12, 0, [36]),
    ("mlpen", 8, 3, 8, 5, [24, 16]),
    ("mlpen_by_head", 16, 2, 6, 3, [30, 12]),
    ("ours_cheb", 8, 2, 7, 3, [25, 8, 40]),
    ("ours_exact", 8, 2, 5, 0, [23, 11]),
]


class Given(torch.nn.Module):
    """In the place of a projection: the same values whatever comes in. (n, H D)"""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def forward(self, _):
        return self.values[None]


def huggingface(q, k, v, kernel, heads, landmarks):
    n, width = q.shape
    config = transformers.NystromformerConfig(
        hidden_size=width,
        num_attention_heads=heads,
        num_landmarks=landmarks,
        segment_means_seq_len=n,
        conv_kernel_size=1 if kernel is None else kernel.shape[1],
        attention_probs_dropout_prob=0.0,
    )
    layer = NystromformerSelfAttention(config).double().eval()
    layer.query, layer.key, layer.value = Given(q), Given(k), Given(v)
    if kernel is None:
        layer.conv_kernel_size = None  # the configuration has no way to say so, the code has
        return layer(q[None])[0][0]
    parameters = {"conv.weight": kernel[:, None, :, None]}
    return torch.func.functional_call(layer, parameters, (q[None],))[0][0]


def split(x, heads):
    return x.reshape(x.shape[0], heads, -1).transpose(0, 1)


def convolution(v, kernel):
    """(H, n, D), by the definition"""
    n, width = v.shape[1], kernel.shape[1]
    out = torch.zeros_like(v)
    for j in range(width):
        apart = j - (width - 1) // 2
        first, end = max(0, -apart), min(n, n - apart)
        if first < end:
            moved = torch.nn.functional.pad(v[:, first + apart : end + apart], (0, 0, first, n - end))
            out = out + kernel[:, j, None, None] * moved
    return out


def razavi(a, by_head):
    sums = a.sum(dim=-2)
    largest = sums.max(dim=-1).values[:, None, None] if by_head else sums.max()
    identity = torch.eye(a.shape[-1])
    z = a.transpose(-1, -2) / largest
    for _ in range(6):
        p = a @ z
        z = 0.25 * z @ (13 * identity - p @ (15 * identity - p @ (7 * identity - p)))
    return z


def cheb(a):
    identity = torch.eye(a.shape[-1])
    z = a.transpose(-1, -2) / a.sum(dim=-2).max(dim=-1).values[:, None, None]
    for _ in range(8):
        p = a @ z
        z = z @ (3 * identity - p @ (3 * identity - p))
    return z


def exact(a):
    identity = torch.eye(a.shape[-1])
    return torch.linalg.inv(a.transpose(-1, -2) @ a + LAMBDA * identity) @ a.transpose(-1, -2)


def written_out(q, k, v, kernel, heads, landmarks, inverse):
    n = q.shape[0]
    q, k, v = (split(x, heads) for x in (q, k, v))
    scale = math.sqrt(math.sqrt(q.shape[-1]))
    q, k = q / scale, k / scale
    borders = [j * n // landmarks for j in range(landmarks + 1)]
    means = [torch.stack([x[:, a:b].mean(dim=1) for a, b in zip(borders, borders[1:])], dim=1) for x in (q, k)]
    f = (q @ means[1].transpose(-1, -2)).softmax(-1)
    a = (means[0] @ means[1].transpose(-1, -2)).softmax(-1)
    b = (means[0] @ k.transpose(-1, -2)).softmax(-1)
    out = (f @ inverse(a)) @ (b @ v)
    if kernel is not None:
        out = out + convolution(v, kernel)
    return out.transpose(0, 1).reshape(n, -1)


def attention(what, q, k, v, kernel, dout, heads, landmarks):
    """One sequence: out, dq, dk, dv, and dkernel."""
    values = [torch.tensor(x).requires_grad_() for x in (q, k, v)]
    weight = None if kernel is None else torch.tensor(kernel).requires_grad_()
    inverse = {
        "hf": lambda a: razavi(a, False),
        "mlpen": lambda a: razavi(a, False),
        "mlpen_by_head": lambda a: razavi(a, True),
        "ours_cheb": cheb,
        "ours_exact": exact,
    }[what]
    ways = [lambda: written_out(*values, weight, heads, landmarks, inverse)]
    if what in ("hf", "mlpen"):
        ways.append(lambda: huggingface(*values, weight, heads, landmarks))
    wanted = values if weight is None else [*values, weight]
    results = []
    for way in ways:
        out = way()
        results.append([out, *torch.autograd.grad(out, wanted, torch.tensor(dout))])
    for other in results[1:]:
        for a, b in zip(results[0], other):
            assert (a - b).abs().max() <= 1e-11 * (1 + b.abs().max()), (a - b).abs().max()
    parts = [x.detach().numpy() for x in results[-1 if what == "hf" else 0]]
    return parts if weight is not None else [*parts, None]


def main():
    torch.set_default_dtype(torch.float64)
    random = numpy.random.default_rng(SEED)
    about = [
        "Nystrom attention of sequences computed one at a time: rows of all sequences one after the other, (N, H D).",
        f"dkernel is the sum over a set's sequences. lambda of ours_exact: {LAMBDA}. Seed {SEED}.",
    ]
    versions = [f"torch {torch.__version__}", f"transformers {transformers.__version__}", f"numpy {numpy.__version__}"]
    w = Writer("attn_nystrom", about, versions, "attn_nystrom.py")
    for number, (what, width, heads, landmarks, conv, lengths) in enumerate(SETS):
        rows = sum(lengths)
        # Segments have a mean of their own, so that landmarks differ and A is not close to singular.
        q, k = (single(random, (rows, heads * width)) for _ in range(2))
        at = 0
        for n in lengths:
            segment = numpy.arange(n) * landmarks // n
            q[at : at + n] += single(random, (landmarks, heads * width), 1.5)[segment]
            k[at : at + n] += single(random, (landmarks, heads * width), 1.5)[segment]
            at += n
        q, k = (x.astype(numpy.float32).astype(numpy.float64) for x in (q, k))
        v, dout = (single(random, (rows, heads * width)) for _ in range(2))
        kernel = single(random, (heads, conv), 0.3) if conv else None
        w.add(f"{number}.heads", "i64", heads)
        w.add(f"{number}.landmarks", "i64", landmarks)
        w.add(f"{number}.conv", "i64", conv)
        w.add(f"{number}.lengths", "i64", lengths)
        for name, x in zip(("q", "k", "v", "dout"), (q, k, v, dout)):
            w.add(f"{number}.{name}", "f32", x)
        if conv:
            w.add(f"{number}.kernel", "f32", kernel)
        borders = numpy.cumsum([0, *lengths])
        parts = [
            attention(what, q[a:b], k[a:b], v[a:b], kernel, dout[a:b], heads, landmarks)
            for a, b in zip(borders, borders[1:])
        ]
        for name, pieces in zip(("out", "dq", "dk", "dv"), zip(*parts)):
            w.add(f"{number}.{name}", "f64", numpy.concatenate(pieces))
        if conv:
            w.add(f"{number}.dkernel", "f64", sum(p[4] for p in parts))
    w.close()


main()
