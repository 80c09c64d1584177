"""Set cases: sets made of sets, and a user's own."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.optimize import linprog
from set_case import SetCase

import extremal as ex
from extremal.points.vertex import Coordinate
from extremal.sets.made.blocks import FacedProduct, FacedRows, Product, Rows
from extremal.sets.made.images import Columns, LinearImage, Symmetrised
from extremal.sets.made.sums import MinkowskiSum, ScaledSet, ShiftedSet
from extremal.sets.oracle import Oracle

EXACT = {"presolve": False, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
OFFSET = np.array([3.0, -1.0, 0.0, 0.5, 20.0])
LOWER, UPPER = np.array([-1.0, 0.0, -2.0, 1.0]), np.array([1.0, 0.0, 3.0, 4.0])
SCALES = np.array([3.0, 1.0, 0.25, 2.0])
WIDE = np.array([[1.0, 0.0, -2.0, 0.5, 1.0], [0.0, 2.0, 1.0, 0.5, -1.0], [1.0, 1.0, 0.0, -3.0, 0.0]])  # 3 x 5
TALL = np.array([[1.0, 2.0], [0.0, 1.0], [-1.0, 0.5], [3.0, 0.0]])  # 4 x 2: the image is flat
TURN = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
CORNERS = np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 0.0], [0.0, 1.5, 0.0], [-1.0, -1.0, -1.0], [1.0, 1.0, -2.0]])


def transposition(n: int) -> np.ndarray:
    return np.arange(n * n).reshape(n, n).T.reshape(-1)


# minima


def solve(g: np.ndarray, bounds, **rows) -> float:
    """min <g, x> by HiGHS, at a scale that suits its tolerances."""
    top = float(np.abs(g).max()) or 1.0
    found = linprog(g.reshape(-1) / top, bounds=bounds, method="highs-ds", options=EXACT, **rows)
    assert found.status == 0, found.message
    return float(found.fun) * top


def simplex_and_box(g: np.ndarray) -> float:
    """x_0 + x_1 + x_2 = 2, all of at least 0; -1 <= x_j <= 0.5 for the other four."""
    bounds = [(0, None)] * 3 + [(-1, 0.5)] * 4
    return solve(g, bounds, A_eq=np.array([[1.0] * 3 + [0.0] * 4]), b_eq=[2.0])


def symmetric_l1(g: np.ndarray) -> float:
    """x = p - q with p, q >= 0, sum(p + q) <= 2, x = x'."""
    n = len(g)
    both = np.concatenate([g.reshape(-1), -g.reshape(-1)])
    swap = (np.eye(n * n) - np.eye(n * n)[transposition(n)])[np.triu_indices(n, 1)[0] * n + np.triu_indices(n, 1)[1]]
    ties = {"A_eq": np.hstack([swap, -swap]), "b_eq": np.zeros(len(swap))} if n > 1 else {}
    return solve(both, (0, None), A_ub=np.ones((1, 2 * n * n)), b_ub=[2.0], **ties)


def periodic_simplex(g: np.ndarray) -> float:
    """Six weights that sum to one with x_j = x_{j+2}."""
    same = np.eye(6) - np.eye(6)[(np.arange(6) + 2) % 6]
    return solve(g, (0, None), A_eq=np.vstack([np.ones(6), same]), b_eq=np.eye(7)[0])


def box_min(lower, upper, g: np.ndarray) -> float:
    return float(np.minimum(g * lower, g * upper).sum())


# samples: points of the sets, from their definitions


def weights(shape, rng) -> np.ndarray:
    """From the simplex, at times from its boundary."""
    w = rng.random(shape) * (rng.random(shape) < 0.7)
    w.flat[rng.integers(w.size)] += 1e-3
    return w / w.sum()


def in_l1(radius, shape, rng) -> np.ndarray:
    return radius * rng.random() ** 0.25 * weights(shape, rng) * rng.choice([-1.0, 1.0], shape)


