#!/usr/bin/env python3
"""Makes tests/reference/golden/attn_favor_google.{txt,bin}: google's attention by trigonometric features, and the relu of
its form for TensorFlow.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install numpy jax
    /tmp/reference/bin/python tests/reference/attn_favor_google.py

Only developers who change the set need it; what it makes is committed. Everything is in double, one sequence at a time, with
the projection given; gradients by jax, through the maxima. The formulas are those of google-research/performer/fast_attention
(Apache 2.0), jax/fast_attention.py and tensorflow/fast_attention.py, written out here since they are no packages.
"""

import math

import jax
import jax.numpy as jnp
import numpy

from golden import Writer, single

jax.config.update("jax_enable_x64", True)

SEED = 20261130
WIDTH, HEADS, FEATURES, LENGTHS = 6, 2, 10, [1, 9, 150]  # the longest has two tiles

STABILIZER = 1e-6  # of make_fast_softmax_attention


def trig_features(data, projection):
    """sincos_softmax_kernel_feature_creator: (n, D), (m, D) -> (n, 2 m)"""
    normalizer = data.shape[-1] ** -0.25
    dash = normalizer * data @ projection.T
    dash = projection.shape[0] ** -0.5 * jnp.concatenate((jnp.cos(dash), jnp.sin(dash)), -1)
    diagonal = (data**2).sum(-1, keepdims=True) / 2 * normalizer**2
    return dash * jnp.exp(diagonal - diagonal.max())


def trig(q, k, v, projection):
    queries, keys = trig_features(q, projection), trig_features(k, projection)
    denominator = queries @ keys.sum(0)
    denominator = denominator + 2 * STABILIZER * (jnp.abs(denominator) <= STABILIZER)
    return queries @ (keys.T @ v) / denominator[:, None]


def tf_relu(q, k, v, projection):
    """relu_kernel_transformation, favor_attention: nothing is added to denominators."""
    ratio = projection.shape[0] ** -0.5
    queries, keys = (jax.nn.relu(ratio * x @ projection.T) + 1e-3 for x in (q, k))
    return queries @ (keys.T @ v) / (queries @ keys.sum(0))[:, None]


def turned(x, projection):
    u = WIDTH**-0.25 * x @ projection.T
    return numpy.concatenate((numpy.cos(u), numpy.sin(u)), -1)


def queries_of_all_lengths(random, k, projection):
    """One row has |x|^2 = 40 and the others less, down to 0; of directions whose denominators are not rounding."""
    n = len(k)
    q = numpy.zeros((n, WIDTH))
    z = (turned(k, projection) * numpy.exp((k**2).sum(-1, keepdims=True) / 2 * WIDTH**-0.5)).sum(0)
    for row in range(n):
        share = 1 - 7 * row % n / n
        while True:
            x = random.standard_normal(WIDTH)
            x *= share * math.sqrt(40 / ((x**2).sum() * WIDTH**-0.5))
            x = x.astype(numpy.float32).astype(numpy.float64)
            features = turned(x, projection)
            if abs(features @ z) > 0.1 * abs(features) @ abs(z):
                q[row] = x
                break
    return q


def main():
    random = numpy.random.default_rng(SEED)
    rows = sum(LENGTHS)
    about = [
        "Attention by random features: rows of all sequences one after the other, (N, H D); projection (H, m, D).",
        f"Queries have |x|^2 from 0 to 40, so that denominators of short ones are raised. Seed {SEED}.",
    ]
    w = Writer("attn_favor_google", about, [f"jax {jax.__version__}", f"numpy {numpy.__version__}"], "attn_favor_google.py")
    k = single(random, (rows, HEADS * WIDTH), 0.8 * WIDTH**-0.25)
    v, dout = (single(random, (rows, HEADS * WIDTH)) for _ in range(2))
    projection = single(random, (HEADS, FEATURES, WIDTH))
    borders = numpy.cumsum([0, *LENGTHS])
    places = [
        (h, (slice(a, b), slice(h * WIDTH, (h + 1) * WIDTH))) for a, b in zip(borders, borders[1:]) for h in range(HEADS)
    ]
    q = numpy.zeros_like(k)
    for h, at in places:
        q[at] = queries_of_all_lengths(random, k[at], projection[h])
    w.add("heads", "i64", HEADS)
    w.add("lengths", "i64", LENGTHS)
    for name, x in (("q", q), ("k", k), ("v", v), ("dout", dout), ("projection", projection)):
        w.add(name, "f32", x)
    for h, at in places:
        denominator = trig_features(q[at], projection[h]) @ trig_features(k[at], projection[h]).sum(0)
        off = numpy.asarray(abs(denominator)) / STABILIZER
        assert (abs(off - 1) > 1e-3).all(), "rounding would decide whether a denominator is raised"
        print(f"sequence of {len(off)}, head {h}: {(off < 1).sum()} denominators are raised")
    for name, function in (("google.trig", trig), ("google-tf.relu", tf_relu)):
        parts = {part: numpy.zeros((rows, HEADS * WIDTH)) for part in ("out", "dq", "dk", "dv")}
        for h, at in places:
            out, back = jax.vjp(lambda *x: function(*x, projection[h]), q[at], k[at], v[at])
            for x, y in zip(parts.values(), (out, *back(dout[at]))):
                x[at] = y
        for part, x in parts.items():
            w.add(f"{name}.{part}", "f64", x)
    w.close()


main()
