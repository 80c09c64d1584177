"""Problems for the reference minimum, and the check of what it promises: test_reference.py and its neighbours share them."""

from __future__ import annotations

from dataclasses import dataclass

import cases
import numpy as np
import scipy.sparse as sp

import extremal as ex
from extremal.sets.base import ConvexSet
from extremal_lab.reproduction.reference import Reference, reference

CONVEX = tuple(loss for loss in cases.LOSSES if loss.convex)
EXACT = 1e-14  # what rounding may do to the constraints


def enough(value: float) -> float:
    return max(1e-11, 1e-10 * abs(value))


def gap_of(f: ex.LinearModel, C: ConvexSet, x: np.ndarray) -> float:
    """The Frank-Wolfe gap by the formulas of cases.py: neither the library's losses nor its oracles."""
    A = f.data.block.array().astype(np.float64)
    with np.errstate(over="ignore"):  # 1 / (1 + exp(z)) is 0 then, as it should be
        c = cases.truth(f.loss)[1](A @ x, f.y.astype(np.float64))
    return cases.gap(C, x, A.T @ c / len(A))


def check(f: ex.LinearModel, C: ConvexSet, times: float = 1.0) -> Reference:
    """A reference whose promises have been checked: feasible, with a gap that is true and small."""
    r = reference(f, C)
    assert C.contains(r.x, tol=EXACT)
    assert r.x.dtype == np.float64
    assert r.value == f.value(r.x)
    assert r.gap <= times * enough(r.value)
    assert gap_of(f, C, r.x) <= 2 * times * enough(r.value)
    assert r.how.startswith("interior point")
    return r


def random_problem(n=40, d=6, loss=None, seed=0, change=lambda A: A, sparse=False):
    loss = loss or ex.Logistic()
    rng = np.random.default_rng(seed)
    A = change(rng.standard_normal((n, d)))
    y = A @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    y = y if loss.labels is None else np.where(y > np.median(y), loss.labels[1], loss.labels[0])
    return ex.LinearModel(loss, sp.csr_array(A) if sparse else A, y)


BALLS = (ex.L1Ball(3.0), ex.L2Ball(2.0), ex.LinfBall(0.7), ex.Simplex(2.0), ex.Box(-0.5, 1.0))


def offset(A):
    return 480.0 + 5.0 * A  # like madelon


@dataclass(frozen=True)
class PseudoHuber:
    curvature = 1.0
    convex = True
    labels = None

    def value(self, z, y):
        return np.sqrt(1.0 + np.square(z - y)) - 1.0

    def deriv(self, z, y):
        return (z - y) / np.sqrt(1.0 + np.square(z - y))


@dataclass(frozen=True)
class Cauchy:
    curvature = 1.0
    convex = False
    labels = None

    def value(self, z, y):
        return 0.5 * np.log1p(np.square(z - y))

    def deriv(self, z, y):
        return (z - y) / (1.0 + np.square(z - y))
