"""Rows for directories of shards, and what such a directory holds, put together again."""

import json
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from extremal.files.shards.build import build
from extremal.files.shards.manifest import MANIFEST, read_manifest
from extremal.files.shards.mapped import open_shard
from extremal.files.shards.verify import verify_shards


def rows(n=200, d=7, seed=0):
    """Sparse rows, some of them empty, and labels; multiples of 1/8, which text and float32 keep."""
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((n, d)) < 0.4, rng.integers(-40, 41, (n, d)) / 8, 0.0)
    A[:, -1] = 1 + np.arange(n)  # names the row, and the last column is there
    return A, rng.choice([-1.0, 1.0], n)


def held(directory):
    """All rows as a dense matrix, targets and weights."""
    manifest = read_manifest(Path(directory))
    parts = [open_shard(Path(directory), manifest, i) for i in range(len(manifest.shards))]
    if manifest.kind == "dense":
        A = np.concatenate([part["rows"] for part in parts])
    else:
        A = np.concatenate([_dense(part, manifest.d) for part in parts])
    y = np.concatenate([part["targets"] for part in parts])
    return A, y, None if manifest.weights is None else np.concatenate([part["weights"] for part in parts])


def _dense(part, d):
    assert part["starts"].dtype == part["columns"].dtype == np.int32
    return sp.csr_array((part["values"], part["columns"], part["starts"]), shape=(len(part["starts"]) - 1, d)).toarray()


def built(source, directory, **options):
    """In order and verified: the manifest, rows, targets and weights."""
    manifest = build(source, directory, **{"shuffle": False} | options)
    assert verify_shards(directory) == manifest == read_manifest(Path(directory))
    return manifest, *held(directory)


def contents(directory):
    """Every file by name."""
    return {path.name: path.read_bytes() for path in Path(directory).iterdir()}


def edited(directory, change):
    """Change the manifest, an object of JSON, in place."""
    path = Path(directory, MANIFEST)
    item = json.loads(path.read_text())
    change(item)
    path.write_text(json.dumps(item))


def spoiled(directory, name, place, value):
    """Change a number of the first shard and mend the checksum, so that only a look at the numbers tells."""
    path = Path(directory, f"00000.{name}.npy")
    a = np.load(path)
    a[place] = value
    np.save(path, a)
    crc = zlib.crc32(path.read_bytes())
    edited(directory, lambda item: item["shards"][0]["files"][name].update(crc32=crc))
    return path