def in_l2(radius, shape, rng) -> np.ndarray:
    u = rng.standard_normal(shape)
    return radius * rng.random() ** 0.25 * u / np.linalg.norm(u)


def in_box(lower, upper, shape, rng) -> np.ndarray:
    return lower + np.clip(1.5 * rng.random(shape) - 0.25, 0, 1) * (np.asarray(upper) - lower)


def rows_of(sample, count, rng) -> np.ndarray:
    return np.stack([sample(rng) for _ in range(count)])


# oracles of a user


def best_corner(g: np.ndarray) -> np.ndarray:
    return CORNERS[(CORNERS @ g.astype(np.float64)).argmin()]


def largest_entry(g: np.ndarray) -> Coordinate:
    j = int(np.abs(g).argmax())
    return Coordinate(j, -2.0 if g.flat[j] > 0 else 2.0, g.shape)


def in_small_l1(x: np.ndarray, tol: float) -> bool:
    return float(np.abs(x).sum()) <= 2.0 * (1 + tol)


def corner_distance() -> float:
    return max(float(np.linalg.norm(a - b)) for a in CORNERS for b in CORNERS)


SCALED = (
    SetCase(
        ScaledSet(ex.Simplex(shape=5), -2.0),
        lambda g: -2 * float(g.max()),
        lambda rng: -2 * weights(5, rng),
        2 * math.sqrt(2),
        scaled=lambda c: ScaledSet(ex.Simplex(shape=5), -2.0 * c),
    ),
    SetCase(
        ScaledSet(ex.Box(LOWER, UPPER), 0.5),
        lambda g: box_min(LOWER / 2, UPPER / 2, g),
        lambda rng: in_box(LOWER / 2, UPPER / 2, 4, rng),
        math.sqrt(1 + 0 + 6.25 + 2.25),
        scaled=lambda c: ScaledSet(ex.Box(LOWER, UPPER), 0.5 * c),
    ),
    SetCase(
        ScaledSet(ex.L2Ball(1.5), 3.0).on((2, 3)),
        lambda g: -4.5 * math.hypot(*g.reshape(-1)),
        partial(in_l2, 4.5, (2, 3)),
        9.0,
    ),
    SetCase(  # a set of a set of a set
        ScaledSet(ShiftedSet(ScaledSet(ex.LinfBall(1.0), 4.0), -2.0), -0.5).on((3, 2)),
        lambda g: box_min(-1.0, 3.0, g),
        partial(in_box, -1.0, 3.0, (3, 2)),
        4 * math.sqrt(6),
    ),
)

SHIFTED = (
    SetCase(
        ShiftedSet(ex.L1Ball(2.0), OFFSET),
        lambda g: float(g @ OFFSET) - 2 * float(np.abs(g).max()),
        lambda rng: OFFSET + in_l1(2.0, 5, rng),
        4.0,
        scaled=lambda c: ShiftedSet(ex.L1Ball(2.0 * c), c * OFFSET),
    ),
    SetCase(
        ShiftedSet(ex.Simplex(), 1.0).on((2, 3)),
        lambda g: float(g.sum() + g.min()),
        lambda rng: 1 + weights((2, 3), rng),
        math.sqrt(2),
    ),
    SetCase(
        ShiftedSet(ex.LinfBall(0.5), OFFSET),
        lambda g: box_min(OFFSET - 0.5, OFFSET + 0.5, g),
        lambda rng: in_box(OFFSET - 0.5, OFFSET + 0.5, 5, rng),
        math.sqrt(5),
    ),
    SetCase(
        ShiftedSet(ex.L2Ball(1e-3), [100.0]), lambda g: box_min(99.999, 100.001, g), partial(in_box, 99.999, 100.001, 1), 2e-3
    ),
    SetCase(ShiftedSet(ex.Simplex(2.0), [3.0]), lambda g: 5 * float(g[0]), lambda rng: np.array([5.0]), 0.0),
)

