#!/usr/bin/env python3
"""Our event files, read by TensorBoard.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install tensorboard
    make build/tests/train/test_event_file
    /tmp/reference/bin/python tests/reference/event_file.py build/tests/train/test_event_file

Lets the test program write its sample, reads it record by record (with checksums) and through the accumulator that the
TensorBoard server uses, and when all is right keeps the bytes as golden/events-*.tfevents, which the test compares. Only
developers who change the format need it. Made with tensorboard 2.21.0.
"""

import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing import event_accumulator, event_file_loader

GOLDEN = pathlib.Path(__file__).parent / "golden"


def near(a, b):
    assert math.isclose(a, b, rel_tol=1e-7), (a, b)


def check(folder):
    # Without a check of its own the loader would take a wrong checksum for the end of the file: all records are counted.
    first = list(event_file_loader.EventFileLoader(str(folder / "first")).Load())
    assert [e.step for e in first] == [0, 100, 200, 300], first
    assert first[0].file_version == "brain.Event:2"
    assert first[1].wall_time == 1767225700
    tags = [[v.tag for v in e.summary.value] for e in first[1:]]
    assert tags == [["train/loss", "train/lr"]] * 2 + [["train/loss", "train/lr", "val/ppl"]], tags
    second = list(event_file_loader.EventFileLoader(str(folder / "second")).Load())
    assert [e.step for e in second] == [0, 201, 300], second
    assert second[1].session_log.status == 1

    for name in ("first", "second"):
        (folder / name).rename(folder.parent / name)
    seen = event_accumulator.EventAccumulator(str(folder))
    seen.Reload()
    loss = seen.Scalars("train/loss")
    assert [s.step for s in loss] == [100, 200, 300], loss  # the first 300 is void
    for s, value in zip(loss, (2.9, 2.8, 2.5)):
        near(s.value, value)
    near(seen.Scalars("train/lr")[0].value, 3e-4)
    assert seen.Tags()["scalars"] == ["train/loss", "train/lr", "val/ppl"], seen.Tags()


with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary) / "tb"
    folder.mkdir()
    subprocess.run([sys.argv[1], "--child", "sample", folder], check=True)
    check(folder)
    for name in ("first", "second"):
        shutil.copy(pathlib.Path(temporary) / name, GOLDEN / f"events-{name}.tfevents")
print("TensorBoard reads it; tests/reference/golden/events-*.tfevents are its bytes")
