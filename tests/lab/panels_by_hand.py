"""Data of one's own in a file, and panels whose curves end where a test wants them."""

import numpy as np

from extremal_lab.reproduction import Problem, sources
from extremal_lab.reproduction.plan import Curve, Panel


def libsvm(path, n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)).round(3)
    y = np.sign(A[:, 0] - 0.5 * A[:, 1] + 0.7 * rng.standard_normal(n))
    path.write_text(
        "\n".join(f"{v:g} " + " ".join(f"{j + 1}:{a}" for j, a in enumerate(row)) for v, row in zip(y, A, strict=True))
    )
    return A, y


def written(folder):
    path = folder / "mine.svm"
    libsvm(path)
    return path


def made_up(excesses, minimum=0.25, gap=1e-12, convex=True):
    """A panel whose curves end at given distances from the minimum: {(method, steps): excess}."""
    source = sources.Source("made up", "file", "the file made up", 10, 2, 20, "0")
    curves = []
    for (method, steps), excess in excesses.items():
        value = np.array([1.0, minimum + excess])
        run = {"passes": np.arange(2.0), "lmos": np.arange(2.0), "cpu": np.arange(2.0), "value": value, "gap": value}
        curves.append(Curve(method, steps, 1.0, False, 1, False, (run,)))
    return Panel(Problem("made up"), source, convex, minimum, gap, "by hand", tuple(curves))
