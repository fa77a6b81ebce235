#!/usr/bin/env python3
"""Files as other programs write and read them, against ours.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install numpy safetensors h5py
    /tmp/reference/bin/python tests/reference/files.py make
    make build/tests/train/test_safetensors build/tests/train/test_export build/tests/core/test_hdf5
    /tmp/reference/bin/python tests/reference/files.py check build/tests

`make` writes golden/*.safetensors and golden/*.npy: the tests read the former to the bit, and what they write must be the
same bytes. `check` lets the test programs write their samples into a folder and reads those with the three packages; it
also shows the malformed files to the safetensors package and prints where that takes what we refuse, or the reverse.
Only developers who change a format need it; what it makes is committed. Made with safetensors 0.8.0, numpy 2.4.6;
checked with these and h5py 3.16.0.
"""

import ctypes
import pathlib
import subprocess
import sys
import tempfile

import numpy
import safetensors
import safetensors.numpy

FOLDER = pathlib.Path(__file__).parent / "golden"
MASK = 2**64 - 1

# Name, type, the reference's word for it, bits, shape. The same list stands in tests/train/stored.h.
KINDS = [
    ("f32", "F32", "float32", 32, [3, 5]),
    ("f16", "F16", "float16", 16, [7]),
    ("bf16", "BF16", "bfloat16", 16, [2, 2, 2]),
    ("f64", "F64", "float64", 64, [4]),
    ("i64", "I64", "int64", 64, [3]),
    ("i32", "I32", "int32", 32, [2]),
    ("u8", "U8", "uint8", 8, [3]),
    ("empty", "F32", "float32", 32, [0, 3]),
    ("scalar", "F32", "float32", 32, []),
    ('\u00e9 "quoted" \\ name', "F32", "float32", 32, [1]),
    ("bool", "BOOL", "bool", 8, [5]),
]


def number(kind, i, bits):
    """Any bits, NaN and denormals included."""
    word = ((i + 1) * 0x9E3779B97F4A7C15 + (kind + 1) * 0xD1B54A32D192ED03) & MASK
    return word >> (64 - bits)


