"""The shuffle, the cuts, and builds that do not come to their end."""

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from shard_rows import built, contents, held, rows

import extremal as ex
from extremal.files.outputs import WriteError
from extremal.files.shards import folder, writing
from extremal.files.shards.build import build
from extremal.files.shards.folder import MARKER
from extremal.files.shards.manifest import MANIFEST, read_manifest
from extremal.files.shards.shuffle import shuffle_keys

A, Y = rows(300)
SOURCE = Path(ex.__file__).parents[1]


def cut(X, size):
    return ((X[i : i + size], Y[i : i + size], Y[i : i + size] + 2) for i in range(0, len(Y), size))


def order(directory):
    """Which row of A each row is."""
    return held(directory)[0][:, -1].astype(int) - 1


# ---- the shuffle


@pytest.mark.parametrize("X", [A, sp.csr_array(A)], ids=["dense", "csr"])
def test_neither_chunks_nor_memory_change_a_byte(tmp_path, X):
    first = None
    for i, (size, memory) in enumerate([(300, 2**28), (300, 8000), (1, 8000), (7, 30000), (100, 1)]):
        build(cut(X, size), tmp_path / str(i), seed=3, shard_bytes=4000, max_memory=memory)
        first = first or contents(tmp_path / str(i))
        assert contents(tmp_path / str(i)) == first
    assert len(read_manifest(tmp_path / "0").shards) > 3


@pytest.mark.parametrize("memory", [2**28, 5000])
@pytest.mark.parametrize("X", [A, sp.csr_array(A)], ids=["dense", "csr"])
def test_the_rows_are_permuted_by_their_keys(tmp_path, X, memory):
    _, B, y, w = built((X, Y, Y + 2), tmp_path / "s", shuffle=True, seed=5, max_memory=memory, shard_bytes=3000)
    found = shuffle_keys(5, 0, len(Y)).argsort()
    np.testing.assert_array_equal(B, A[found])
    np.testing.assert_array_equal(y, Y[found])
    np.testing.assert_array_equal(w, Y[found] + 2)
    assert sorted(found) == list(range(len(Y)))


def test_seeds_differ_and_are_told(tmp_path):
    for seed in (0, 1, 2**63 - 1):
        build((A, Y), tmp_path / str(seed), seed=seed)
        assert read_manifest(tmp_path / str(seed)).seed == seed
    assert len({tuple(order(tmp_path / str(seed))) for seed in (0, 1, 2**63 - 1)}) == 3
    for seed in (-1, 2**63, 0.5):
        with pytest.raises(ex.InputError, match="seed"):
            build((A, Y), tmp_path / "s", seed=seed)


def test_every_permutation_of_four_rows_is_as_likely():
    """6000 seeds, 24 permutations: the statistic is chi-squared with 23 degrees of freedom, above 53 once in 3000 times."""
    found = np.array([shuffle_keys(seed, 0, 4).argsort() for seed in range(6000)])
    _, counts = np.unique(found @ [64, 16, 4, 1], return_counts=True)
    assert len(counts) == 24
    assert ((counts - 250) ** 2 / 250).sum() < 53


def test_a_row_goes_anywhere_and_neighbours_part():
    """10 x 10 cells of (old place, new place) of 200 000 rows; 81 degrees of freedom, above 133 once in 4000 times."""
    n = 200_000
    place = np.empty(n, int)
    place[shuffle_keys(0, 0, n).argsort()] = np.arange(n)
    counts = np.histogram2d(np.arange(n), place, bins=10)[0]
    assert ((counts - n / 100) ** 2 / (n / 100)).sum() < 133
    steps = np.diff(place) / n  # of two independent places: their square has mean 1/6 and variance 7/180
    assert abs((steps**2).mean() - 1 / 6) < 5 * (7 / 180 / n) ** 0.5 * 2


def test_keys_are_all_different():
    assert len(np.unique(shuffle_keys(0, 0, 10**6))) == 10**6


def test_rows_in_order(tmp_path):
    manifest, B, _, _ = built((A, Y), tmp_path / "s", shard_bytes=2000)
    np.testing.assert_array_equal(B, A)
    assert not manifest.shuffled
    assert len(manifest.shards) > 5


# ---- the cuts


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("X", [A, sp.csr_array(A)], ids=["dense", "csr"])
def test_shards_are_of_about_the_size_that_is_asked_for(tmp_path, X, shuffle):
    manifest = build((X, Y), tmp_path / "s", shard_bytes=3000, shuffle=shuffle)
    sizes = [sum(mark.bytes for mark in shard.files.values()) - 128 * len(shard.files) for shard in manifest.shards]
    assert max(sizes) < 3000 + 8 * 8 + 4 * 9 + 8
    assert min(sizes[:-1]) > 2000
    assert [shard.name for shard in manifest.shards] == [f"{i:05d}" for i in range(len(sizes))]


