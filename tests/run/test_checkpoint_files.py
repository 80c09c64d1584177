"""The file of a checkpoint: refused with the difference, never half written, never more than data."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from interrupted_runs import difference

import extremal as ex
from extremal.run.checkpoints import container, kinds
from extremal.support import whole

RNG = np.random.default_rng(0)
A = RNG.standard_normal((60, 5))
Y = np.sign(A @ [1.0, -1.0, 0.5, 0.3, 0.0] + RNG.standard_normal(60))


def problem(loss=None, rows=A, y=Y, weights=None):
    return ex.LinearModel(loss or ex.Logistic(), rows, y, weights)


def call(file, f=None, C=None, method="away-fw", **options):
    options = {"max_iter": 6, "tol": 0, "atol": 0} | options
    return ex.minimize(f or problem(), C or ex.L1Ball(2.0), method, checkpoint=file, **options)


@pytest.fixture
def file(tmp_path):
    """A checkpoint of a finished run."""
    call(tmp_path / "run.ckpt")
    return tmp_path / "run.ckpt"


def changed(a, *place):
    a = a.copy()
    a[place] = np.nextafter(a[place], 9.0)
    return a


# other problems


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"f": problem(rows=changed(A, 3, 2))}, "`f.data.*` was 60 x 5 numbers of float64, checksum .* there, and is 60 x 5"),
        ({"f": problem(rows=np.asfortranarray(A).astype(np.float32))}, r"`f.* was .*float64"),
        ({"f": problem(y=-Y)}, "`f.y.*` was 60 numbers"),
        ({"f": problem(ex.Huber(0.5), y=Y)}, "`f.*` was .*Logistic there, and is .*Huber now"),
        ({"f": problem(weights=np.linspace(1, 2, 60))}, "`f.* was"),
        ({"C": ex.L1Ball(3.0)}, "`C.radius` was 2.0 there, and is 3.0 now"),
        ({"C": ex.L2Ball(2.0)}, "`C` was .*L1Ball there, and is .*L2Ball now"),
        ({"method": "pairwise-fw"}, "`method.move` was .*Away there, and is .*Pairwise now"),
        ({"method": ex.AwayFW(lazy=True)}, "`method.move.lazy` was False there, and is True now"),
        ({"seed": 1}, "`seed` was '?0'? there, and is '?1'? now"),
        ({"x0": np.array([1.0, 0, 0, 0, 0])}, "`x0` was 5 numbers of float64"),
        ({"record": 1.0}, "`record` was None there, and is 1.0 now"),
        ({"max_iter": 5}, "`max_iter` was 6 there, and is 5 now; it may be raised only"),
        ({"max_grads": 500}, "`max_grads` was None there, and is 500 now; it may be raised only"),
    ],
)
def test_another_problem_is_refused_with_the_difference(file, other, words):
    before = file.read_bytes()
    with pytest.raises(
        ex.InputError, match=rf"`minimize\(checkpoint=...\)`: .*run.ckpt is the checkpoint of another run: {words}"
    ):
        call(file, **other)
    assert file.read_bytes() == before


def test_another_call_is_refused(file):
    with pytest.raises(ex.InputError, match="run 1 was a call of `minimize`, and is one of `path` now"):
        ex.path(problem(), [ex.L1Ball(2.0)], "away-fw", max_iter=6, tol=0, atol=0, checkpoint=file)


def test_a_path_keeps_its_budget(tmp_path):
    def path(most):
        return ex.path(problem(), [ex.L1Ball(2.0)], max_iter=most, checkpoint=tmp_path / "p.ckpt")

    path(2)
    with pytest.raises(ex.InputError, match="its tolerances or budgets were others; a path keeps them"):
        path(3)


def test_what_a_run_leaves_in_its_problem_is_no_difference(tmp_path):
    """Caches of the data, of the set and of the model do not count."""
    f, C = problem(), ex.Polytope(np.ones((1, 5)), [1.0], bounds=(-1, 1))
    for name, method in enumerate(("frank-wolfe", "newton-fw", "saga-sarah-fw")):
        first = call(tmp_path / f"{name}.ckpt", f, C, method)
        assert difference(first, call(tmp_path / f"{name}.ckpt", f, C, method)) == []
        fresh = problem(), ex.Polytope(np.ones((1, 5)), [1.0], bounds=(-1, 1))
        assert difference(first, call(tmp_path / f"{name}.ckpt", *fresh, method)) == []


# damage


@pytest.mark.parametrize("harm", ["cut", "empty", "flipped", "longer", "text"])
def test_a_damaged_file_without_another_is_refused(file, harm):
    held = file.read_bytes()
    harmed = {
        "cut": held[:-7], "empty": b"", "flipped": held[:200] + bytes([held[200] ^ 4]) + held[201:], "longer": held + b"x",
        "text": b"my notes",
    }  # fmt: skip
    file.write_bytes(harmed[harm])
    with pytest.raises(ex.InputError, match=r"run.ckpt is damaged: .*; remove it, and the run begins anew"):
        call(file)
    assert file.read_bytes() == harmed[harm]


@pytest.mark.parametrize("at", [0, 5, 21, 30, 100, 0.3, 0.6, 0.9, -33, -1])
def test_each_byte_counts(tmp_path, caplog, at):
    """One byte of the file is another: the run goes on from the file before, with the same bits, and says so."""
    file = tmp_path / "run.ckpt"
    expected = call(file, checkpoint_seconds=0)
    held = bytearray(file.read_bytes())
    held[int(at * len(held)) if isinstance(at, float) else at] ^= 16
    file.write_bytes(held)
    with caplog.at_level(logging.WARNING, "extremal"):
        found = call(file, checkpoint_seconds=0)
    assert difference(expected, found) == ["why"]
    assert "run.ckpt is damaged" in caplog.text
    assert difference(expected, call(file)) in ([], ["why"])


def test_a_kill_between_two_names_goes_on_from_the_one_before(tmp_path):
    file = tmp_path / "run.ckpt"
    expected = call(file, checkpoint_seconds=0)
    file.unlink()
    assert difference(expected, call(file, checkpoint_seconds=0)) == []


# crafted files


def forged(file, change):
    """The same file with another header, and a checksum that fits."""
    held = file.read_bytes()
    start = len(container.BEGINNING) + container.SIZES
    size = int.from_bytes(held[start - 8 : start], "little")
    header = json.loads(held[start : start + size])
    change(header)
    text = json.dumps(header).encode()
    body = held[: start - 8] + len(text).to_bytes(8, "little") + text + held[start + size : -container.DIGEST]
    file.write_bytes(body + container.Hash(body, digest_size=container.DIGEST).digest())


def every_object(name):
    def change(header):
        for node in header["nodes"]:
            if node[0] == "object":
                node[1] = name

    return change


@pytest.mark.parametrize(
    "name",
    ["os:system", "extremal.os:system", "run.driver:Driver", "own os:system", "builtins:eval", "support.lazy:imported", "x"],
)
def test_a_class_outside_of_the_table_is_refused_and_not_imported(file, monkeypatch, name):
    forged(file, every_object(name))
    asked = []
    monkeypatch.setattr(kinds, "import_module", lambda module: asked.append(module))
    with pytest.raises(ex.InputError, match=r"it holds an object of .*, which is no kind of state of this library"):
        call(file)
    assert all(module.removeprefix("extremal.") in kinds.STATES for module in asked)


def words(word):
    return lambda header: [node.__setitem__(slice(None), [word, 10**9, [1]]) for node in header["nodes"] if node[0] == "object"]


def of_arrays(*rest):
    def change(header):
        for node in header["nodes"]:
            if node[0] == "array":
                node[2] = list(rest)

    return change


def attribute(name):
    def change(header):
        for node in header["nodes"]:
            if node[0] == "object":
                node += [name, 1]

    return change


@pytest.mark.parametrize(
    "change",
    [
        words("system"), words("given"), words("part"), attribute("__class__"), attribute("a b"),
        of_arrays("<f8", [2**40], [0]), of_arrays("<f8", [-1], [0]), of_arrays("|O", [5], [0]), of_arrays("V8", [5], [0]),
        of_arrays("<f8", [5], [3]),
        lambda header: header.update(nodes=[]),
        lambda header: header["runs"][0].pop("problem"),
        lambda header: header["runs"][0].update(state=[10**6], result=None, tol=[1, 1]),
    ],
)  # fmt: skip
def test_a_crafted_file_is_refused_in_one_sentence(file, change):
    forged(file, change)
    with pytest.raises(ex.InputError, match=r"^`minimize\(checkpoint=...\)`: ") as refusal:
        call(file)
    assert "\n" not in str(refusal.value)


def test_deep_nesting_is_damage(file):
    start = len(container.BEGINNING) + container.SIZES
    text = b"[" * 10**6
    body = file.read_bytes()[: start - 8] + len(text).to_bytes(8, "little") + text
    file.write_bytes(body + container.Hash(body, digest_size=container.DIGEST).digest())
    with pytest.raises(ex.InputError, match="is damaged: its header cannot be read"):
        call(file)


def test_a_newer_format_is_refused(file):
    held = bytearray(file.read_bytes())
    held[len(container.BEGINNING)] = 2
    body = bytes(held[: -container.DIGEST])
    file.write_bytes(body + container.Hash(body, digest_size=container.DIGEST).digest())
    with pytest.raises(ex.InputError, match=r"run.ckpt has format 2; this version of extremal reads 1"):
        call(file)


def test_another_version_is_refused(file):
    forged(file, lambda header: header.update(extremal="99.0"))
    with pytest.raises(ex.InputError, match=f"it was written by version 99.0 of extremal, and this is {ex.__version__}"):
        call(file)


# places


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("missing/run.ckpt", "cannot be written, there is no directory"),
        ("", "must be a path such as"),
        (3, "must be a path such as"),
        (".", "cannot be written, it is not a file"),
    ],
)
def test_places_that_cannot_be_written_are_refused_before_the_run(tmp_path, place, words):
    seen = []
    where = place if not place or isinstance(place, int) else tmp_path / place
    with pytest.raises(ex.InputError, match=words):
        call(where, callback=seen.append)
    assert seen == []


def test_seconds_are_checked(tmp_path):
    with pytest.raises(ex.InputError, match=r"`minimize\(checkpoint_seconds=...\)` must be a finite number of at least 0"):
        call(tmp_path / "run.ckpt", checkpoint_seconds=-1)


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    file, written = tmp_path / "run.ckpt", []

    def full(handle):
        written.append(handle)
        if len(written) > 6:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole.os, "fsync", full)
    with pytest.raises(whole.WriteError, match=r"run.ckpt: cannot be written \(No space left on device\)"):
        call(file, checkpoint_seconds=0)
    assert {path.name for path in tmp_path.iterdir()} <= {"run.ckpt", "run.ckpt.previous"}
    monkeypatch.undo()
    expected = ex.minimize(problem(), ex.L1Ball(2.0), "away-fw", max_iter=6, tol=0, atol=0)
    assert difference(expected, call(file)) == []


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "run.ckpt"
    link.symlink_to(tmp_path / "disk" / "real.ckpt")
    first = call(link)
    assert link.is_symlink()
    assert difference(first, call(link)) == []


def test_it_is_read_in_a_fresh_process(file):
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "import test_checkpoint_files as t, pathlib\n"
        f"r = t.call(pathlib.Path({str(file)!r}))\n"
        "print(r.x.tobytes().hex(), r.n_iter, 'pickle' in sys.modules and 'unpickled' in globals())"
    )
    here = os.path.dirname(__file__)
    ran = subprocess.run(
        [sys.executable, "-c", code, here, os.path.join(here, "../truths")], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == [call(file).x.tobytes().hex(), "6", "False"]
