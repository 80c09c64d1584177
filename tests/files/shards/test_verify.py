"""Numbers that no checksum can tell from right ones, and checksums that tell all others."""

import numpy as np
import pytest
import scipy.sparse as sp
from shard_rows import contents, edited, rows, spoiled

import extremal as ex
from extremal.files.shards import verify as verify_
from extremal.files.shards.build import build
from extremal.files.shards.verify import verify_shards


@pytest.fixture(params=[2**18, 7])
def folder(tmp_path, monkeypatch, request):
    monkeypatch.setattr(verify_, "NUMBERS_AT_ONCE", request.param)  # a fault may lie where blocks meet
    A, y = rows(50)
    build((sp.csr_array(A), y, np.ones(50)), tmp_path / "s", shuffle=False, shard_bytes=1500)
    verify_shards(tmp_path / "s")
    return tmp_path / "s"


def starts(folder):
    return np.load(folder / "00000.starts.npy")


def test_every_byte_counts(folder):
    for name, data in contents(folder).items():
        if name == "manifest.json":
            continue
        for place in (len(data) - 1, len(data) // 2, 100):
            (folder / name).write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            with pytest.raises(ex.InputError, match=name):
                verify_shards(folder)
        (folder / name).write_bytes(data)
    verify_shards(folder)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("columns", 7, "columns from 0 to 6"), ("columns", -1, "columns from 0 to 6"), ("columns", 2**31 - 1, "from 0 to 6"),
        ("values", np.nan, "finite"), ("values", np.inf, "finite"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("row", [0, 3, 6])
def test_entries(folder, name, value, words, row):
    path = spoiled(folder, name, starts(folder)[row + 1] - 1, value)
    with pytest.raises(ex.InputError, match=words) as caught:
        verify_shards(folder)
    assert str(path) in str(caught.value)
    assert f"row {row}:" in str(caught.value)


@pytest.mark.parametrize("row", range(8))
def test_columns_that_do_not_increase(folder, row):
    first, last = starts(folder)[row : row + 2]
    columns = np.load(folder / "00000.columns.npy")[first:last]
    if len(columns) < 2:
        pytest.skip("the row has one entry")
    spoiled(folder, "columns", last - 1, columns[-2])
    with pytest.raises(ex.InputError, match=f"00000.columns.npy: row {row}: its columns do not increase"):
        verify_shards(folder)


@pytest.mark.parametrize(("place", "value"), [(0, 1), (3, 10**6), (5, -1), (-1, 0), (7, 0)])
def test_starts(folder, place, value):
    path = spoiled(folder, "starts", place, value)
    with pytest.raises(ex.InputError, match=r"00000.starts.npy") as caught:
        verify_shards(folder)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("value", "words"), [(np.nan, "finite"), (3.0, "classes"), (0.5, "classes")])
def test_targets(folder, value, words):
    spoiled(folder, "targets", 4, value)
    with pytest.raises(ex.InputError, match=f"00000.targets.npy: row 4: .*{words}"):
        verify_shards(folder)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_weights(folder, value):
    spoiled(folder, "weights", 4, value)
    with pytest.raises(ex.InputError, match=r"00000.weights.npy: row 4: .*from 0 on"):
        verify_shards(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["weights"].update(total=51), lambda m: m["weights"].update(least=0.5),
        lambda m: m["targets"].update(classes=[-1, 0, 1]), lambda m: m["targets"].update(whole=False, classes=None),
        lambda m: m["targets"].update(classes=None, greatest=5),
    ],
)  # fmt: skip
def test_facts_that_are_not_those_of_the_rows(folder, change):
    edited(folder, change)
    with pytest.raises(ex.InputError, match=r"manifest.json: .* does not agree"):
        verify_shards(folder)


def test_a_class_that_is_nowhere(tmp_path):
    build((np.eye(3), ["a", "b", "c"]), tmp_path / "s")
    spoiled(tmp_path / "s", "targets", slice(None), 1.0)
    with pytest.raises(ex.InputError, match="does not agree"):
        verify_shards(tmp_path / "s")
    spoiled(tmp_path / "s", "targets", 0, 3.0)
    with pytest.raises(ex.InputError, match="row 0: expected one of the classes"):
        verify_shards(tmp_path / "s")


def test_dense_rows(tmp_path):
    build((np.eye(3), [0.5, 1.5, 2.5]), tmp_path / "s", shuffle=False)
    spoiled(tmp_path / "s", "rows", (2, 1), np.nan)
    with pytest.raises(ex.InputError, match=r"00000.rows.npy: row 2: expected finite numbers, got nan"):
        verify_shards(tmp_path / "s")


def test_progress(folder):
    seen, stages = [], set()
    held = verify_shards(folder, lambda stage, rows, size, total: seen.append((rows, size)) or stages.add((stage, total)))
    assert stages == {("verified", 50)}
    assert [rows for rows, _ in seen] == list(held.first_rows[1:])
    assert seen[-1][1] == sum(mark.bytes for shard in held.shards for mark in shard.files.values())
