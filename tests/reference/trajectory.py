#!/usr/bin/env python3
"""Makes tests/reference/golden/trajectory_*.{txt,bin}: twenty optimizer steps of small models by PyTorch, in double.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install numpy torch transformers
    /tmp/reference/bin/python tests/reference/trajectory.py

Only developers who change model, optimizer or schedule need it; what it makes is committed. The models are transformers'
EsmForMaskedLM and BertForMaskedLM, the optimizer torch.optim.AdamW with torch.nn.utils.clip_grad_norm_, the schedule
torch.optim.lr_scheduler's. Weights, batches and masks are given; the loss of a step is the sum over its targets divided by
their number, over all micro-batches together. Every sequence is computed on its own, without padding.

transformers rounds to float in places even in a model in double; while it runs here, Tensor.float is Tensor.double.
"""

import copy

import numpy
import torch
import transformers

from golden import Writer, single

SEED = 20261130
STEPS, WARMUP = 20, 5
CLS, EOS, MASK, RESIDUES = 0, 2, 32, range(4, 24)
WIDTH, HEADS, HIDDEN, LAYERS, POSITIONS = 16, 2, 24, 2, 40
FLOOR, DECAY, BETAS, EPS = 0.1, 0.1, (0.9, 0.98), 1e-6

COMMON = {
    "vocab_size": 33, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": HIDDEN,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "pad_token_id": 1, "attn_implementation": "eager",
}


def esm():
    config = transformers.EsmConfig(
        layer_norm_eps=1e-5, position_embedding_type="rotary", token_dropout=True, mask_token_id=MASK, hidden_act="gelu",
        emb_layer_norm_before=False, max_position_embeddings=POSITIONS, **COMMON,
    )
    model = transformers.EsmForMaskedLM(config).double()
    assert model.lm_head.decoder.weight is model.esm.embeddings.word_embeddings.weight
    unused = ["esm.contact_head.", "position_embeddings"]
    frequencies = next(b for n, b in model.named_buffers() if n.endswith("inv_freq"))
    return model, unused, frequencies, None


def bert():
    config = transformers.BertConfig(
        layer_norm_eps=1e-12, hidden_act="gelu", max_position_embeddings=POSITIONS, type_vocab_size=2, tie_word_embeddings=False,
        **COMMON,
    )
    model = transformers.BertForMaskedLM(config).double()
    assert model.cls.predictions.decoder.weight is not model.bert.embeddings.word_embeddings.weight
    types = model.bert.embeddings.token_type_embeddings.weight
    types.data = torch.tensor(numpy.random.default_rng(SEED).integers(-512, 512, tuple(types.shape)) / 1024)
    unused = ["token_type_embeddings"]
    if model.cls.predictions.bias is not model.cls.predictions.decoder.bias:
        unused.append("cls.predictions.bias")
    return model, unused, None, types[0].detach()


def used_parameters(model, unused):
    """By name; nothing at its usual start: every bias, and every gain's difference from 1, must show."""
    named = {}
    for name, p in model.named_parameters():
        if any(part in name for part in unused):
            p.requires_grad_(False)
        else:
            named[name] = p
    return named


def is_norm(name):
    return "LayerNorm" in name or "layer_norm" in name


def set_weights(named, random):
    for name, p in named.items():
        if is_norm(name):
            value = single(random, tuple(p.shape), 0.2, 1.0 if name.endswith("weight") else 0.0)
        else:
            value = single(random, tuple(p.shape), 0.25 if p.ndim == 2 else 0.3)
        p.data = torch.tensor(value)


def batch(random, shards):
    """Of one step: a list of sequences for each shard, unequal in number, length and targets."""
    made = []
    for shard in range(shards):
        sequences = []
        for _ in range(1 + (shard + 1) % 3):
            n = int(random.integers(4, 13 + 8 * (shard == shards - 1)))
            tokens = numpy.array([CLS, *random.choice(RESIDUES, n), EOS])
            n_pick = int(random.integers(1, 2 + n // 3))
            picks = numpy.sort(1 + random.choice(n, n_pick, replace=False))
            targets = tokens[picks].copy()
            for at in picks:
                kind = random.random()
                if kind < 0.8:
                    tokens[at] = MASK
                elif kind < 0.9:
                    tokens[at] = random.choice(RESIDUES)
            sequences.append((tokens, picks, targets))
        made.append(sequences)
    return made


def loss_of(model, shards):
    """Sum and count over all of a step."""
    total, count = torch.zeros((), dtype=torch.float64), 0
    for sequences in shards:
        for tokens, picks, targets in sequences:
            logits = model(input_ids=torch.tensor(tokens)[None]).logits[0]
            total = total + torch.nn.functional.cross_entropy(logits[picks], torch.tensor(targets), reduction="sum")
            count += len(picks)
    return total, count


def schedule_of(optimizer, kind, lr):
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / WARMUP, 1, WARMUP - 1)
    if kind == "linear":
        fall = torch.optim.lr_scheduler.LinearLR(optimizer, 1, FLOOR, STEPS - WARMUP)
    else:
        fall = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS - WARMUP, FLOOR * lr)
    return torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, fall], [WARMUP])