SUMS = (
    SetCase(
        MinkowskiSum(ex.Box(LOWER, UPPER), ex.LinfBall(0.5)),
        lambda g: box_min(LOWER - 0.5, UPPER + 0.5, g),
        lambda rng: in_box(LOWER - 0.5, UPPER + 0.5, 4, rng),
        scaled=lambda c: MinkowskiSum(ex.Box(c * LOWER, c * UPPER), ex.LinfBall(0.5 * c)),
    ),
    SetCase(
        MinkowskiSum([ex.L1Ball(2.0), ex.LinfBall(0.5)]).on((2, 3)),
        lambda g: -2 * float(np.abs(g).max()) - 0.5 * float(np.abs(g).sum()),
        lambda rng: in_l1(2.0, (2, 3), rng) + in_box(-0.5, 0.5, (2, 3), rng),
    ),
    SetCase(
        MinkowskiSum(ex.Simplex(shape=4), ex.L2Ball(0.5), ex.Simplex(2.0)),
        lambda g: 3 * float(g.min()) - 0.5 * math.hypot(*g),
        lambda rng: 3 * weights(4, rng) + in_l2(0.5, 4, rng),
        tol=1e-6,
    ),
    SetCase(MinkowskiSum(ex.L1Ball(1.0, shape=3)), lambda g: -float(np.abs(g).max()), partial(in_l1, 1.0, 3), 2.0),
)

IMAGES = (
    SetCase(
        LinearImage(np.diag(SCALES), ex.L1Ball(2.0)),
        lambda g: -2 * float(np.abs(SCALES * g).max()),
        lambda rng: SCALES * in_l1(2.0, 4, rng),
        scaled=lambda c: LinearImage(c * np.diag(SCALES), ex.L1Ball(2.0)),
    ),
    SetCase(
        LinearImage(np.diag(SCALES), ex.L2Ball(2.0)),
        lambda g: -2 * math.hypot(*(SCALES * g)),
        lambda rng: SCALES * in_l2(2.0, 4, rng),
        12.0,
        tol=1e-6,
        name="ellipsoid",
    ),
    SetCase(
        LinearImage(WIDE, ex.Simplex()),
        lambda g: min(float(g @ column) for column in WIDE.T),
        lambda rng: WIDE @ weights(5, rng),
        name="hull of columns",
    ),
    SetCase(
        LinearImage(TALL, ex.Box(-1.0, 2.0)),
        lambda g: box_min(-1.0, 2.0, TALL.T @ g),
        lambda rng: TALL @ in_box(-1.0, 2.0, 2, rng),
        name="flat zonotope",
    ),
    SetCase(
        LinearImage(TURN, ex.Box(0.0, [1.0, 2.0, 3.0])),
        lambda g: box_min(0.0, np.array([1.0, 2.0, 3.0]), TURN.T @ g),
        lambda rng: TURN @ in_box(0.0, [1.0, 2.0, 3.0], 3, rng),
        math.sqrt(14),
        name="turned box",
    ),
    SetCase(
        LinearImage(np.ones((1, 6)), ex.L1Ball(2.0, shape=(2, 3))),
        lambda g: -2 * abs(float(g[0])),
        lambda rng: rng.uniform(-2, 2, 1),
        name="sum of a matrix",
    ),
)

