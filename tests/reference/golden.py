"""Writes golden files: what tests/harness/golden.h reads.

NAME.txt is an index: comments (# how it was made, with which versions), then one line a tensor,

    TENSOR TYPE DIM DIM ...        no DIM: one number

and NAME.bin holds the numbers, row-major and little-endian, one tensor after the other in the order of the index with
nothing between them. TYPE is f64, i64, or f32: numbers that a float holds exactly, so that both builds of the library
start from the same inputs. Results are f64.
"""

import pathlib
import platform

import numpy

FOLDER = pathlib.Path(__file__).parent / "golden"
TYPES = {"f32": "<f4", "f64": "<f8", "i64": "<i8"}


class Writer:
    def __init__(self, name, about, versions, script):
        self.name = name
        made = ", ".join([f"Python {platform.python_version()}"] + versions)
        self.index = [f"# {line}" for line in [*about, f"Made by tests/reference/{script} with {made}."]]
        self.names = set()
        self.bytes = b""

    def add(self, name, kind, values):
        values = numpy.asarray(values)
        stored = values.astype(TYPES[kind])
        assert kind == "f64" or (stored.astype(values.dtype) == values).all(), f"{name} is not exact in {kind}"
        assert numpy.isfinite(stored.astype(float)).all(), f"{name} is not finite"
        assert name not in self.names, f"{name} twice"
        self.names.add(name)
        self.index.append(" ".join([name, kind, *map(str, values.shape)]))
        self.bytes += stored.tobytes()

    def close(self):
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{self.name}.txt").write_text("\n".join(self.index) + "\n")
        (FOLDER / f"{self.name}.bin").write_bytes(self.bytes)
        print(f"golden/{self.name}: {len(self.names)} tensors, {len(self.bytes)} bytes")


def single(random, shape, scale=1.0, centre=0.0):
    """Normal numbers that a float holds, in double."""
    return (centre + scale * random.standard_normal(shape)).astype(numpy.float32).astype(numpy.float64)
