"""l1 logistic regression on w8a and on rows like those of rcv1: the radius, the matching penalty, the least value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from extremal.losses import Logistic
from extremal.objectives import LinearModel
from extremal.run import minimize
from extremal.sets import L1Ball
from extremal_lab.bench.problems import Problem, named
from extremal_lab.reproduction.reference import reference

RADII = {"w8a": (7.363, 30.30, 706.4), "like rcv1": (1468.0, 8636.0)}  # 5, 20 and 87 % of w8a's columns, 0.6 and 5 % of rcv1's
ENOUGH = 1e-9  # largest gap over f*: a thousandth of the finest measured precision
ROUNDS = 80


@dataclass(frozen=True)
class L1Case:
    """A radius, the penalty lambda with the same solution, and f* with its certificate."""

    problem: Problem
    radius: float
    lam: float
    least: float
    gap: float  # f* is between least - gap and least

    @property
    def name(self) -> str:
        """Data and radius."""
        return f"{self.problem.name} R = {self.radius:g}"

    def score(self, x: np.ndarray) -> float:
        """(f(x) - f*) / f*."""
        return float(self.problem.f.value(x) / self.least - 1)


def cases(data: str, radii: tuple[float, ...], problem: Problem | None = None) -> Iterator[L1Case]:
    """The problems on one data set.

    Examples
    --------
    >>> (case,) = cases("like rcv1", (40.0,), like_rcv1(300, 400))
    >>> case.gap <= 1e-9 * case.least, bool(0 < case.lam < 1)
    (True, True)
    """
    problem = problem or (like_rcv1() if data == "like rcv1" else named(data))
    for radius in radii:
        lam, least, gap = solved(problem, radius)
        yield L1Case(problem, radius, lam, least, gap)


def solved(problem: Problem, radius: float) -> tuple[float, float, float]:
    """lambda, f* and the Frank-Wolfe gap that certifies it: from our own solver or an interior point, then polished."""
    starts: tuple[Callable[[], np.ndarray], ...] = (
        lambda: minimize(problem.f, L1Ball(radius), tol=1e-8, max_grads=500 * problem.n).x,
        lambda: reference(problem.f, L1Ball(radius)).x,
    )
    for start in starts:
        lam, least, gap = polished(problem.A, problem.y, start(), radius)
        if gap <= ENOUGH * least:
            return lam, least, gap
    raise RuntimeError(f"{problem.name}, R = {radius:g}: no certified minimum, the gap is {gap:.1e}")  # pyright: ignore


def polished(A: Any, y: np.ndarray, x: np.ndarray, radius: float) -> tuple[float, float, float]:
    """lambda, f and gap after Newton steps for the optimality conditions on the support S, with signs s.

        g_S + lambda s = 0,   s' x_S = R,   |g_j| <= lambda elsewhere

    A coordinate that would change its sign leaves S, and the coordinate with the largest |g_j| > lambda joins S.

    Examples
    --------
    >>> A, y = sp.csr_array(np.array([[1.0, 0.1], [0.2, 1.0]])), np.ones(2)
    >>> lam, least, gap = polished(A, y, np.array([0.5, 0.4]), 1.0)
    >>> abs(gap) < 1e-15
    True
    """
    keep = np.abs(x) > 1e-7 * np.abs(x).max()
    x = np.where(keep, x, 0.0)
    S, s = np.flatnonzero(keep), np.sign(x[keep])
    best = _state(A, y, x, radius)
    for _ in range(ROUNDS):
        q = expit(-y * (A @ x))
        g, B = A.T @ (-y * q) / len(y), sp.csr_array(A[:, S])
        step, lam = _newton(B, q * (1 - q) / len(y), g[S], s, radius - float(s @ x[S]))
        t, blocked = _longest(x[S], step, s)
        x = x.copy()
        x[S] += t * step
        best = min(best, _state(A, y, x, radius), key=lambda state: abs(state[2]))
        if blocked is not None:
            x[S[blocked]] = 0.0
            S, s = np.delete(S, blocked), np.delete(s, blocked)
        elif np.abs(step).max() <= 1e-10 * np.abs(x).max():
            j = int(np.argmax(np.abs(g)))
            if j in S or np.abs(g[j]) <= lam * (1 + 1e-9):
                break
            S, s = np.append(S, j), np.append(s, -np.sign(g[j]))
    return best


def _newton(B: Any, weight: np.ndarray, g: np.ndarray, s: np.ndarray, short: float) -> tuple[np.ndarray, float]:
    """The step, and lambda: [H s; s' 0] [step; lambda] = [-g; R - s' x]."""
    k = len(s)
    K = np.zeros((k + 1, k + 1))
    K[:k, :k] = (B.T @ (sp.diags_array(weight) @ B)).toarray()
    K[range(k), range(k)] += 1e-14 * np.trace(K) / k
    K[:k, k] = K[k, :k] = s
    found = np.linalg.solve(K, np.append(-g, short))
    return found[:k], float(found[k])


def _longest(x: np.ndarray, step: np.ndarray, s: np.ndarray) -> tuple[float, int | None]:
    """The longest step that keeps the signs, at most 1, and the coordinate that is zero at its end."""
    against = s * step < 0
    ratio = np.full(len(x), np.inf)
    ratio[against] = np.maximum(0.0, s * x)[against] / np.abs(step[against])
    j = int(np.argmin(ratio))
    return (1.0, None) if ratio[j] >= 1 else (float(ratio[j]), j)


def _state(A: Any, y: np.ndarray, x: np.ndarray, radius: float) -> tuple[float, float, float]:
    """max |g|, f(x) and the gap, for x moved back onto the sphere after rounding."""
    z = y * (A @ x)
    g = A.T @ (-y * expit(-z)) / len(y)
    largest = float(np.abs(g).max())
    return largest, float(np.logaddexp(0, -z).mean()), float(x @ g + radius * largest)


def like_rcv1(n: int = 20_242, d: int = 47_236, seed: int = 0) -> Problem:
    """Rows like those of rcv1's training set: documents of two classes by a topic model, tf-idf, of length 1; 75 entries each.

    A word of a document comes from its class (8 %), from its topic (5 %), or from all words, all by Zipf's law. Of the first
    two kinds, 15 % come from the other class or from another topic.

    Examples
    --------
    >>> problem = like_rcv1(500, 2000)
    >>> problem.A.shape, problem.A.indices.dtype.name, np.unique(problem.y)
    ((500, 2000), 'int32', array([-1.,  1.]))
    >>> bool(np.allclose((problem.A ** 2).sum(axis=1), 1))
    True
    """
    rng, topics = np.random.default_rng(seed), 60
    own = min(2000, d)  # words of a class or topic
    vocabulary = np.array([rng.permutation(d)[:own] for _ in range(topics + 2)])  # the last two rows belong to the classes
    topic_class = rng.integers(0, 2, topics)
    topic, another = rng.integers(0, topics, (2, n))
    label = topic_class[topic]
    lengths = np.maximum(10, rng.lognormal(np.log(84) - 0.18, 0.6, n).astype(int))
    document = np.repeat(np.arange(n), lengths)
    word, kind, other = zipf(rng, d, 10.0, 1.1, len(document)), rng.random(len(document)), rng.random(len(document)) < 0.15
    classes = topics + np.where(other, 1 - label[document], label[document])
    source = np.where(kind < 0.08, classes, np.where(other, another[document], topic[document]))
    told = kind < 0.13
    word[told] = vocabulary[source[told], zipf(rng, own, 0.3, 1.0, int(told.sum()))]
    A = tf_idf(sp.csr_array((np.ones(len(word)), (document, word)), shape=(n, d)))
    y = 2.0 * label - 1
    return Problem("like rcv1", LinearModel(Logistic(), A, y), A, y)


def zipf(rng: np.random.Generator, d: int, shift: float, power: float, count: int) -> np.ndarray:
    """Numbers below d, j with probability proportional to (j + shift)^-power."""
    weights = np.cumsum((np.arange(d) + shift) ** -power)
    return np.searchsorted(weights, rng.random(count) * weights[-1]).clip(0, d - 1)


def tf_idf(counts: Any) -> Any:
    """(1 + log tf) log(n / df), each row of length 1; int32, which scipy's products prefer."""
    counts.sum_duplicates()
    n, d = counts.shape
    frequency = np.bincount(counts.indices, minlength=d)
    counts.data = (1 + np.log(counts.data)) * np.log(n / np.maximum(frequency, 1))[counts.indices]
    A = sp.csr_array(sp.diags_array(1 / np.sqrt((counts * counts).sum(axis=1))) @ counts)
    A.sort_indices()
    return sp.csr_array((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)
