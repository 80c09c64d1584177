"""Runs for tests that kill a whole process: ``python killed_runs.py KIND FOLDER`` prints a digest of the answer."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

import extremal as ex

HERE = Path(__file__).resolve().parent


def rows(n=2000, d=30):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    return A, np.sign(A @ (rng.standard_normal(d) * (rng.random(d) < 0.4)) + 2 * rng.standard_normal(n))


def logistic(**how):
    return ex.LinearModel(ex.Logistic(), *rows(**how))


def minimised(f, C, method, most, folder, **how):
    saved = {"checkpoint": folder / "run.ckpt", "checkpoint_seconds": 0.2, "tol": 0, "atol": 0, "record": 10.0}
    r = ex.minimize(f, C, method, max_iter=most, **saved, **how)
    return [r.x, r.value, r.gap, r.n_iter, list(vars(r.calls).values()), r.trace.value, r.trace.gap, r.trace.iter]


def completion(folder):
    rng = np.random.default_rng(0)
    places, values = rng.integers(60, size=(2, 1000)), rng.standard_normal(1000)
    f = ex.LinearModel(ex.Squared(), ex.Entries(*places, (60, 60)), values)
    r = ex.minimize(f, ex.NuclearBall(60.0), "low-rank-fw", max_iter=15, tol=0, atol=0, **saved(folder))
    return [np.asarray(r.x), r.value, r.gap, list(vars(r.calls).values())]


def saved(folder):
    return {"checkpoint": folder / "run.ckpt", "checkpoint_seconds": 0.2}


def path(folder):
    found = ex.path(logistic(), [ex.L2Ball(r) for r in np.geomspace(0.2, 5.0, 12)], tol=1e-7, **saved(folder))
    return [[r.x, r.value, r.gap, list(vars(r.calls).values())] for r in found]


def estimator(folder):
    from extremal.sklearn import ConstrainedLinearRegression

    A, y = rows()
    with ex.checkpoint(folder / "run.ckpt", 0.2):
        solver = ex.SarahFW(batch=20)
        fit = ConstrainedLinearRegression("l1:2", solver=solver, tol=1e-9, max_iter=2000).fit(A, y)
    return [fit.coef_, fit.intercept_, fit.dual_gap_, fit.n_iter_, fit.n_grads_]


def shards(folder, **how):
    place = folder.parent / "rows"
    if not place.exists():
        ex.ShardDir.build(rows(), place, shard_bytes=2**17)
    f = ex.LinearModel(ex.Logistic(), ex.ShardDir(place, **how))
    return minimised(f, ex.L1Ball(3.0), "saga-sarah-fw" if how.get("engine") == "disk" else "frank-wolfe", 60, folder)


def dask(folder):
    sys.path.insert(0, str(HERE.parent / "scale"))
    from clusters import cluster_of_two

    with cluster_of_two() as client:
        return shards(folder, engine="dask", client=client)


def command(folder):
    from typer.testing import CliRunner

    from extremal.cli.commands import app

    np.savez(folder.parent / "rows.npz", A=rows()[0], y=rows()[1])
    words = ["solve", folder.parent / "rows.npz", "--set", "l1:3", "--method", "away-fw", "--tol", "1e-9", "--max-iter", "400"]
    words += ["--checkpoint", folder / "run.ckpt", "--checkpoint-seconds", "0.1", "--json", "--quiet", "--passes", "1e6"]
    ran = CliRunner().invoke(app, [str(word) for word in words])
    import json

    said = json.loads(ran.stdout)
    return [said["value"], said["gap"], {key: item for key, item in said.items() if "seconds" not in key}]


KINDS = {
    "tables": lambda folder: minimised(logistic(), ex.L1Ball(3.0), "saga-sarah-fw", 2500, folder, bursts=False),
    "bursts": lambda folder: minimised(logistic(), ex.L1Ball(3.0), "saga-sarah-fw", 40_000, folder),
    "newton": lambda folder: minimised(
        ex.LinearModel(ex.Huber(0.01), *rows(3000, 40)), ex.L2Ball(2.0), "newton-fw", 40, folder
    ),
    "atoms": lambda folder: minimised(logistic(), ex.L1Ball(3.0), "pairwise-fw", 400, folder),
    "low rank": completion,
    "path": path,
    "estimator": estimator,
    "shards": lambda folder: shards(folder, engine="disk"),
    "dask": dask,
    "command line": command,
}  # fmt: skip


def main(kind: str, folder: Path) -> None:
    print("begun", flush=True)  # noqa: T201
    found = KINDS[kind](folder)
    text = repr(found) if kind == "command line" else repr(_plain(found))
    print("digest", hashlib.sha256(text.encode()).hexdigest(), flush=True)  # noqa: T201


def _plain(item):
    if isinstance(item, np.ndarray):
        return item.dtype.str, item.shape, np.ascontiguousarray(item).tobytes().hex()
    if isinstance(item, list):
        return [_plain(one) for one in item]
    return float(item).hex() if isinstance(item, (float, np.floating)) else item


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
