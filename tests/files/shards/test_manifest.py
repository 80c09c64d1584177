"""A manifest that is damaged or made to do harm, and files that are not those of which it speaks: one sentence each."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from shard_rows import edited, rows

import extremal as ex
from extremal.files import reading
from extremal.files.shards import manifest as format_
from extremal.files.shards.build import build
from extremal.files.shards.manifest import MANIFEST, read_manifest
from extremal.files.shards.mapped import open_shard
from extremal.files.shards.verify import verify_shards


@pytest.fixture
def folder(tmp_path):
    A, y = rows(20)
    build((sp.csr_array(A), y, np.ones(20)), tmp_path / "s", shard_bytes=400)
    assert len(read_manifest(tmp_path / "s").shards) > 2
    return tmp_path / "s"


def refused(call, *words):
    with pytest.raises(ex.InputError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600
    for word in words:
        assert word in text
    return text


def first(item):
    return item["shards"][0]


HOSTILE = {
    "another format": (lambda m: m.update(format="parquet"), "format"),
    "no format": (lambda m: m.pop("format"), "format"),
    "a newer version": (lambda m: m.update(version=2), "newer"),
    "version 0": (lambda m: m.update(version=0), "version"),
    "a kind that is unknown": (lambda m: m.update(kind="coo"), "csr, dense"),
    "negative rows": (lambda m: m.update(n=-5), "`n`"),
    "many rows": (lambda m: m.update(n=10**30), "`n`"),
    "rows as a float": (lambda m: m.update(n=20.0), "`n`"),
    "rows as a bool": (lambda m: m.update(d=True), "`d`"),
    "no columns": (lambda m: m.update(d=0), "`d`"),
    "many columns": (lambda m: m.update(d=2**31), "`d`"),
    "entries that do not add up": (lambda m: m.update(nnz=m["nnz"] + 1), "sum over the shards"),
    "rows that do not add up": (lambda m: m.update(n=m["n"] + 1), "sum over the shards"),
    "rows that were moved": (lambda m: first(m).update(n=first(m)["n"] + 1), "files.starts.bytes"),
    "negative rows of a shard": (lambda m: first(m).update(n=-1), "shards[0].n"),
    "no shards": (lambda m: m.update(shards=[]), "sum over the shards"),
    "shards that are no list": (lambda m: m.update(shards={"0": 1}), "shards"),
    "a shard that is a text": (lambda m: m["shards"].__setitem__(1, "x"), "shards[1]"),
    "integers of another type": (lambda m: m.update(dtype="int8"), "float32, float64"),
    "objects": (lambda m: m.update(dtype="object"), "float32, float64"),
    "a path": (lambda m: first(m).update(name="../../etc/passwd"), "five digits"),
    "an absolute path": (lambda m: first(m).update(name="/etc/00000"), "five digits"),
    "a short name": (lambda m: first(m).update(name="0000"), "five digits"),
    "digits of another script": (lambda m: first(m).update(name="٠٠٠٠٠"), "five digits"),
    "a newline after the name": (lambda m: first(m).update(name="00000\n"), "five digits"),
    "a long name": (lambda m: first(m).update(name="0" * 5000), "five digits"),
    "a number as name": (lambda m: first(m).update(name=0), "name"),
    "one name twice": (lambda m: m["shards"][1].update(name="00000"), "two of one name"),
    "another file": (lambda m: first(m)["files"].update({"../x": {"bytes": 1, "crc32": 1}}), "files"),
    "a file too few": (lambda m: first(m)["files"].pop("weights"), "weights"),
    "negative bytes": (lambda m: first(m)["files"]["values"].update(bytes=-1), "files.values.bytes"),
    "huge bytes": (lambda m: first(m)["files"]["values"].update(bytes=2**62), "files.values.bytes"),
    "a checksum of text": (lambda m: first(m)["files"]["values"].update(crc32="x"), "crc32"),
    "a checksum that is large": (lambda m: first(m)["files"]["values"].update(crc32=2**32), "crc32"),
    "targets that are missing": (lambda m: m.pop("targets"), "targets"),
    "targets without a range": (lambda m: m["targets"].update(least=None), "targets.least"),
    "targets in a wrong range": (lambda m: m["targets"].update(least=7), "greater"),
    "a flag that is a number": (lambda m: m["targets"].update(whole=1), "targets.whole"),
    "classes out of order": (lambda m: m["targets"].update(classes=[1, -1]), "sorted"),
    "classes of two kinds": (lambda m: m["targets"].update(classes=["a", 1]), "or finite numbers"),
    "classes that are not those": (lambda m: m["targets"].update(classes=[-1, 5]), "does not agree"),
    "classes with a NUL": (lambda m: m["targets"].update(classes=["a", "a\0"], least=0), "no NUL"),
    "no classes": (lambda m: m["targets"].update(classes=[]), "classes"),
    "outputs without end": (lambda m: m["targets"].update(outputs=2**40), "outputs"),
    "negative weights": (lambda m: m["weights"].update(least=-1), "non-negative"),
    "weights that are all 0": (lambda m: m["weights"].update(least=0, greatest=0, total=0), "above 0"),
    "weights that are a list": (lambda m: m.update(weights=[1]), "weights"),
    "names too few": (lambda m: m.update(names=["a"]), "7 names"),
    "names that are numbers": (lambda m: m.update(names=[1] * 7), "7 names"),
    "a shuffle of text": (lambda m: m.update(shuffled="yes"), "shuffled"),
    "a negative seed": (lambda m: m.update(seed=-1), "seed"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_manifests(folder, name):
    change, word = HOSTILE[name]
    edited(folder, change)
    refused(lambda: read_manifest(folder), MANIFEST, word)


def test_more_columns_than_the_memory_can_hold_coefficients_for(folder, monkeypatch):
    """Sparse rows may have any number of columns, and a manifest could say 2^31: the directory is refused before a run begins."""
    edited(folder, lambda m: m.update(d=2**31 - 1))
    monkeypatch.setattr(reading, "free_memory", lambda: 10**10)
    refused(lambda: ex.ShardDir(folder), str(folder), "2147483647 features", "memory")
    monkeypatch.setattr(reading, "free_memory", lambda: None)
    assert ex.ShardDir(folder).shape == (20, 2**31 - 1)


TEXTS = {
    "empty": "", "half": '{"format": "extremal-shards", "n"', "a list": "[]", "a number": "3", "null": "null",
    "nan": '{"format": "extremal-shards", "version": NaN}', "deep": "[" * 10**6, "deep objects": '{"a":' * 10**5,
    "digits": '{"format": "extremal-shards", "version": ' + "9" * 10**5 + "}",
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_files_that_are_no_manifest(folder, name):
    (folder / MANIFEST).write_text(TEXTS[name])
    refused(lambda: read_manifest(folder), MANIFEST)


def test_bytes_that_are_no_text(folder):
    (folder / MANIFEST).write_bytes(b"\xff\xfe\x00")
    refused(lambda: read_manifest(folder), MANIFEST)


def test_a_file_without_end(folder, monkeypatch):
    monkeypatch.setattr(format_, "MANIFEST_BYTES", 1000)
    refused(lambda: read_manifest(folder), "1000 bytes")


def test_no_directory(tmp_path):
    refused(lambda: read_manifest(tmp_path / "none"), "no such directory")
    refused(lambda: read_manifest(tmp_path), "holds no file")
    (tmp_path / "file").write_text("")
    refused(lambda: read_manifest(tmp_path / "file"), "it is a file")
    refused(lambda: read_manifest(tmp_path / ("x" * 300)), "name too long")
    for place in (None, 3, b"train", "a\0b"):
        for call in (read_manifest, ex.ShardDir, verify_shards, lambda where: build((np.eye(2), [0, 1]), where)):
            refused(lambda call=call, place=place: call(place), "path", repr(place))


def test_what_was_written_is_read_again(folder):
    held = read_manifest(folder)
    format_.write_manifest(folder, held)
    assert read_manifest(folder) == held
    assert held.first_rows[-1] == held.n == 20


# ---- the files of a shard


def test_arrays_are_mapped_and_cannot_be_written(folder):
    arrays = open_shard(folder, read_manifest(folder), 0)
    assert {type(a) for a in arrays.values()} == {np.ndarray}
    assert not any(a.flags.writeable for a in arrays.values())
    with pytest.raises(ValueError, match="read-only"):
        arrays["values"][0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        arrays["values"].flags.writeable = True


def test_contents_are_not_read(folder):
    """A wrong number is for `verify_shards` to find: opening looks at sizes and headers only."""
    path = folder / "00000.values.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    open_shard(folder, read_manifest(folder), 0)


def header(**changes):
    said = {"descr": "<f8", "fortran_order": False, "shape": (3,)} | changes
    return lambda path: _rewrite(path, repr(said))


def _rewrite(path, text):
    """Another header of the same length."""
    old = path.read_bytes()
    size = int.from_bytes(old[8:10], "little")
    path.write_bytes(old[:10] + text.ljust(size - 1).encode()[: size - 1] + b"\n" + old[10 + size :])


def cut(path, by=1):
    path.write_bytes(path.read_bytes()[:-by])


def pipe(path):
    path.unlink()
    os.mkfifo(path)


DAMAGE = {
    "missing": lambda path: path.unlink(), "empty": lambda path: path.write_bytes(b""), "truncated": cut,
    "a header alone": lambda path: path.write_bytes(path.read_bytes()[:128]),
    "a byte more": lambda path: path.write_bytes(path.read_bytes() + b"0"),
    "other bytes": lambda path: path.write_bytes(bytes(path.stat().st_size)), "another type": header(descr="<f4"),
    "objects": header(descr="|O"), "another shape": header(shape=(2, 5)), "a shape without end": header(shape=(10**18,)),
    "code in the header": lambda path: _rewrite(path, "__import__('os').abort()"), "a pipe": pipe,
    "a folder": lambda path: (path.unlink(), path.mkdir()), "another byte order": header(descr=">f8"),
}  # fmt: skip


@pytest.mark.parametrize("array", ["starts", "columns", "values", "targets", "weights"])
@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files(folder, name, array):
    path = folder / f"00000.{array}.npy"
    DAMAGE[name](path)
    refused(lambda: open_shard(folder, read_manifest(folder), 0), str(path))


def test_rows_in_another_order_are_refused(tmp_path):
    build((np.arange(12.0).reshape(4, 3), np.arange(4)), tmp_path / "s")
    path = tmp_path / "s" / "00000.rows.npy"
    np.save(path, np.asfortranarray(np.load(path)))
    refused(lambda: open_shard(tmp_path / "s", read_manifest(tmp_path / "s"), 0), str(path), "Fortran")


def test_a_shard_of_another_manifest(folder, tmp_path):
    A, y = rows(31, seed=1)
    build((sp.csr_array(A), y, np.ones(31)), tmp_path / "other", shard_bytes=400)
    for path in Path(tmp_path / "other").glob("00000.*"):
        path.replace(folder / path.name)
    refused(lambda: open_shard(folder, read_manifest(folder), 0), "00000.", "manifest")


def test_a_shard_without_entries(tmp_path):
    build((sp.csr_array((5, 3)), np.arange(5)), tmp_path / "s")
    arrays = open_shard(tmp_path / "s", read_manifest(tmp_path / "s"), 0)
    assert arrays["values"].shape == (0,)
    assert arrays["starts"].tolist() == [0] * 6


def test_the_manifest_is_plain_json(folder):
    item = json.loads((folder / MANIFEST).read_text())
    assert (item["format"], item["version"], item["kind"], item["n"], item["d"]) == ("extremal-shards", 1, "csr", 20, 7)
    assert item["targets"] == {"least": -1.0, "greatest": 1.0, "whole": True, "classes": [-1.0, 1.0], "outputs": None}
    assert item["weights"] == {"least": 1.0, "greatest": 1.0, "total": 20.0}
