"""Estimators on the workers of a cluster: the bits of a fit from disk; and fits to collections of Dask."""

from __future__ import annotations

import numpy as np
import pytest

import extremal as ex
from extremal.sklearn import (
    ConstrainedLinearRegression,
    ConstrainedLogisticRegression,
    ConstrainedMultinomialRegression,
    SimplexRegression,
    SparseLogisticPath,
    SparseLogisticPathCV,
)

da = pytest.importorskip("dask.array")

N, D = 400, 5
RNG = np.random.default_rng(0)
A = RNG.standard_normal((N, D))
MARGIN = A @ [1.0, -1.0, 0.5, 0.0, 2.0] + 0.3 + 0.5 * RNG.standard_normal(N)
LABELS = np.array(["high", "low", "middle"])[np.digitize(MARGIN, [-1.0, 1.0])]
WEIGHTS = RNG.integers(0, 3, N).astype(float)


def pair(data, model):
    model.fit(data)
    return model.coef_.tobytes(), np.asarray(model.intercept_).tobytes(), model.predict(data).tobytes(), model.score(data)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (ConstrainedLinearRegression("nonneg"), MARGIN),
        (ConstrainedLogisticRegression("l1:3", class_weight="balanced"), LABELS),
        (ConstrainedMultinomialRegression("nuclear:3"), LABELS),
        (SparseLogisticPath([0.5, 1.0]), LABELS),
    ],
    ids=lambda item: type(item).__name__,
)
def test_same_bits_as_from_disk(model, y, client, tmp_path):
    ex.ShardDir.build(iter([(A, y, WEIGHTS)]), tmp_path, shard_bytes=2**12)
    near, far = (pair(data, model) for data in (ex.ShardDir(tmp_path, engine="disk"), ex.ShardDir(tmp_path, client=client)))
    assert near == far


def test_collections(client, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    X, y, w = (da.from_array(a, chunks=(100, *a.shape[1:])) for a in (A, MARGIN, WEIGHTS))
    with client.as_current():
        model = ConstrainedLinearRegression("l1:2").fit(X, y, w)
    near = ConstrainedLinearRegression("l1:2").fit(A, MARGIN, WEIGHTS)
    np.testing.assert_allclose(model.coef_, near.coef_, rtol=1e-6, atol=1e-8)
    assert model.score(A, MARGIN) == pytest.approx(near.score(A, MARGIN))
    assert not list(tmp_path.glob("extremal-rows-*"))  # nothing is left behind
    with pytest.raises(ex.InputError, match="takes a batch of rows in memory, and no Array"):
        model.partial_fit(X, y)
    with pytest.raises(ex.InputError, match="makes folds of rows in memory"):
        SparseLogisticPathCV().fit(X, y)


def test_what_needs_rows_here(client, tmp_path):
    ex.ShardDir.build((A, MARGIN), tmp_path)
    with pytest.raises(ex.InputError, match="needs rows of this machine"):
        SimplexRegression().fit(ex.ShardDir(tmp_path, client=client))
