"""Numbers of shards are inspected before their first use: each row once, those of a batch or a sample alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from shard_rows import rows, spoiled

import extremal as ex
from extremal.files.shards import engine as engine_module
from extremal.files.shards import inspection
from extremal.files.shards.inspection import rows_are_sound

N, D = 400, 8
A, Y = rows(N, D)
WEIGHTS = np.random.default_rng(1).random(N)
SPARSE = {
    "a column beyond the last": ("columns", 7, D, "expected columns from 0 to 7, got 8"),
    "a column far out": ("columns", 7, 2**31 - 1, "expected columns from 0 to 7"),
    "a column below 0": ("columns", 7, -1, "expected columns from 0 to 7, got -1"),
    "columns that do not increase": ("columns", 7, 0, "its columns do not increase"),
    "NaN": ("values", 7, np.nan, "expected finite numbers, got nan"),
    "infinity": ("values", 7, -np.inf, "expected finite numbers, got -inf"),
    "a start beyond the entries": ("starts", 7, 2**30, "row 7: its entries begin before the end of the row before"),
    "a start below 0": ("starts", 7, -5, "row 6: its entries begin before the end of the row before"),
    "a first start above 0": ("starts", 0, 1, "must go from 0 to the number of entries"),
    "a last start beyond the entries": ("starts", -1, 2**30, "must go from 0 to the number of entries"),
    "a weight that is NaN": ("weights", 7, np.nan, "row 7: expected finite numbers from 0 on"),
    "a weight below 0": ("weights", 7, -1.0, "row 7: expected finite numbers from 0 on"),
}


def built(folder, kind=sp.csr_array):
    return ex.ShardDir.build((kind(A), Y, WEIGHTS), folder, seed=0, shard_bytes=2**12)


def refused(folder, engine, name, words):
    with pytest.raises(ex.InputError, match=rf"00000\.{name}\.npy: .*{words}"):
        ex.minimize(ex.LinearModel(ex.Logistic(), ex.ShardDir(folder, engine=engine)), ex.L1Ball(1.0))


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("fault", SPARSE)
def test_sparse_rows_that_are_damaged_are_named(fault, engine, tmp_path):
    name, place, value, words = SPARSE[fault]
    built(tmp_path)
    entries = np.load(tmp_path / "00000.columns.npy")
    assert entries[7] > entries[6]  # entry 7 is inside a row
    spoiled(tmp_path, name, place, value)
    refused(tmp_path, engine, name, words)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_dense_rows_that_are_damaged_are_named(engine, tmp_path):
    built(tmp_path, np.array)
    spoiled(tmp_path, "rows", (9, 2), np.nan)
    refused(tmp_path, engine, "rows", "row 9: expected finite numbers, got nan")


@pytest.mark.parametrize("seed", range(10))
def test_compiled_inspection_finds_what_verify_finds(seed, tmp_path):
    data, rng = built(tmp_path), np.random.default_rng(seed)
    whole = {name: np.load(tmp_path / f"00000.{name}.npy") for name in ("starts", "columns", "values")}
    n = len(whole["starts"]) - 1
    for _ in range(20):
        arrays = {name: a.copy() for name, a in whole.items()}
        name = str(rng.choice(list(arrays)))
        a = arrays[name]
        ends = (1, len(a) - 1) if name == "starts" else (0, len(a))  # both ends are inspected apart
        a[rng.integers(*ends)] += rng.choice([-1.0, 1.0, np.inf, np.nan] if name == "values" else [-1, 1, 2, 2**20])
        try:
            inspection.refuse_faults(tmp_path, data.manifest, 0, arrays)
            sound = True
        except ex.InputError:
            sound = False
        assert rows_are_sound(arrays, D, 0, n) == sound
        assert all(rows_are_sound(arrays, D, i, i + 1) for i in range(n)) == sound


def test_rows_are_inspected_once_and_only_if_they_are_read(tmp_path, monkeypatch):
    seen = []

    def counted(arrays, d, first, last):
        seen.append((len(arrays["targets"]), first, last))
        return True

    monkeypatch.setattr(inspection, "INSPECTED", 4)
    monkeypatch.setattr(inspection, "rows_are_sound", counted)
    built(tmp_path)
    data = ex.ShardDir(tmp_path, engine="disk")
    many, x = len(data.manifest.shards), np.ones(D)
    assert data.numbers_of(data.targets).shape == (N,)
    assert not seen  # targets are not rows
    data.dot(x, np.array([3, 1, 401 % N]))
    assert seen == [(data.manifest.shards[0].n, 0, 4)]
    head = data.head(100)
    assert head is not None
    head.dot(x)
    assert sum(last - first for _, first, last in seen) <= 100 + 4 * many
    f = ex.LinearModel(ex.Logistic(), data)
    for _ in range(3):
        f.grad(x)
    assert sum(last - first for _, first, last in seen) == N


def test_shards_that_are_mapped_again_are_not_inspected_again(tmp_path, monkeypatch):
    built(tmp_path)
    data, seen = ex.ShardDir(tmp_path, engine="disk"), []
    monkeypatch.setattr(engine_module, "most_mapped", lambda: 5)
    f = ex.LinearModel(ex.Logistic(), data)
    f.grad(np.ones(D))
    monkeypatch.setattr(inspection, "rows_are_sound", lambda *given: seen.append(given) or True)
    f.grad(np.ones(D))
    assert not seen