def test_one_row_a_shard_and_all_in_one(tmp_path):
    assert len(build((A[:9], Y[:9]), tmp_path / "a", shard_bytes=1, shuffle=False).shards) == 9
    assert len(build((A[:9], Y[:9]), tmp_path / "b", shard_bytes=1).shards) == 9
    assert len(build((A, Y), tmp_path / "c").shards) == 1
    assert len(build((A[:1], Y[:1]), tmp_path / "d").shards) == 1


# ---- the directory


def broken(after=200, error=RuntimeError):
    """A source that fails on its way."""
    yield A[:after], Y[:after]
    raise error("no more")


def test_a_source_that_fails_leaves_nothing(tmp_path):
    for error in (RuntimeError, KeyboardInterrupt, MemoryError):
        with pytest.raises(error):
            build(broken(error=error), tmp_path / "s", max_memory=8000)
        assert not (tmp_path / "s").exists()
    (tmp_path / "s").mkdir()
    with pytest.raises(RuntimeError):
        build(broken(), tmp_path / "s")
    assert os.listdir(tmp_path / "s") == []


def test_a_finished_build_is_kept_unless_it_may_go(tmp_path):
    build((A, Y), tmp_path / "s")
    before = contents(tmp_path / "s")
    with pytest.raises(ex.InputError, match="holds shards of 300 rows already"):
        build((A[:9], Y[:9]), tmp_path / "s")
    with pytest.raises(RuntimeError):
        build(broken(), tmp_path / "s", overwrite=True)
    assert contents(tmp_path / "s") == before
    assert build((A[:9], Y[:9]), tmp_path / "s", overwrite=True).n == 9
    assert len(held(tmp_path / "s")[0]) == 9
    assert len(contents(tmp_path / "s")) == 3


def test_fewer_shards_than_before(tmp_path):
    build((A, Y), tmp_path / "s", shard_bytes=2000)
    build((A[:9], Y[:9]), tmp_path / "s", overwrite=True)
    assert len(contents(tmp_path / "s")) == 3