SYMMETRISED = (
    SetCase(
        Symmetrised(ex.L1Ball(2.0, shape=(3, 3)), [transposition(3)]),
        symmetric_l1,
        lambda rng: (lambda x: (x + x.T) / 2)(in_l1(2.0, (3, 3), rng)),
        scaled=lambda c: Symmetrised(ex.L1Ball(2.0 * c, shape=(3, 3)), [transposition(3)]),
    ),
    SetCase(
        Symmetrised(ex.LinfBall(1.5), transposition(3)).on((3, 3)),
        lambda g: -0.75 * float(np.abs(g + g.T).sum()),
        lambda rng: (lambda x: np.tril(x) + np.tril(x, -1).T)(in_box(-1.5, 1.5, (3, 3), rng)),
        9.0,
    ),
    SetCase(
        Symmetrised(ex.Simplex(shape=6), [(np.arange(6) + 2) % 6]),
        periodic_simplex,
        lambda rng: np.tile(weights(2, rng) / 3, 3),
    ),
    SetCase(  # all permutations: one number is left
        Symmetrised(ex.L2Ball(2.0, shape=4), [[1, 0, 2, 3], [1, 2, 3, 0]]),
        lambda g: -abs(float(g.sum())),
        lambda rng: np.full(4, rng.uniform(-1, 1)),
        4.0,
    ),
    SetCase(Symmetrised(ex.L1Ball(1.0, shape=3), [[0, 1, 2]]), lambda g: -float(np.abs(g).max()), partial(in_l1, 1.0, 3), 2.0),
)

PRODUCTS = (
    SetCase(
        Product(ex.Simplex(2.0, 3), ex.Box(-1.0, 0.5, (2, 2))),
        simplex_and_box,
        lambda rng: np.concatenate([2 * weights(3, rng), in_box(-1.0, 0.5, 4, rng)]),
        math.sqrt(8 + 4 * 2.25),
        scaled=lambda c: Product(ex.Simplex(2.0 * c, 3), ex.Box(-c, 0.5 * c, (2, 2))),
    ),
    SetCase(
        Product([ex.L1Ball(2.0, shape=3), ex.Simplex(shape=(2, 2)), ex.L1Ball(0.5, shape=1)]),
        lambda g: -2 * float(np.abs(g[:3]).max()) + float(g[3:7].min()) - 0.5 * abs(float(g[7])),
        lambda rng: np.concatenate([in_l1(2.0, 3, rng), weights(4, rng), rng.uniform(-0.5, 0.5, 1)]),
        math.sqrt(16 + 2 + 1),
    ),
    SetCase(Product(ex.L2Ball(2.0, shape=(2, 2))), lambda g: -2 * math.hypot(*g), partial(in_l2, 2.0, 4), 4.0),
    SetCase(
        Product(Product(ex.Simplex(shape=2), ex.LinfBall(1.0, shape=2)), Rows(ex.L2Ball(1.0, shape=2), 2)),
        lambda g: float(g[:2].min()) - float(np.abs(g[2:4]).sum()) - math.hypot(g[4], g[5]) - math.hypot(g[6], g[7]),
        lambda rng: np.concatenate([weights(2, rng), in_box(-1, 1, 2, rng), in_l2(1.0, 2, rng), in_l2(1.0, 2, rng)]),
        math.sqrt(2 + 8 + 8),
    ),
    SetCase(
        FacedProduct(ex.Simplex(shape=3), ex.Simplex(2.0, (2, 2)), ex.Simplex(shape=1)),
        lambda g: float(g[:3].min()) + 2 * float(g[3:7].min()) + float(g[7]),
        lambda rng: np.concatenate([weights(3, rng), 2 * weights(4, rng), np.ones(1)]),
        math.sqrt(2 + 8),
    ),
    SetCase(
        FacedProduct(ex.Simplex(shape=3), ex.Box(LOWER, UPPER)),
        lambda g: float(g[:3].min()) + box_min(LOWER, UPPER, g[3:]),
        lambda rng: np.concatenate([weights(3, rng), in_box(LOWER, UPPER, 4, rng)]),
        math.sqrt(2 + 4 + 25 + 9),
    ),
)

