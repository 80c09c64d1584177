"""Parts of rows that are not in random order are found by the first look, and random ones are not."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.data.parts import counting_rows
from extremal.objectives import alike
from extremal.objectives.alike import between_ratio, between_sums, check_held, most_likely
from extremal.run.result import Calls

N, D = 2000, 20


def _rows(kind="dense"):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((N, D))
    if kind == "sparse":  # one entry in each of four fields
        A = np.zeros((N, D))
        A[np.arange(N)[:, None], (5 * rng.random((N, 4)) ** 2).astype(int) + 5 * np.arange(4)] = 1.0
    return A, np.where(A[:, 0] + rng.logistic(size=N) > 0, 1.0, -1.0)


def built(folder, A, y, shuffle):
    ex.ShardDir.build((A, y), folder, shuffle=shuffle, seed=0, shard_bytes=2**15)
    return ex.ShardDir(folder, engine="disk")


LOOKS = {
    "gradient": lambda data: ex.LinearModel(ex.Logistic(), data).grad(np.full(D, 0.1)),
    "intercept": lambda data: ex.InterceptModel(ex.Logistic(), data).grad(np.full(D, 0.1)),
    "table": lambda data: ex.LinearModel(ex.Logistic(), data).derivs(np.zeros(D)),
    "run": lambda data: ex.minimize(ex.LinearModel(ex.Logistic(), data), ex.L1Ball(1.0)),
}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("look", LOOKS)
def test_rows_that_are_sorted_by_a_feature_are_warned_of_once(look, kind, tmp_path, caplog):
    A, y = _rows(kind)
    order = np.argsort(A[:, 7] if kind == "dense" else A[:, 5:10] @ np.arange(5), kind="stable")  # a feature; a field
    with caplog.at_level(logging.WARNING, "extremal"):
        data = built(tmp_path, sp.csr_array(A[order]) if kind == "sparse" else A[order], y[order], shuffle=False)
        for again in (data, data, ex.ShardDir(tmp_path)):
            LOOKS[look](again)
    said = [line for line in caplog.messages if "the rows of its shards differ" in line]
    assert len(said) == 1
    assert str(tmp_path) in said[0]
    assert "shuffle=True" in said[0]
    assert not any("the targets of its shards" in line for line in caplog.messages)
    assert sum("were not shuffled" in line for line in caplog.messages) == 1


def test_targets_that_are_sorted_are_warned_of(tmp_path, caplog):
    A, y = _rows()
    order = np.argsort(y, kind="stable")
    data = built(tmp_path, A[order], y[order], shuffle=False)
    with caplog.at_level(logging.WARNING, "extremal"):
        assert check_held(data, ex.Logistic(), data.targets) > most_likely(len(data.manifest.shards))
    assert "the targets of its shards differ" in caplog.text


def test_targets_of_one_number_in_each_part_are_unlike():
    parts = [between_sums(np.full((1, 50), value)) for value in (1.0, 1.0, -1.0)]
    same = [between_sums(np.full((1, 50), 0.1)) for _ in range(3)]
    assert between_ratio(*(sum(item) for item in zip(*parts, strict=True))) > most_likely(3)
    assert between_ratio(*(sum(item) for item in zip(*same, strict=True))) == 1


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("parts", [2, 5, 40])
def test_random_orders_are_never_warned_of(kind, parts):
    """Over 200 orders; the largest ratio stays well below the limit."""
    A, y = _rows(kind)
    t = np.vstack([alike.random_directions(D) @ A.T, y])
    ratios = []
    for seed in range(200):
        order = np.random.default_rng(seed).permutation(N)
        sums = [between_sums(t[:, some]) for some in np.array_split(order, parts)]
        ratios.append(between_ratio(*(sum(item) for item in zip(*sums, strict=True))))
    assert max(ratios) < 0.6 * most_likely(parts)


def test_shuffled_rows_are_quiet_and_results_the_same(tmp_path, caplog, monkeypatch):
    A, y = _rows()
    order = np.argsort(A[:, 7])
    with caplog.at_level(logging.WARNING, "extremal"):
        data = built(tmp_path, A[order], y[order], shuffle=True)
        calls = Calls()
        first = counting_rows(calls, ex.LinearModel(ex.Logistic(), data).value_grad_margins, np.full(D, 0.1))
        assert calls.rows == N  # no extra read
        near = ex.minimize(ex.LinearModel(ex.Logistic(), data), ex.L1Ball(1.0))
    assert not caplog.messages
    monkeypatch.setattr("extremal.objectives.linear.first_total", lambda data, work: data.parts.total(work))
    data = ex.ShardDir(tmp_path, engine="disk")
    plain = ex.LinearModel(ex.Logistic(), data).value_grad_margins(np.full(D, 0.1))
    assert [np.asarray(a).tobytes() for a in first] == [np.asarray(a).tobytes() for a in plain]
    assert ex.minimize(ex.LinearModel(ex.Logistic(), data), ex.L1Ball(1.0)).x.tobytes() == near.x.tobytes()


def test_targets_are_checked_once_for_each_loss(tmp_path, monkeypatch):
    A, y = _rows()
    data, asked = built(tmp_path, A, y, shuffle=True), []
    check = alike.check_targets
    monkeypatch.setattr(alike, "check_targets", lambda *given: asked.append(given[0]) or check(*given))
    for loss in (ex.Logistic(), ex.Logistic(), ex.Squared(), ex.Logistic(), ex.Squared()):
        ex.LinearModel(loss, data)
    assert len(asked) == 2 * len(data.manifest.shards)


def test_few_rows_tell_nothing(tmp_path, caplog):
    A, y = _rows()
    with caplog.at_level(logging.WARNING, "extremal"):
        ex.ShardDir.build((np.sort(A[:30], axis=0), y[:30]), tmp_path, shuffle=False, shard_bytes=1)
        data = ex.ShardDir(tmp_path)
        LOOKS["gradient"](data)
    assert len(data.manifest.shards) == 30
    assert not any("differ" in line for line in caplog.messages)


def test_a_part_of_one_row_is_not_compared():
    """The last shard of a build may have a single row, and a row far out says nothing about the order of the rows."""
    t = np.random.default_rng(0).standard_normal((1, 4001))
    t[0, -1] = 60.0
    sums = [between_sums(t[:, first : first + 1000]) for first in range(0, 4001, 1000)]
    assert between_ratio(*(sum(item) for item in zip(*sums, strict=True))) < most_likely(4) / 2