@pytest.mark.parametrize("name", ["notes.txt", "00000.rows.npy", "rows.npy", ".extremal-work-0123456789abcdef", ".hidden"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_foreign_files_are_not_touched(tmp_path, name, overwrite):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ex.InputError, match="holds something else"):
        build((A, Y), tmp_path, overwrite=overwrite)
    assert contents(tmp_path) == {name: b"mine"}


def test_a_link_in_the_place_of_a_work_folder(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("mine")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / MARKER).touch()
    (tmp_path / "s" / ".extremal-work-0123456789abcdef").symlink_to(tmp_path / "mine")
    with pytest.raises(ex.InputError, match="holds something else"):
        build((A, Y), tmp_path / "s")
    assert (tmp_path / "mine" / "x").exists()


def test_a_manifest_of_someone_else(tmp_path):
    (tmp_path / MANIFEST).write_text('{"name": "an extension of a browser"}')
    with pytest.raises(ex.InputError, match="format"):
        build((A, Y), tmp_path, overwrite=True)
    assert "browser" in (tmp_path / MANIFEST).read_text()


def test_places_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ex.InputError, match="it is a file"):
        build((A, Y), tmp_path / "file")
    with pytest.raises(ex.InputError, match="there is no directory"):
        build((A, Y), tmp_path / "none" / "s")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ((A, Y, np.zeros(300)), "sum that is finite and above 0, got 0"), ((A, Y, np.full(300, 1e308)), "above 0, got inf"),
        ((A[:2], np.array(["a", "a\0"], object)), "row 1: expected a text .without NUL."),
        ((sp.csr_array((1, 2**31)), [1.0]), "row 0: expected 1 to 2147483647 columns, got 2147483648"),
    ],
)  # fmt: skip
def test_rows_that_could_not_be_used(tmp_path, source, words):
    with pytest.raises(ex.InputError, match=words):
        build(source, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_progress_must_be_a_function(tmp_path):
    with pytest.raises(ex.InputError, match="progress"):
        build((A, Y), tmp_path / "s", progress=3)


def test_two_builds_at_once(tmp_path):
    def other():
        yield A, Y
        with pytest.raises(ex.InputError, match="another build is at work there"):
            build((A, Y), tmp_path / "s")
        yield A, Y

    assert build(other(), tmp_path / "s").n == 600


# ---- interrupted builds

CHILD = """
import sys, time, numpy as np
from pathlib import Path
from extremal.files.shards import folder
from extremal.files.shards.build import build

def source():
    for i in range(5):
        yield np.ones((100, 5)), np.ones(100)
    if WHERE == "source":
        wait()

def wait(*arguments):
    print("ready", flush=True)
    time.sleep(60)

WHERE = sys.argv[2]
if WHERE == "publish":
    folder.write_manifest = wait
build(source(), Path(sys.argv[1]), max_memory=8000, shard_bytes=2000, overwrite=True)
"""


def killed(directory, where):
    """A build in another process that is killed in the midst."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(directory), where], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(SOURCE)}
    )
    try:
        assert child.stdout.readline() == b"ready\n"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.parametrize("where", ["source", "publish"])
def test_what_a_killed_build_has_left_is_discarded(tmp_path, where, caplog):
    killed(tmp_path / "s", where)
    assert MARKER in os.listdir(tmp_path / "s")
    with pytest.raises(ex.InputError, match="not a directory of shards"):
        read_manifest(tmp_path / "s")
    with caplog.at_level(logging.INFO, "extremal"):
        build((A, Y), tmp_path / "s")
    assert "an interrupted build" in caplog.text
    assert sorted(contents(tmp_path / "s")) == ["00000.rows.npy", "00000.targets.npy", MANIFEST]
    assert len(held(tmp_path / "s")[0]) == 300


@pytest.mark.parametrize("where", ["source", "publish"])
def test_an_earlier_build_and_one_that_was_killed(tmp_path, where):
    """Until the last moment the earlier one is whole; then there is no manifest, and nothing is taken for whole."""
    build((A, Y), tmp_path / "s")
    killed(tmp_path / "s", where)
    if where == "source":
        assert read_manifest(tmp_path / "s").n == len(held(tmp_path / "s")[0]) == 300
        before = sorted(os.listdir(tmp_path / "s"))
        with pytest.raises(ex.InputError, match="holds shards of 300 rows already"):
            build((A[:9], Y[:9]), tmp_path / "s")
        assert sorted(os.listdir(tmp_path / "s")) == before  # a call that is refused changes nothing
    else:
        assert not (tmp_path / "s" / MANIFEST).exists()
    build((A[:9], Y[:9]), tmp_path / "s", overwrite=True)
    assert len(held(tmp_path / "s")[0]) == 9
    assert len(contents(tmp_path / "s")) == 3


def test_no_manifest_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "write_manifest", lambda *arguments: (_ for _ in ()).throw(WriteError(28, "No space", "m")))
    with pytest.raises(WriteError):
        build((A, Y), tmp_path / "s")
    assert not (tmp_path / "s").exists()


# ---- no space


class Full:
    """A file on a disk with room for so many bytes."""

    left = 0

    def __init__(self, file):
        self.file = file

    @staticmethod
    def opened(*arguments, **options):
        return Full(open(*arguments, **options))

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, data):
        Full.left -= len(data)
        if Full.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(data)


@pytest.mark.parametrize(("room", "name"), [(100, "rows.run"), (30_000, "0000"), (20_000, ".run")])
def test_no_space_left(tmp_path, monkeypatch, room, name):
    """The rows take about 20 kB on their way and again in the end."""
    Full.left = room
    for module in ("writing", "shuffle"):
        monkeypatch.setattr(f"extremal.files.shards.{module}.open", Full.opened, raising=False)
    with pytest.raises(WriteError, match=r"cannot be written .No space left on device") as caught:
        build((A, Y), tmp_path / "s", max_memory=4000, shard_bytes=3000)
    assert name in caught.value.filename
    assert not (tmp_path / "s").exists()


def test_no_space_for_shards_in_order(tmp_path, monkeypatch):
    Full.left = 5000
    monkeypatch.setattr(writing, "open", Full.opened, raising=False)
    with pytest.raises(WriteError, match=r"0000\d\.\w+\.npy: cannot be written"):
        build((A, Y), tmp_path / "s", shuffle=False, shard_bytes=3000)
    assert not (tmp_path / "s").exists()


# ---- memory

BOUNDED = """
import resource, sys, numpy as np
from pathlib import Path
from extremal.files.shards.build import build
import extremal.kernels.full, extremal.kernels.libsvm

build((np.eye(3), [1, 2, 3]), Path(sys.argv[1], "warm"))
held = [line.split() for line in open("/proc/self/status") if line.startswith("VmData")]
resource.setrlimit(resource.RLIMIT_DATA, (int(held[0][1]) * 1024 + 80 * 2**20,) * 2)

def source():
    rng = np.random.default_rng(0)
    for i in range(100):
        yield rng.standard_normal((1000, 125)), np.arange(1000.0 * i, 1000.0 * i + 1000)

try:
    np.ones(2**24)
except MemoryError:
    pass
else:
    raise SystemExit("there is no limit")
manifest = build(source(), Path(sys.argv[1], "s"), max_memory=2**26, shard_bytes=2**24)
print(manifest.n, len(manifest.shards))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of private memory is Linux's")
def test_memory_is_bounded(tmp_path):
    """100 MB of rows with 80 MiB more than at the start, by a limit that the system keeps."""
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, str(tmp_path)], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(SOURCE), "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["100000", "7"]
