"""Pictures of sets, drawn from their oracles as the site is built, and the directive that shows them as cards."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from docutils import nodes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import extremal as ex
from extremal.support import palette

BLUE, GREY = palette.PALETTE[0][0], palette.GREY
FOLDER = "_static/sets"  # below docs, ignored by git
EYE = np.array([[-0.42, 0.91, 0.0], [-0.3, -0.14, 0.94], [0.86, 0.39, 0.33]])  # to the right, up, towards the reader
INK, FLAT = np.array(to_rgb(BLUE)), 1e-7
FEW, SHARP = 60, (0.999, 0.85)  # edges are drawn where normals have a smaller cosine: of polytopes, of smooth bodies
DIRECTIONS, SIZE = 900, 2.4


class Shape(NamedTuple):
    """A set with a shape, and what is drawn of its points: three linear forms, the entries themselves if left out."""

    C: ex.ConvexSet
    forms: np.ndarray | None = None


def entries(shape: tuple[int, ...], *which: tuple[int, ...]) -> np.ndarray:
    """The forms that take three entries of an array."""
    return np.array([[float(place == at) for place in np.ndindex(shape)] for at in which])


ROOT = np.sqrt(0.5)
SYMMETRIC = np.array([[1, 0, 0, 0], [0, 0, 0, 1], [0, ROOT, ROOT, 0]])  # a symmetric 2 x 2 matrix as a point of space
BESIDE = entries((3, 3), (0, 1), (0, 2), (1, 2)) + entries((3, 3), (1, 0), (2, 0), (2, 1))  # entries off the diagonal
BALANCED = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]) / 2  # what is left of four numbers with a given sum
CORNER = entries((2, 2), (0, 0), (0, 1), (1, 0))
WHEEL = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"), ("b", "d")]
ROADS = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d")]
SPOT = np.array([0.0, 0.0, 1.8])


def cone(g: np.ndarray) -> np.ndarray:
    """A ball and a point above it: an oracle as users write it."""
    ball = -g / max(np.linalg.norm(g), 1e-12)
    return SPOT if SPOT @ g < ball @ g else ball


SHAPES: dict[str, Callable[[], Shape]] = {
    "Simplex": lambda: Shape(ex.Simplex().on(3)),
    "UnitSimplex": lambda: Shape(ex.UnitSimplex().on(3)),
    "CappedSimplex": lambda: Shape(ex.CappedSimplex(0.6).on(3)),
    "Hypersimplex": lambda: Shape(ex.Hypersimplex(2).on(4), BALANCED),
    "BudgetBox": lambda: Shape(ex.BudgetBox(-1.0, 1.0, 0.0).on(3)),
    "Box": lambda: Shape(ex.Box([-0.4, -1.0, 0.0], [1.0, 1.0, 0.9])),
    "Monotone": lambda: Shape(ex.Monotone(0.0, 1.0).on(3)),
    "L1Ball": lambda: Shape(ex.L1Ball(1.0).on(3)),
    "L2Ball": lambda: Shape(ex.L2Ball(1.0).on(3)),
    "LinfBall": lambda: Shape(ex.LinfBall(1.0).on(3)),
    "LpBall": lambda: Shape(ex.LpBall(1.0, 4.0).on(3)),
    "WeightedL1Ball": lambda: Shape(ex.WeightedL1Ball(1.0, [1.0, 2.0, 1.4])),
    "BoundedL1Ball": lambda: Shape(ex.BoundedL1Ball(1.0, -0.3, 0.7).on(3)),
    "GroupBall": lambda: Shape(ex.GroupBall(1.0, [[0, 1], [2]])),
    "LatentGroupBall": lambda: Shape(ex.LatentGroupBall(1.0, [[0, 1], [1, 2]])),
    "ElasticBall": lambda: Shape(ex.ElasticBall(1.0, 0.5).on(3)),
    "KSupportBall": lambda: Shape(ex.KSupportBall(1.0, 2).on(3)),
    "KSparseBall": lambda: Shape(ex.KSparseBall(1.0, 2).on(3)),
    "KNormBall": lambda: Shape(ex.KNormBall(1.0, 2).on(3)),
    "OwlBall": lambda: Shape(ex.OwlBall(1.0, [1.0, 0.6, 0.2])),
    "NuclearBall": lambda: Shape(ex.NuclearBall(1.0).on((2, 2)), SYMMETRIC),
    "SpectralBall": lambda: Shape(ex.SpectralBall(1.0).on((2, 2)), SYMMETRIC),
    "MaxNormBall": lambda: Shape(ex.MaxNormBall(1.0).on((2, 2)), SYMMETRIC),
    "Spectrahedron": lambda: Shape(ex.Spectrahedron().on((3, 3)), BESIDE),
    "Fantope": lambda: Shape(ex.Fantope(2).on((3, 3)), BESIDE),
    "LoewnerInterval": lambda: Shape(ex.LoewnerInterval(np.zeros((2, 2)), np.diag([1.0, 0.7])), SYMMETRIC),
    "Birkhoff": lambda: Shape(ex.Birkhoff(3), entries((3, 3), (0, 0), (1, 1), (2, 2))),
    "TransportPolytope": lambda: Shape(ex.TransportPolytope([1.0, 2.0], [1.0, 1.2, 0.8]), np.eye(3, 6)),
    "PathPolytope": lambda: Shape(ex.PathPolytope(ROADS, "a", "d"), np.eye(5)[[0, 3, 4]]),
    "SpanningTrees": lambda: Shape(ex.SpanningTrees(WHEEL), np.eye(5)[[0, 1, 3]]),
    "Matchings": lambda: Shape(ex.Matchings([("a", "b"), ("b", "c"), ("c", "d")])),
    "Polytope": lambda: Shape(ex.Polytope([[1, 1, 1], [1, -1, 0.5], [0, 1, -1]], [1.5, 0.6, 0.7], bounds=(0, 1))),
    "IntegerHull": lambda: Shape(ex.IntegerHull([[2, 3, 1], [1, 1, 3]], [6, 6], bounds=(0, 2))),
    "ConvexHull": lambda: Shape(ex.ConvexHull(np.random.default_rng(8).standard_normal((12, 3)))),
    "Product": lambda: Shape(ex.Product(ex.L2Ball(1.0).on(2), ex.Box(-0.7, 0.7).on(1))),
    "Rows": lambda: Shape(ex.Rows(ex.L1Ball(1.0)).on((2, 2)), CORNER),
    "Columns": lambda: Shape(ex.Columns(ex.UnitSimplex()).on((2, 2)), entries((2, 2), (0, 0), (1, 0), (0, 1))),
    "MinkowskiSum": lambda: Shape(ex.MinkowskiSum(ex.L1Ball(1.0).on(3), ex.L2Ball(0.35).on(3))),
    "ScaledSet": lambda: Shape(ex.ScaledSet(ex.UnitSimplex().on(3), -1.5)),
    "ShiftedSet": lambda: Shape(ex.ShiftedSet(ex.L1Ball(0.7).on(3), [0.5, 0.5, 0.4])),
    "LinearImage": lambda: Shape(ex.LinearImage([[1.2, 0, 0.2], [0.3, 0.8, 0], [0, 0.4, 0.4]], ex.L2Ball(1.0).on(3))),
    "Symmetrised": lambda: Shape(ex.Symmetrised(ex.LinfBall(1.0).on(3), [[2, 1, 0]])),
    "AffineCut": lambda: Shape(ex.AffineCut(ex.L1Ball(1.0).on(3), [[0.4, 0.3, 1.0]], upper=[0.35])),
    "Oracle": lambda: Shape(ex.Oracle(cone, 2.8, shape=3)),
}


# points


@functools.cache
def directions() -> np.ndarray:
    """Directions that cover the sphere evenly (Fibonacci's spiral), and those of the axes."""
    k = np.arange(DIRECTIONS) + 0.5
    up, turn = 1 - 2 * k / DIRECTIONS, np.pi * (1 + np.sqrt(5)) * k
    round_ = np.sqrt(1 - up**2)
    return np.vstack([np.column_stack([round_ * np.cos(turn), round_ * np.sin(turn), up]), np.eye(3), -np.eye(3)])


def points(shape: Shape) -> np.ndarray:
    """Boundary points of what is drawn: the forms at the oracle's answers, each once."""
    C, forms = shape.C, np.eye(3) if shape.forms is None else shape.forms
    answers = (C.lmo((g @ forms).reshape(C.shape)).to_array() for g in directions())
    found = np.array([forms @ answer.reshape(-1) for answer in answers])
    found = found[np.unique(found.round(6), axis=0, return_index=True)[1]]
    return cut(C, found) if isinstance(C, ex.AffineCut) else found


def cut(C: ex.AffineCut, corners: np.ndarray) -> np.ndarray:
    """The corners of a polytope that lie in a cut, and where its plane meets the segments between the others."""
    side = corners @ np.asarray(C.G)[0] - C.upper[0]
    pairs = [(i, j) for i, j in itertools.combinations(range(len(side)), 2) if side[i] * side[j] < 0]
    met = [(side[i] * corners[j] - side[j] * corners[i]) / (side[i] - side[j]) for i, j in pairs]
    return np.vstack([corners[side <= 0], *met])


# drawing


def faces(found: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Triangles of the boundary with their outer normals; one polygon, without inside, where all lie in a plane."""
    middle = found.mean(axis=0)
    _, sizes, axes = np.linalg.svd(found - middle)
    if sizes[2] > FLAT * sizes[0]:
        hull = ConvexHull(found)
        yield from ((found[corners], plane[:3]) for corners, plane in zip(hull.simplices, hull.equations, strict=True))
    else:
        flat = (found - middle) @ axes[:2].T
        normal = axes[2] * np.sign(EYE[2] @ axes[2])
        yield found[ConvexHull(flat).vertices], normal


def edges(shown: list[tuple[np.ndarray, np.ndarray]], sharp: float) -> Iterator[np.ndarray]:
    """Sides where the boundary has a kink, or ends for the eye."""
    beside: dict[tuple[bytes, ...], list[np.ndarray]] = {}
    held: dict[tuple[bytes, ...], np.ndarray] = {}
    for corners, normal in shown:
        for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            key = tuple(sorted((a.tobytes(), b.tobytes())))
            beside.setdefault(key, []).append(normal)
            held[key] = np.array([a, b])
    return (held[key] for key, normals in beside.items() if len(normals) == 1 or normals[0] @ normals[1] < sharp)


def picture(found: np.ndarray) -> Figure:
    """The set as a solid body, lit from the reader's left, with axes and hidden edges; it fits a light and a dark page."""
    around = list(faces(found))
    shown = [(corners, normal) for corners, normal in around if EYE[2] @ normal > 0]
    light = [0.35 + 0.65 * max(0.0, normal @ (0.8 * EYE[2] + 0.5 * EYE[1] - 0.35 * EYE[0])) for _, normal in shown]
    colours = [tuple(1 - (1 - INK) * (1.15 - 0.75 * min(level, 1.0))) for level in light]
    figure = Figure(figsize=(SIZE, SIZE))
    axes = figure.add_axes((0, 0, 1, 1))
    reach, over = 1.25 * np.abs(found).max(), 0 if len(around) > 1 else 3  # a solid body hides the axes
    rays = [np.array([np.zeros(2), EYE[:2] @ (reach * axis)]) for axis in np.eye(3)]
    axes.add_collection(LineCollection(rays, colors=GREY, lw=1, zorder=over))
    flat = [corners @ EYE[:2].T for corners, _ in shown]
    axes.add_collection(PolyCollection(flat, facecolors=colours, edgecolors=colours, lw=0.4))
    sharp = SHARP[len(found) > FEW]
    for of, style in ((around, {"lw": 0.8, "ls": (0, (2, 2)), "alpha": 0.7}), (shown, {"lw": 1.2, "capstyle": "round"})):
        axes.add_collection(LineCollection([line @ EYE[:2].T for line in edges(of, sharp)], colors=BLUE, **style))
    within = np.vstack([found @ EYE[:2].T, (reach * EYE[:2]).T, np.zeros((1, 2))])
    centre, size = (within.max(axis=0) + within.min(axis=0)) / 2, 0.54 * np.ptp(within, axis=0).max()
    axes.set(xlim=centre[0] + size * np.array([-1, 1]), ylim=centre[1] + size * np.array([-1, 1]), aspect="equal")
    axes.set_axis_off()
    return figure


def draw(app: Sphinx) -> None:
    """Draw the pictures that are not there yet; a change of this file or of the palette draws all of them again."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    changed = max(Path(path).stat().st_mtime for path in (__file__, palette.__file__))
    for name, make in SHAPES.items():
        path = folder / f"{name}.png"
        if not path.exists() or path.stat().st_mtime < changed:
            picture(points(make())).savefig(path, dpi=100, transparent=True)


# the page


class SetCards(SphinxDirective):
    """Cards of sets, one for each line of the content: name | words | purpose | cost."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The cards as a grid of sphinx-design: two in a row on a phone, three on a screen."""
        lines = [":::::{grid} 2 3 3 3", ":gutter: 2", ":class-container: sets", ""]
        for line in filter(None, map(str.strip, self.content)):
            lines += card(*(part.strip() for part in line.split(" | ")))
        return self.parse_text_to_nodes("\n".join([*lines, ":::::"]))


def card(name: str, words: str, purpose: str, cost: str) -> list[str]:
    """The lines of one card."""
    said = [f"`{words}`", ""] if words != "-" else []
    return [
        "::::{grid-item-card}", f":img-top: /{FOLDER}/{name}.png", f":img-alt: a picture of {name}", "",
        f"{{py:obj}}`{name} <extremal.{name}>`", "", *said, purpose, "", ":::{card-footer}", cost, ":::", "::::", "",
    ]  # fmt: skip


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw before the pages are read."""
    app.add_directive("sets", SetCards)
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
