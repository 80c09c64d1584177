"""Damaged files of every format: one clear error and exit code 2, never a traceback or a warning.

Seeded damage: cut, overwritten, bits flipped, bytes doubled or moved, numbers of headers edited. `EXTREMAL_FUZZ=20` makes twenty
times as many.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import extremal as ex
from extremal.cli.commands import app
from extremal.files.models import Model, load_model, save_model
from extremal.files.tables import load_table, read_features

MANY = int(os.environ.get("EXTREMAL_FUZZ", "1"))
CASES = 40 * MANY  # of each kind of file
NUMBERS = (b"0", b"-1", b"1e999", b"nan", b"99999999999999999999", b"1000000000000000", b"inf", b"1_0", b"\xff\xfe", b"\x00")


def npy(a) -> bytes:
    held = io.BytesIO()
    np.save(held, a)
    return held.getvalue()


def npz(save=np.savez, **arrays) -> bytes:
    held = io.BytesIO()
    save(held, **arrays)
    return held.getvalue()


def sparse(kind) -> bytes:
    held = io.BytesIO()
    sp.save_npz(held, sp.coo_matrix(A).asformat(kind))
    held.seek(0)
    with np.load(held) as parts:
        return npz(**parts, y=Y)


RNG = np.random.default_rng(0)
A, Y = RNG.standard_normal((12, 3)).round(2), RNG.choice([-1.0, 1.0], 12)
TEXT = "\n".join(f"{y:g} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for y, row in zip(Y, A, strict=True)).encode()
TABLE = ("a,b,c,y\n" + "\n".join(",".join(map(str, [*row, y])) for y, row in zip(Y, A, strict=True))).encode()
FILES = {
    "d.txt": TEXT, "d.gz": gzip.compress(TEXT, mtime=0), "d.bz2": bz2.compress(TEXT), "d.xz": lzma.compress(TEXT), "d.csv": TABLE,
    "d.csv.gz": gzip.compress(TABLE, mtime=0), "d.npy": npy(np.column_stack([A, Y])), "int.npy": npy(np.arange(12).reshape(4, 3)),
    "bool.npy": npy(A > 0), "d.npz": npz(A=A, y=Y), "packed.npz": npz(np.savez_compressed, X=A, y=Y),
    "text.npz": npz(A=A, y=np.where(Y > 0, "yes", "no")),
    **{f"{kind}.npz": sparse(kind) for kind in ("csr", "csc", "coo", "bsr", "dia")},
}  # fmt: skip


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one or two faults."""
    held = bytearray(content)
    for _ in range(int(rng.integers(1, 3))):
        at, kind = int(rng.integers(len(held) or 1)), int(rng.integers(7))
        if kind == 0:
            del held[at:]
        elif kind == 1:
            held[at : at + 1] = bytes([(held[at] if held else 0) ^ (1 << int(rng.integers(8)))])
        elif kind == 2:
            held[at : at + int(rng.integers(1, 9))] = rng.bytes(int(rng.integers(9)))
        elif kind == 3:
            held[at:at] = held[: int(rng.integers(1, 40))]
        elif kind == 4:
            held[at:at] = NUMBERS[int(rng.integers(len(NUMBERS)))]
        elif kind == 5:
            held[at : at + 8] = struct.pack("<q", int(rng.choice([-1, 0, 2**15, 2**31, 2**40, 2**62])))
        else:
            held = bytearray(edited(bytes(held), rng))
    return bytes(held)


def edited(content: bytes, rng: np.random.Generator) -> bytes:
    """A header of numpy that says something else, in as many bytes."""
    start = content.find(b"'shape': (")
    if start < 0:
        return content
    end = content.find(b")", start) % len(content)
    shape = (
        b"1000000000000000,",
        b"-1, 3",
        b"3, 0",
        b"12, 3, 1L",
        b"'a',",
        b"((",
        b"1e3,",
        b"99999999999999999999999, 3",
        b"2, 2",
    )
    types = (b"'|O'  ", b"'<f9' ", b"'<U99'", b"'>f8' ", b"[('a',", b"'<c16'", b"'|V8' ", b"'<M8' ")
    new = content[: start + 10] + shape[int(rng.integers(len(shape)))] + content[end:]
    if rng.random() < 0.5:
        i = new.find(b"'descr': ") + 9
        new = new[:i] + types[int(rng.integers(len(types)))] + new[i + 6 :]
    return new


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXTREMAL_MAX_BYTES", "1e7")


def readable(call, *args) -> bool:
    """Whether the file is still one; otherwise the error is one line that names it."""
    try:
        call(*args)
    except ex.InputError as error:
        said = str(error)
    else:
        return True
    assert said.startswith(str(args[0]))
    assert "\n" not in said
    return False


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_one_clear_error(name):
    """Warnings are errors here, as in all tests."""
    rng, good = np.random.default_rng(sum(name.encode())), 0
    for _ in range(CASES):
        Path(name).write_bytes(damaged(FILES[name], rng))
        good += readable(load_table, name)
        readable(read_features, name, 3)
    assert good < CASES


@pytest.mark.parametrize("name", FILES)
def test_the_command_ends_with_code_2(name):
    rng, refused = np.random.default_rng(len(name)), 0
    for _ in range(4 * MANY):
        Path(name).write_bytes(damaged(FILES[name], rng)[: int(rng.integers(20, 400))])
        result = CliRunner().invoke(app, ["solve", name, "--set", "l1:2", "--loss", "squared", "--max-iter", "2", "--json"])
        assert result.exit_code in (0, 2, 3), result.exception
        refused += result.exit_code == 2
        if result.exit_code == 2:
            assert result.stderr.startswith("error: ")
            assert result.stderr.count("\n") == 1
            assert result.stdout == ""
    assert refused


