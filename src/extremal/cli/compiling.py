"""``extremal compile``: compile kernels in advance, so that no run of an image or of a test machine has to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from extremal import checks
from extremal.cli.common import AsJson, completed, lines, listing, one_line
from extremal.files.outputs import to_json

LONG_MODEL = 12_000  # rows of a model that is not short


@dataclass(frozen=True)
class Kind:
    """A kind of run, whose kernels are compiled together: a small problem that uses them."""

    summary: str
    rows: str  # "dense", "sparse" or "sparse32"
    n: int = 40
    method: str | None = None
    twice: bool = False  # whether each column is there twice, so that Hessians are singular

    def run(self) -> None:
        """Solve the small problem."""
        from extremal.losses import Logistic
        from extremal.objectives import LinearModel
        from extremal.run import minimize
        from extremal.sets import L1Ball

        rng = np.random.default_rng(0)
        A = rng.standard_normal((self.n, 3))
        y = np.where(A[:, 0] + rng.standard_normal(self.n) > 0, 1.0, -1.0)
        f = LinearModel(Logistic(), _as_rows(np.hstack([A, A]) if self.twice else A, self.rows), y)
        for radius in (0.5, 10.0):
            minimize(f, L1Ball(radius), method=self.method, max_iter=20)


KINDS = {
    "dense": Kind("default method, arrays of at most 10 000 rows", "dense"),
    "sparse": Kind("default method, sparse matrices of at most 10 000 rows", "sparse"),
    "sparse-float32": Kind("the same for sparse matrices in float32", "sparse32"),
    "dense-long": Kind("default method, arrays of more rows", "dense", LONG_MODEL),
    "sparse-long": Kind("default method, sparse matrices of more rows", "sparse", LONG_MODEL),
    "sparse-long-float32": Kind("the same for sparse matrices in float32", "sparse32", LONG_MODEL),
    "repeated": Kind("columns that are there twice, and other singular problems", "dense", twice=True),
    "atoms": Kind("methods that keep atoms, such as fully-corrective-fw", "dense", method="fully-corrective-fw"),
    "dense-batches": Kind("methods of batches, such as sarah-fw, over arrays", "dense", 4000, "sarah-fw"),
    "sparse-batches": Kind("methods of batches over sparse matrices", "sparse", 4000, "sarah-fw"),
}


def _as_rows(A: np.ndarray, rows: str) -> Any:
    """The array, or the same entries as a sparse matrix."""
    if rows == "dense":
        return A
    import scipy.sparse as sp  # imported on use: some kinds need no sparse matrix

    return sp.csr_array(A.astype(np.float32 if rows == "sparse32" else np.float64))


@one_line("interrupted; kernels that were compiled before are kept")
def compile_kernels(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KIND]...", help="Default: all.", autocompletion=completed(KINDS)),
    ] = None,
    only_list: Annotated[bool, typer.Option("--list", help="List the kinds of runs, and compile nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compile the kernels of some kinds of runs, and keep them: the first run then starts as fast as the next.

    Kernels are kept for this type of processor, in the package's folder or, if it cannot be written, in NUMBA_CACHE_DIR or a
    cache folder of the user.
    """
    names = [checks.one_of("kind of run", name, KINDS) for name in names or KINDS]
    if only_list:
        listing(("name", "rows", "summary"), [(name, KINDS[name].rows, KINDS[name].summary) for name in names], as_json)
        return
    found = []
    for row in _compiled(names):
        found.append(row)
        if not as_json:
            lines([(f"{row['name']:<20}", f"{row['compiled']:>3} compiled in {row['seconds']:.1f} s of CPU")])
    if as_json:
        typer.echo(to_json(found))


def _compiled(names: list[str]) -> Iterator[dict[str, Any]]:
    """Run each kind; the number of kernels that were not kept before, and seconds of CPU with the run itself."""
    from extremal.kernels.jit import notice

    for name in names:
        start, before = time.process_time(), notice.compiled
        KINDS[name].run()
        yield {"name": name, "compiled": notice.compiled - before, "seconds": time.process_time() - start}
