"""Leading singular and eigenvectors of matrices that are known by products, with bounds on what was not found.

The method is Lanczos': an orthonormal basis of the Krylov space of a start, kept orthonormal by two passes over all of it,
and brought down to its best half when it is full (thick restarts; Wu, Simon 2000). Singular triples come from Lanczos on G'G
or GG', whichever is smaller: the bidiagonalisation of Golub and Kahan (1965), with one of its two bases kept.

What is known of the answer, for a symmetric A with eigenvalues l_1 >= l_2 >= ... and Ritz values t_1 >= t_2 >= ...:

- t_1 <= l_1, and some eigenvalue is within |A x - t_1 x| of t_1: proven. That this is the largest is not, and a small residual
  does not make it so.
- If s is the start, x the Ritz vector of t_1 = x'Ax, r = |A x - t_1 x| and a the component of s along an eigenvector of l_1,

      (l_1 - t_1) prod_j (l_1 - t_j) / (t_1 - t_j)  <=  r |s'x| / |a|,   j = 2, 3, ...

  (van Dorsselaer, Hochstenbach, van der Vorst 2000): x = p(A) s for a polynomial with zeros t_2, t_3, ..., which grows beyond
  t_1, so that x has at least |a| / |s'x| of what was not found. In restarts, s stands for what they leave of it, with the
  polynomial scaled to one at t_1. The start has independent normal entries, plus any other vector: |a| is below
  CHANCE sqrt(pi / 2) with a probability of at most CHANCE, whatever A is. So is the chance that the bound fails, and it fails
  by little: by a factor of c with a chance of CHANCE / c. The generator's seed is fixed, so that equal questions have equal
  answers; the chance is that of meeting a matrix that is orthogonal to this start.
- For A = G'G with a known |G|, l_1 is at most the larger eigenvalue of [[t_1, b], [b, w]], with the norm b of what the products
  leave beyond the basis, and w = |G|^2 - (trace of A on the basis): proven, and good if few directions carry most of G.

For k > 1 leading pairs a block of k + 2 starts is used. Some k eigenvalues sum up to t_1 + ... + t_k, up to
sqrt(k) |A X - X diag(t)|: proven. For larger ones to stay unseen, their vectors would have to be nearly orthogonal to all the
starts at once; ten times that margin is taken.

As for the number of products: with j of them, l_1 - t_1 > e l_1 for A >= 0 of size n has a chance of at most
1.648 sqrt(n) exp(-(2 j - 1) sqrt(e)) (Kuczynski, Wozniakowski 1992). A start near the answer finds it earlier, but says less of
what may lie beside it, by the same factor: the bound asks for as many products as from a random one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from extremal.points.low_rank import LowRank, RankOne
from extremal.points.vertex import Vertex
from extremal.sets.spectral.leading import EPS, leading
from extremal.sets.spectral.operators import SpectralProducts


@dataclass(frozen=True)
class Triple:
    """The leading singular triple of G."""

    sigma: float  # |G v|, at most the largest singular value
    upper: float  # at least the largest singular value, in the sense of the module's text
    left: np.ndarray  # u, of length one
    right: np.ndarray  # v, of length one
    residual: float  # |G' u - sigma v|
    steps: int  # products with G and with G', each


def leading_singular(A: SpectralProducts, near: Vertex | None, tol: float) -> Triple:
    """The leading singular triple of G, with upper <= sigma (1 + tol) unless there is no way to that."""
    m, n = A.shape
    if A.size == 0:
        return Triple(0.0, 0.0, np.eye(1, m)[0], np.eye(1, n)[0], 0.0, 0)
    there, back = (A.right, A.left) if n <= m else (A.left, A.right)
    start = _start(min(m, n), 1, near, of_left=m < n)
    found = leading(lambda V: back(there(V)), start, 1, 2 * tol, eps=A.eps, trace=A.square)
    v, image = found.vectors[:, 0], there(found.vectors)[:, 0]
    sigma = float(np.linalg.norm(image))
    upper = math.sqrt(max(sigma * sigma, float(found.values[0])) + found.slack)
    if sigma == 0:  # entries that cancel
        return Triple(0.0, A.unscaled(upper), np.eye(1, m)[0], np.eye(1, n)[0], 0.0, found.steps)
    left, right = (image / sigma, v) if n <= m else (v, image / sigma)
    return Triple(A.unscaled(sigma), A.unscaled(upper), left, right, A.unscaled(found.residual / sigma), found.steps)


@dataclass(frozen=True)
class Smallest:
    """Eigenpairs of the k smallest eigenvalues of sym(G) = (G + G') / 2."""

    values: np.ndarray  # Ritz values, smallest first
    low: float  # at most the sum of the k smallest eigenvalues, in the sense of the module's text
    vectors: np.ndarray  # d x k, orthonormal
    residual: float  # |sym(G) X - X diag(values)|
    steps: int  # products with G and with G', each, of a block of k vectors or a few more


def smallest(A: SpectralProducts, k: int, near: Vertex | None, tol: float) -> Smallest:
    """The k smallest eigenvalues of sym(G) and their vectors, up to ``tol`` times the largest magnitude of an eigenvalue."""
    start = _start(A.shape[0], min(A.shape[0], k + 2 if k > 1 else 1), near, of_left=False)
    terms = float(np.linalg.norm(A.right(start[:, :1])))  # about |G|: it may be far more than sym(G)
    found = leading(lambda V: -(A.right(V) + A.left(V)) / 2, start, k, tol, eps=A.eps, terms=terms)
    low = -min(float(found.values.sum()) + found.slack, math.sqrt(k * A.square))  # |sym(G)| <= |G|
    values = np.array([A.unscaled(float(-t)) for t in found.values])
    return Smallest(values, A.unscaled(low), found.vectors, A.unscaled(found.residual), found.steps)


def _start(n: int, b: int, near: Vertex | None, of_left: bool) -> np.ndarray:
    """Independent normal entries, plus an earlier answer's vectors where they fit, made about as long."""
    start = np.random.default_rng(0).standard_normal((n, b))
    if isinstance(near, (RankOne, LowRank)):
        earlier = near.left if of_left else near.right
        if len(earlier) == n:
            earlier = earlier.reshape(n, -1)[:, :b]
            start[:, : earlier.shape[1]] += math.sqrt(n) * earlier / np.maximum(np.linalg.norm(earlier, axis=0), EPS)
    return start