def data(kind, name, bits, shape):
    n = int(numpy.prod(shape, dtype=int))
    numbers = [number(kind, i, bits) for i in range(n)]
    if name == "BOOL":
        numbers = [x & 1 for x in numbers]
    return b"".join(x.to_bytes(bits // 8, "little") for x in numbers)


def serialize(tensors, notes):
    kept, specs = [], {}
    for k, (name, stored, word, bits, shape) in enumerate(KINDS):
        if name not in tensors:
            continue
        raw = data(k, stored, bits, shape)
        buffer = ctypes.create_string_buffer(raw, max(len(raw), 1))
        kept.append(buffer)
        specs[name] = safetensors.TensorSpec(
            dtype=word, shape=shape, data_ptr=ctypes.addressof(buffer), data_len=len(raw)
        )
    return bytes(safetensors.serialize(specs, notes))


def make():
    FOLDER.mkdir(exist_ok=True)
    names = [k[0] for k in KINDS]
    (FOLDER / "kinds.safetensors").write_bytes(serialize(names, {"format": "pt"}))
    (FOLDER / "written.safetensors").write_bytes(serialize(names[:-1], {"format": "pt"}))
    (FOLDER / "notes.safetensors").write_bytes(serialize(["scalar"], {"a": "\u00e9\n\"x\"", "format": "pt", "z": ""}))
    (FOLDER / "nothing.safetensors").write_bytes(bytes(safetensors.serialize({}, None)))
    for name, array in arrays().items():
        numpy.save(FOLDER / f"{name}.npy", array)
    print(f"{FOLDER}: made with safetensors {safetensors.__version__}, numpy {numpy.__version__}")


def arrays():
    """The same arrays are made in tests/train/test_export.c."""
    return {
        "matrix_f32": numpy.arange(6, dtype="<f4").reshape(2, 3) / 4,
        "vector_f64": numpy.arange(4, dtype="<f8") / 3,
        "scalar_i64": numpy.array(-5, dtype="<i8"),
        "cube_f16": numpy.arange(8, dtype="<f2").reshape(2, 2, 2) / 8,
        "none_u8": numpy.zeros((0, 3), dtype="u1"),
        "vector_i32": numpy.arange(300, dtype="<i4"),
    }


def check_safetensors(folder):
    for k, (name, stored, word, bits, shape) in enumerate(KINDS[:-1]):
        for file in sorted(folder.glob("*.safetensors")):
            for found, tensor in safetensors.deserialize(file.read_bytes()):
                if found != name:
                    continue
                assert tensor["dtype"] == stored and tensor["shape"] == shape, (file, name, tensor["dtype"])
                assert bytes(tensor["data"]) == data(k, stored, bits, shape), (file, name)
                break
    whole = {n for n, _ in safetensors.deserialize((folder / "whole.safetensors").read_bytes())}
    shards = [n for f in folder.glob("shards-*") for n, _ in safetensors.deserialize(f.read_bytes())]
    assert whole == set(shards) == {k[0] for k in KINDS[:-1]} and len(shards) == len(whole)
    with safetensors.safe_open(folder / "whole.safetensors", "np") as f:
        assert f.metadata() == {"format": "pt", "made by": "titin"}, f.metadata()
    print(f"safetensors: {len(whole)} tensors in one file and in {len(list(folder.glob('shards-*.safetensors')))} shards")


def check_corpus(folder):
    differ = 0
    for file in sorted(folder.glob("*.bin")):
        try:
            safetensors.deserialize(file.read_bytes())
            taken = True
        except Exception:
            taken = False
        ours = file.stem.startswith("ok_")
        if taken != ours:
            differ += 1
            print(f"  {file.stem}: we {'take' if ours else 'refuse'} it, the reference {'takes' if taken else 'refuses'} it")
    print(f"corpus: {len(list(folder.glob('*.bin')))} files, {differ} judged otherwise")


def check_npy(folder):
    for name, array in arrays().items():
        read = numpy.load(folder / f"{name}.npy", allow_pickle=False)
        assert read.dtype == array.dtype and read.shape == array.shape and (read == array).all(), name
    print(f"npy: {len(arrays())} arrays")


def check_tables(folder):
    import csv

    expected = [["name", "n", "x"], ['a,"b"', "-3", "0.1"], ["two\nlines", "9223372036854775807", "1e-300"], ["", "0", "-0"],
                ["tab\tand \\", "1", "nan"]]
    with open(folder / "table.csv", newline="", encoding="utf-8") as f:
        assert list(csv.reader(f)) == expected
    lines = (folder / "table.tsv").read_bytes().decode().split("\n")
    back = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\"}

    def plain(cell):
        out, i = "", 0
        while i < len(cell):
            step = 2 if cell[i] == "\\" else 1
            out += back[cell[i : i + 2]] if step == 2 else cell[i]
            i += step
        return out

    assert lines.pop() == "" and [[plain(c) for c in line.split("\t")] for line in lines] == expected
    print("tables: csv and tsv")


def check_hdf5(folder):
    import h5py

    with h5py.File(folder / "sample.h5", "r") as f:
        assert f.attrs["format"] == b"titin-sample" or f.attrs["format"] == "titin-sample"
        assert f.attrs["format_version"] == 1 and f.attrs["rate"] == 0.5
        m = f["maps/attention"]
        assert m.dtype == "<f4" and m.shape == (2, 300, 7) and m.fletcher32 and m.chunks is not None
        expected = numpy.arange(2 * 300 * 7, dtype="<f4").reshape(2, 300, 7) / 8
        assert (m[...] == expected).all()
        assert m.dims[0].keys() == ["layer"] and (m.dims[0][0][...] == [3, 11]).all()
        half = f["half"]
        assert half.dtype == "<f2" and half.compression == "gzip" and half.shuffle and (half[...] == [0.5, 1, 1.5]).all()
        names = f["name"]
        assert names.dtype.kind == "S" and [n.decode() for n in names[...]] == ["Q8WZ42", "\u00e9", ""]
    print(f"hdf5: read by h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}")


def check(programs):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program, child in [
            ("train/test_safetensors", "write"),
            ("train/test_safetensors", "corpus"),
            ("train/test_export", "write"),
            ("core/test_hdf5", "write"),
        ]:
            (folder / "corpus").mkdir(exist_ok=True)
            to = folder / "corpus" if child == "corpus" else folder
            subprocess.run([pathlib.Path(programs) / program, "--child", child, to], check=True)
        check_safetensors(folder)
        check_corpus(folder / "corpus")
        check_npy(folder)
        check_tables(folder)
        check_hdf5(folder)


if __name__ == "__main__":
    make() if sys.argv[1:2] == ["make"] else check(sys.argv[2])