def decays(name, p):
    return p.ndim == 2 and "embeddings" not in name


def train(model, named, steps, kind, lr, clip):
    groups = [
        {"params": [p for n, p in named.items() if decays(n, p)], "weight_decay": DECAY},
        {"params": [p for n, p in named.items() if not decays(n, p)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=lr, betas=BETAS, eps=EPS)
    schedule = schedule_of(optimizer, kind, lr)
    losses, norms, rates = [], [], []
    for shards in steps:
        optimizer.zero_grad()
        total, count = loss_of(model, shards)
        (total / count).backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(list(named.values()), clip)))
        losses.append(float(total.detach()) / count)
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return optimizer, losses, norms, rates


def add_batches(w, steps):
    """Sequences one after the other; shard and step say where each belongs, picks count from its first token."""
    flat = [(s, k, q) for s, shards in enumerate(steps) for k, sequences in enumerate(shards) for q in sequences]
    w.add("sequence.step", "i64", [s for s, _, _ in flat])
    w.add("sequence.shard", "i64", [k for _, k, _ in flat])
    w.add("sequence.tokens", "i64", [len(q[0]) for _, _, q in flat])
    w.add("sequence.picks", "i64", [len(q[1]) for _, _, q in flat])
    w.add("token", "i64", numpy.concatenate([q[0] for _, _, q in flat]))
    w.add("pick", "i64", numpy.concatenate([q[1] for _, _, q in flat]))
    w.add("target", "i64", numpy.concatenate([q[2] for _, _, q in flat]))


def in_positions(name, p, types):
    """A table of positions with row 0 of the token types in it, as a model without such a table has it."""
    return p.detach() if types is None or "position_embeddings" not in name else p.detach() + types


def make(name, about, build, shards, kind, lr, clip):
    random = numpy.random.default_rng(SEED)
    model, unused, frequencies, types = build()
    model.eval()  # no dropout anywhere
    named = used_parameters(model, unused)
    set_weights(named, random)
    first = copy.deepcopy({n: p.detach() for n, p in named.items()})
    for n, p in named.items():
        if types is not None and "position_embeddings" in n:
            p.data -= types  # exact: types are multiples of 1/1024
    steps = [batch(random, shards) for _ in range(STEPS)]
    float_method = torch.Tensor.float
    torch.Tensor.float = torch.Tensor.double
    try:
        optimizer, losses, norms, rates = train(model, named, steps, kind, lr, clip)
    finally:
        torch.Tensor.float = float_method
    clipped = sum(n > clip for n in norms)
    assert 3 <= clipped <= STEPS - 3, (clipped, norms)

    w = Writer(
        name,
        [*about, f"Weights have the published names. {clipped} of {STEPS} steps are clipped. Seed {SEED}."],
        [f"torch {torch.__version__}", f"transformers {transformers.__version__}", f"numpy {numpy.__version__}"],
        "trajectory.py",
    )
    for key, value in {
        "lr": lr, "clip": clip, "decay": DECAY, "beta1": BETAS[0], "beta2": BETAS[1], "eps": EPS, "floor": FLOOR,
    }.items():
        w.add(f"optim.{key}", "f64", value)
    w.add("shards", "i64", shards)
    w.add("warmup", "i64", WARMUP)
    add_batches(w, steps)
    w.add("loss", "f64", losses)
    w.add("norm", "f64", norms)
    w.add("rate", "f64", rates)
    if frequencies is not None:
        w.add("inv_freq", "f32", frequencies.double())
    for n, p in named.items():
        w.add(f"first.{n}", "f32", first[n])
        w.add(f"last.{n}", "f64", in_positions(n, p, types))
        w.add(f"m.{n}", "f64", optimizer.state[p]["exp_avg"])
        w.add(f"v.{n}", "f64", optimizer.state[p]["exp_avg_sq"])
    w.close()


def main():
    esm_shape = "ESM-2's shape: pre-norm, rotary, tied head, token dropout."
    make("trajectory_esm", [esm_shape, "One batch a step, linear schedule."], esm, 1, "linear", 2e-3, 4.0)
    make("trajectory_shards", [esm_shape, "Four unequal micro-batches a step, cosine schedule."], esm, 4, "cosine", 2e-3, 2.0)
    make(
        "trajectory_bert", ["BERT's shape: post-norm, learned positions, free decoder; row 0 of its token types is in the positions here.", "Two micro-batches a step, cosine schedule."],
        bert, 2, "cosine", 2e-3, 2.7,
    )


main()