COLUMNS = (
    SetCase(
        Columns(ex.Simplex()).on((4, 3)),
        lambda g: float(g.min(axis=0).sum()),
        lambda rng: rows_of(partial(weights, 4), 3, rng).T.copy(),
        math.sqrt(6),
        scaled=lambda c: Columns(ex.Simplex(c)).on((4, 3)),
    ),
    SetCase(
        Columns(ex.Box(LOWER, UPPER)).on((4, 3)),
        lambda g: sum(box_min(LOWER, UPPER, column) for column in g.T),
        lambda rng: in_box(LOWER, UPPER, (3, 4), rng).T.copy(),
        math.sqrt(3 * (4 + 25 + 9)),
    ),
    SetCase(
        Columns(ex.L2Ball(2.0, shape=2)).on((2, 3)),
        lambda g: -2 * sum(math.hypot(*column) for column in g.T),
        lambda rng: rows_of(partial(in_l2, 2.0, 2), 3, rng).T.copy(),
        4 * math.sqrt(3),
    ),
)

ROWS = (
    SetCase(
        Rows(ex.Simplex()).on((3, 4)),
        lambda g: float(g.min(axis=1).sum()),
        lambda rng: rows_of(partial(weights, 4), 3, rng),
        math.sqrt(6),
        scaled=lambda c: Rows(ex.Simplex(c)).on((3, 4)),
    ),
    SetCase(
        Rows(ex.L1Ball(1.5, shape=5), 2),
        lambda g: -1.5 * sum(float(np.abs(row).max()) for row in g),
        lambda rng: rows_of(partial(in_l1, 1.5, 5), 2, rng),
        3 * math.sqrt(2),
    ),
    SetCase(
        Rows(ex.Box(LOWER, UPPER), 3),
        lambda g: sum(box_min(LOWER, UPPER, row) for row in g),
        lambda rng: in_box(LOWER, UPPER, (3, 4), rng),
        math.sqrt(3 * (4 + 25 + 9)),
    ),
    SetCase(
        Rows(ex.LinfBall(2.0)).on((2, 3)), lambda g: -2 * float(np.abs(g).sum()), partial(in_box, -2, 2, (2, 3)), 4 * math.sqrt(6)
    ),
    SetCase(
        Rows(ex.L2Ball(2.0)).on((3, 2)),
        lambda g: -2 * sum(math.hypot(*row) for row in g),
        lambda rng: rows_of(partial(in_l2, 2.0, 2), 3, rng),
        4 * math.sqrt(3),
    ),
    SetCase(
        Rows(ScaledSet(ex.Simplex(shape=(2, 2)), -1.0), 2),
        lambda g: -sum(float(row.max()) for row in g),
        lambda rng: -rows_of(partial(weights, (2, 2)), 2, rng),
        2.0,
    ),
    SetCase(
        FacedRows(ex.Simplex(2.0)).on((3, 4)),
        lambda g: 2 * float(g.min(axis=1).sum()),
        lambda rng: 2 * rows_of(partial(weights, 4), 3, rng),
        math.sqrt(3 * 8),
    ),
    SetCase(
        FacedRows(ex.Box(LOWER, UPPER), 2),
        lambda g: sum(box_min(LOWER, UPPER, row) for row in g),
        lambda rng: in_box(LOWER, UPPER, (2, 4), rng),
        math.sqrt(2 * (4 + 25 + 9)),
    ),
)

OWN = (
    SetCase(
        Oracle(best_corner, corner_distance(), shape=3),
        lambda g: min(float(g @ corner) for corner in CORNERS),
        lambda rng: weights(5, rng) @ CORNERS,
        corner_distance(),
    ),
    SetCase(
        Oracle(largest_entry, 4.0, start=np.zeros((2, 2)), contains=in_small_l1),
        lambda g: -2 * float(np.abs(g).max()),
        partial(in_l1, 2.0, (2, 2)),
        4.0,
    ),
)

CASES: tuple[SetCase, ...] = (*SCALED, *SHIFTED, *SUMS, *IMAGES, *SYMMETRISED, *PRODUCTS, *COLUMNS, *ROWS, *OWN)
