"""Dask arrays and frames as rows: written where they are, in the order that one process gives them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.files.shards.mapped import open_shard

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
from extremal.scale.collections import rows_of  # noqa: E402

RNG = np.random.default_rng(0)
A, Y, W = RNG.standard_normal((1000, 6)), np.sign(RNG.standard_normal(1000)), RNG.random(1000)


def contents(data):
    shards = [open_shard(data.directory, data.manifest, i) for i in range(len(data.manifest.shards))]
    return {name: np.concatenate([shard[name] for shard in shards]) for name in shards[0] if name != "starts"}


def same(a, b):
    for name, held in contents(a).items():
        assert np.array_equal(held, contents(b)[name]), name
    for name in ("kind", "n", "d", "nnz", "dtype", "targets", "names", "shuffled", "seed"):
        assert getattr(a.manifest, name) == getattr(b.manifest, name)
    b.verify()


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("weights", [True, False])
def test_arrays_are_written_as_one_process_would(client, tmp_path, shuffle, weights):
    here, there = ((A, Y, W), tuple(da.from_array(a, chunks=(300, *a.shape[1:])) for a in (A, Y, W)))
    k = 3 if weights else 2
    want = ex.ShardDir.build(here[:k], tmp_path / "here", seed=3, shuffle=shuffle, shard_bytes=2**14)
    got = ex.ShardDir.build(there[:k], tmp_path / "there", seed=3, shuffle=shuffle, shard_bytes=2**14, client=client)
    same(want, got)
    assert len(got.manifest.shards) > 2


def test_sparse_blocks_and_other_chunks_of_the_targets(client, tmp_path):
    S = sp.random(1000, 6, 0.4, format="csr", random_state=0, dtype=np.float32)
    X = da.from_array(S.toarray(), chunks=(250, 6)).map_blocks(sp.csr_array)
    want = ex.ShardDir.build((S, Y), tmp_path / "here", shard_bytes=2**14)
    same(want, ex.ShardDir.build((X, da.from_array(Y, chunks=400)), tmp_path / "there", shard_bytes=2**14, client=client))


def test_frames_with_names_text_and_sizes_that_nobody_knows(client, tmp_path):
    frame = pd.DataFrame(A, columns=list("abcdef"))
    frame["kind"] = np.where(Y > 0, "yes", "no")
    kept = frame[frame.a > -1].reset_index(drop=True)
    lazy = dd.from_pandas(frame, npartitions=5, sort=False)
    want = ex.ShardDir.build(kept, tmp_path / "here", target="kind")
    got = ex.ShardDir.build(lazy[lazy.a > -1], tmp_path / "there", target="kind", client=client)
    same(want, got)
    assert got.names == tuple("abcdef")
    X = lazy[lazy.a > -1]
    pair = X[list("abcdef")].to_dask_array(), (X["b"] > 0).astype(float).to_dask_array()
    data = rows_of(*pair, client=client)
    assert data.shape == (len(kept), 6)


def test_collections_are_data_that_is_gone_with_them(client):
    data = rows_of(da.from_array(A, chunks=(300, 6)), da.from_array(Y, chunks=300), client=client)
    place = data.directory
    r = ex.minimize(ex.LinearModel(ex.Logistic(), data), ex.L1Ball(2.0), tol=1e-6)
    assert r.converged
    assert "Dask" in r.why
    want = ex.minimize(ex.LinearModel(ex.Logistic(), A, Y), ex.L1Ball(2.0), tol=1e-6)
    assert np.allclose(r.x, want.x, atol=1e-3)
    del data, r
    import gc

    gc.collect()
    assert not Path(place).exists()


def test_mistakes_are_named(client, tmp_path):
    X, y = da.from_array(A, chunks=(300, 6)), da.from_array(Y, chunks=300)
    with pytest.raises(ex.InputError, match="chunks by rows only"):
        ex.ShardDir.build((X.rechunk({1: 2}), y), tmp_path / "a", client=client)
    with pytest.raises(ex.InputError, match="must all be Dask collections"):
        ex.ShardDir.build((X, Y), tmp_path / "b", client=client)
    bad = A.copy()
    bad[700, 2] = np.nan
    with pytest.raises(ex.InputError, match=r"partition 2: row 100: expected finite numbers"):
        ex.ShardDir.build((da.from_array(bad, chunks=(300, 6)), y), tmp_path / "c", client=client)
    with pytest.raises(ex.InputError, match="partitions"):
        ex.ShardDir.build((X, y[:900].rechunk(900)), tmp_path / "d", client=client)
    assert not list(tmp_path.iterdir())
