#!/usr/bin/env python3
"""Makes tests/reference/golden/attn_favor.{txt,bin}: attention by random features as published implementations compute it.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install numpy torch jax performer-pytorch==1.1.4
    /tmp/reference/bin/python tests/reference/attn_favor.py

Only developers who change the set need it; what it makes is committed. Everything is in double, one sequence at a time, with
the projection given.

lucidrains: the functions of performer-pytorch themselves; gradients by torch, which are not the derivative of what they return:
they detach the maxima.
google: the formulas of google-research/performer/fast_attention/jax/fast_attention.py (Apache 2.0) written out here, since
it is no package; gradients by jax, through the maxima.
"""

import math

import jax
import jax.numpy as jnp
import numpy
import performer_pytorch.performer_pytorch as lucidrains
import torch

from golden import Writer, single

jax.config.update("jax_enable_x64", True)

SEED = 20261130

# Head width, heads, projections, lengths. The longest has three tiles.
SETS = [(16, 2, 24, [1, 7, 30]), (24, 1, 40, [5, 17]), (64, 1, 80, [12]), (4, 1, 6, [300])]

STABILIZER = 1e-6  # of make_fast_softmax_attention


def google_softmax(data, projection, is_query):
    """(n, D), (m, D) -> (n, m)"""
    normalizer = data.shape[-1] ** -0.25
    dash = normalizer * data @ projection.T
    diagonal = (data**2).sum(-1, keepdims=True) / 2 * normalizer**2
    largest = dash.max(-1, keepdims=True) if is_query else dash.max()
    return projection.shape[0] ** -0.5 * (jnp.exp(dash - diagonal - largest) + STABILIZER)


def google(kernel, q, k, v, projection):
    if kernel == "positive":
        queries, keys, stabilizer = google_softmax(q, projection, True), google_softmax(k, projection, False), STABILIZER
    else:  # make_fast_generalized_attention: no projection, data as they are, no stabilizer
        f = {"relu": jax.nn.relu, "elu1": lambda x: jnp.where(x > 0, x + 1, jnp.exp(x)), "sigmoid": jax.nn.sigmoid}[kernel]
        queries, keys, stabilizer = f(q) + 1e-3, f(k) + 1e-3, 0.0
    denominator = queries @ keys.sum(0)
    denominator = denominator + 2 * stabilizer * (jnp.abs(denominator) <= stabilizer)
    return queries @ (keys.T @ v) / denominator[:, None]


def google_with_gradients(kernel, q, k, v, dout, projection):
    out, back = jax.vjp(lambda *x: google(kernel, *x, projection), q, k, v)
    return [numpy.asarray(x) for x in (out, *back(dout))]


def lucidrains_with_gradients(kernel, q, k, v, dout, projection):
    inputs = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    q, k, v = (x[None, None] for x in inputs)
    projection = torch.tensor(projection)
    if kernel == "positive":
        queries = lucidrains.softmax_kernel(q, projection_matrix=projection, is_query=True)
        keys = lucidrains.softmax_kernel(k, projection_matrix=projection, is_query=False)
    else:
        queries, keys = (lucidrains.generalized_kernel(x, projection_matrix=projection) for x in (q, k))
    out = lucidrains.linear_attention(queries, keys, v)[0, 0]
    out.backward(torch.tensor(dout))
    return [out.detach().numpy(), *(x.grad.numpy() for x in inputs)]


def main():
    random = numpy.random.default_rng(SEED)
    about = [
        "Attention by random features: rows of all sequences one after the other, (N, H D); projection (H, m, D).",
        f"Softmax features are scaled by D^(-1/4); google's generalized ones have neither scale nor projection. Seed {SEED}.",
    ]
    versions = [
        f"jax {jax.__version__}",
        "performer-pytorch 1.1.4",
        f"torch {torch.__version__}",
        f"numpy {numpy.__version__}",
    ]
    w = Writer("attn_favor", about, versions, "attn_favor.py")
    for number, (width, heads, features, lengths) in enumerate(SETS):
        rows = sum(lengths)
        # |x|^2 of about 2: the eps of both count for something.
        q, k = (single(random, (rows, heads * width), math.sqrt(2) * width**-0.25) for _ in range(2))
        v, dout = (single(random, (rows, heads * width)) for _ in range(2))
        projection = single(random, (heads, features, width))
        w.add(f"{number}.heads", "i64", heads)
        w.add(f"{number}.lengths", "i64", lengths)
        for name, x in (("q", q), ("k", k), ("v", v), ("dout", dout), ("projection", projection)):
            w.add(f"{number}.{name}", "f32", x)
        borders = numpy.cumsum([0, *lengths])
        places = [
            (slice(a, b), slice(h * width, (h + 1) * width), h)
            for a, b in zip(borders, borders[1:])
            for h in range(heads)
        ]
        for name, function, kernels in (
            ("google", google_with_gradients, ("positive", "relu", "elu1", "sigmoid")),
            ("lucidrains", lucidrains_with_gradients, ("positive", "relu")),
        ):
            for kernel in kernels:
                parts = {part: numpy.zeros((rows, heads * width)) for part in ("out", "dq", "dk", "dv")}
                for r, c, h in places:
                    result = function(kernel, q[r, c], k[r, c], v[r, c], dout[r, c], projection[h])
                    for x, y in zip(parts.values(), result):
                        x[r, c] = y
                for part, x in parts.items():
                    w.add(f"{number}.{name}.{kernel}.{part}", "f64", x)
    w.close()


main()