def test_damaged_models():
    f = ex.LinearModel(ex.Logistic(), A, Y)
    r = ex.minimize(f, ex.L1Ball(1.0), method="frank-wolfe", max_iter=2)
    model = Model(r.x, 0.5, "logistic", "l1:1", "auto", ("a", "b", "c"), np.array(["no", "yes"]), "y")
    save_model("model.npz", model, r)
    content, rng = Path("model.npz").read_bytes(), np.random.default_rng(1)
    for _ in range(3 * CASES):
        Path("bad.npz").write_bytes(damaged(content, rng))
        if readable(load_model, "bad.npz"):
            load_model("bad.npz").predict(A)


@pytest.mark.parametrize("shape", [(10**15,), (10**15, 3), (2**62, 2**62), (3, 2**40), (10**19,), (12, 3, 2)])
@pytest.mark.parametrize("form", ["npy", "npz", "packed"])
def test_a_header_that_lies_about_its_size(shape, form):
    header = str({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    lie = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + A.tobytes()
    if form == "npy":
        Path("d.npy").write_bytes(lie)
    else:
        with zipfile.ZipFile("d.npz", "w", zipfile.ZIP_DEFLATED if form == "packed" else zipfile.ZIP_STORED) as archive:
            archive.writestr("A.npy", lie)
            archive.writestr("y.npy", npy(Y))
    name = "d.npy" if form == "npy" else "d.npz"
    with pytest.raises(ex.InputError, match=rf"^{name}: the file is truncated or damaged \(.*its header announces \d+ numbers"):
        load_table(name)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
@pytest.mark.parametrize("shape", [(10**15, 3), (12, 10**15), (-1, 3), (0, 3), (2**62, 2**62), (12, 3, 1), (12.0, 3.0)])
def test_a_sparse_matrix_that_lies_about_its_sides(kind, shape):
    with np.load(io.BytesIO(FILES[f"{kind}.npz"])) as parts:
        np.savez("d.npz", **dict(parts) | {"shape": np.array(shape)})
    assert not readable(load_table, "d.npz")
    with np.load(io.BytesIO(FILES[f"{kind}.npz"])) as parts:
        np.savez("d.npz", **{k: v for k, v in parts.items() if k != "y"} | {"shape": np.array(shape)})
    np.save("y.npy", Y)
    assert not readable(load_table, "d.npz", "y.npy")


BOMB = 4 * 10**7
PACKERS = {"b.gz": gzip.compress, "b.bz2": bz2.compress, "b.xz": lzma.compress, "b.csv.gz": gzip.compress}


@pytest.mark.parametrize("fill", [b"0", b"\n", b"1,1\n"])
@pytest.mark.parametrize("name", PACKERS)
def test_a_small_file_that_grows_is_stopped_at_the_limit(name, fill):
    Path(name).write_bytes(PACKERS[name](fill * (10**6 // len(fill))) * 2)  # streams one after the other are one
    with pytest.raises(ex.InputError, match=rf"^{name}: it holds more than 1000000 bytes; .*max_bytes=.*EXTREMAL_MAX_BYTES="):
        load_table(name, max_bytes=10**6)


def test_an_archive_that_grows_is_stopped_before_it_is_read():
    np.savez_compressed("b.npz", A=np.zeros((BOMB // 80, 8)), y=np.zeros(BOMB // 80))
    assert Path("b.npz").stat().st_size < BOMB / 500
    with pytest.raises(ex.InputError, match=r"^b.npz: it holds more than 10000000 bytes"):
        load_table("b.npz")  # by the environment variable
    assert load_table("b.npz", max_bytes=BOMB)[0].shape == (BOMB // 80, 8)


def test_the_limit_can_be_raised(monkeypatch):
    Path("d.gz").write_bytes(gzip.compress(TEXT))
    with pytest.raises(ex.InputError, match=r"EXTREMAL_MAX_BYTES=400$"):
        load_table("d.gz", max_bytes=100)
    monkeypatch.setenv("EXTREMAL_MAX_BYTES", "100")
    with pytest.raises(ex.InputError, match=r"EXTREMAL_MAX_BYTES=400$"):
        load_table("d.gz")
    assert load_table("d.gz", max_bytes=len(TEXT))[0].shape == (12, 3)
    monkeypatch.setenv("EXTREMAL_MAX_BYTES", "1e5")
    assert load_table("d.gz")[0].shape == (12, 3)
    for wrong in ("many", "0", "-1", "nan", "1e999"):
        monkeypatch.setenv("EXTREMAL_MAX_BYTES", wrong)
        with pytest.raises(ex.InputError, match="EXTREMAL_MAX_BYTES must be a number of bytes such as 4e9, got"):
            load_table("d.gz")
    with pytest.raises(ex.InputError, match=r"`load\(max_bytes=...\)` must be a whole number"):
        load_table("d.gz", max_bytes=0)


@pytest.mark.parametrize("name", ["a\0b", "a\0b.csv", "a\0b.npy", "a\0b.npz", "n" * 300, "n" * 300 + ".gz"])
def test_names_that_no_file_can_have(name):
    assert not readable(load_table, name)
    assert not readable(read_features, name, 3)
