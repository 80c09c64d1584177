"""Algorithms 1 and 2 of "Sarah Frank-Wolfe" written down as naively as possible, to compare the library with.

Component gradients are formed one by one as dense vectors, the table is an n x d array, sums are plain loops. Nothing of the
library is used: rows, coins and steps are handed in as functions of k. Symbols are the paper's.
"""

from math import ceil, exp, sqrt

import numpy as np
from scipy.optimize import minimize


def logistic_value(a, y, x):
    return np.logaddexp(0.0, -y * (a @ x))  # log(1 + exp(-y <a, x>)), y in {-1, 1}


def logistic_grad(a, y, x):
    return -y * a / (1.0 + exp(y * (a @ x)))


def nlls_value(a, y, x):
    return (y - 1.0 / (1.0 + exp(a @ x))) ** 2  # y in {0, 1}


def nlls_grad(a, y, x):
    q = 1.0 / (1.0 + exp(a @ x))
    return -2.0 * (y - q) * (-q * (1.0 - q)) * a  # dq/dx = -q (1 - q) a


def squared_value(a, y, x):
    return 0.5 * (a @ x - y) ** 2


def squared_grad(a, y, x):
    return (a @ x - y) * a


class Problem:
    """f(x) = (1/n) sum_i f_i(x), f_i(x) = loss(a_i, y_i, x)."""

    def __init__(self, name, A, y):
        self.f_i, self.grad_i = {
            "logistic": (logistic_value, logistic_grad),
            "nlls": (nlls_value, nlls_grad),
            "squared": (squared_value, squared_grad),
        }[name]
        self.A, self.y = np.array(A, dtype=float), np.array(y, dtype=float)
        self.n, self.d = self.A.shape

    def value(self, x):
        return sum(self.f_i(self.A[i], self.y[i], x) for i in range(self.n)) / self.n

    def component(self, i, x):
        return self.grad_i(self.A[i], self.y[i], x)

    def gradient(self, x):
        total = np.zeros(self.d)
        for i in range(self.n):
            total += self.component(i, x)
        return total / self.n


def lmo(g, R):
    """argmin of <g, s> over the l1 ball of radius R; the smallest index wins ties, and g_j = 0 gives +R e_j."""
    j = 0
    for i in range(len(g)):
        if abs(g[i]) > abs(g[j]):
            j = i
    s = np.zeros(len(g))
    s[j] = -R if g[j] > 0 else R
    return s


def algorithm1(problem, x0, R, K, b, p, eta, rows, coin):
    """Yield (x^k, g^k) of Sarah Frank-Wolfe for k = 0, ..., K."""
    x = np.array(x0, dtype=float)
    g = problem.gradient(x)
    yield x, g
    for k in range(K):
        s = lmo(g, R)
        x_new = x + eta(k) * (s - x)
        if coin(k) < p:
            g = problem.gradient(x_new)
        else:
            total = np.zeros(problem.d)
            for i in rows(k):
                total += problem.component(i, x_new) - problem.component(i, x)
            g = g + total / b
        x = x_new
        yield x, g


def algorithm2(problem, x0, R, K, b, lam, eta, rows, i0=None):
    """Yield (x^k, g^k, y^k) of Saga Sarah Frank-Wolfe for k = 0, ..., K; given a row i0, from g^0 = grad f_i0(x^0), y^0 = 0."""
    n, x = problem.n, np.array(x0, dtype=float)
    if i0 is None:
        y = np.array([problem.component(i, x) for i in range(n)])
        g = problem.gradient(x)
    else:
        y = np.zeros((n, problem.d))
        g = problem.component(i0, x)
    yield x, g, y
    for k in range(K):
        s = lmo(g, R)
        x_new = x + eta(k) * (s - x)
        sarah, saga = np.zeros(problem.d), np.zeros(problem.d)
        for i in rows(k):  # a row drawn twice counts twice
            sarah += problem.component(i, x_new) - problem.component(i, x)
            saga += problem.component(i, x) - y[i]
        g = sarah / b + (1 - lam) * g + lam * (saga / b + y.sum(axis=0) / n)
        y = y.copy()
        for i in rows(k):
            y[i] = problem.component(i, x_new)
        x = x_new
        yield x, g, y


def probability(n, b):
    return 2 * b / (n + 2 * b)  # p n = 2 (1 - p) b, before Corollary 1


def momentum(n, b):
    return b / (2 * n)  # Theorem 3


def theorem1_step(p, K):
    """k -> eta_k of Theorem 1."""

    def eta(k):
        if K <= 2 / p or k < ceil(K / 2):
            return p / 2
        return 2 / (4 / p + k - ceil(K / 2))

    return eta


def theorem3_step(n, b, K):
    """k -> eta_k of Theorem 3."""

    def eta(k):
        if K <= 4 * n / b or k < ceil(K / 2):
            return b / (4 * n)
        return 2 / (8 * n / b + k - ceil(K / 2))

    return eta


def nonconvex_step(K):
    """k -> eta_k of Theorems 2 and 4."""
    return lambda k: 1 / sqrt(K)


def constants1(L, Lt, D, p, b):
    """(c, M) of Theorem 1's proof: E[f - f* + M |grad f - g|^2] obeys r_{k+1} <= (1 - eta_k) r_k + c eta_k^2."""
    noise = Lt / L * sqrt((1 - p) / (p * b))
    return L * D**2 * (1 / 2 + 3 * noise), 2 / (p * L * noise)  # M = 2 alpha / (p L), alpha = 1 / noise


def constants2(L, Lt, D, p, b):
    """(c, M) of Theorem 2's proof: eta gap_k <= h_k - h_{k+1} + c eta^2 in expectation, with h = f - f* + M |grad f - g|^2."""
    noise = Lt / L * sqrt((1 - p) / (p * b))
    return L * D**2 * (1 / 2 + 2 * noise), 1 / (p * L * noise)  # M = alpha / (p L)


def constants3(L, Lt, D, n, b):
    """(c, M1, M2) of Theorem 3's proof, where M2 (1/n) sum_j |grad f_j - y_j|^2 is added to what Theorem 1 bounds."""
    lam, alpha = momentum(n, b), b * L / (5 * Lt * sqrt(n))
    M1 = 2 * alpha / (lam * L)
    return L * D**2 * (1 / 2 + 10 * Lt * sqrt(n) / (L * b)), M1, 8 * M1 * lam**2 * n / b**2


def constants4(L, Lt, D, n, b):
    """(c, M1, M2) of Theorem 4's proof."""
    lam, alpha = momentum(n, b), b * L / (3 * Lt * sqrt(n))
    M1 = alpha / (lam * L)
    return L * D**2 * (1 / 2 + 6 * Lt * sqrt(n) / (L * b)), M1, 4 * M1 * lam**2 * n / b**2


def recursion(r0, c, eta, K):
    """r_0, ..., r_K of r_{k+1} = (1 - eta_k) r_k + c eta_k^2."""
    r = [r0]
    for k in range(K):
        r.append((1 - eta(k)) * r[-1] + c * eta(k) ** 2)
    return np.array(r)


def minimum(problem, R):
    """The smallest value over the l1 ball, certified for convex f: from x = u - v with u, v >= 0, from several starts."""
    d, best = problem.d, []
    for seed in range(5):
        found = minimize(
            lambda w: problem.value(w[:d] - w[d:]),
            np.random.default_rng(seed).random(2 * d) * R / (2 * d),
            jac=lambda w: np.kron([1, -1], problem.gradient(w[:d] - w[d:])),
            bounds=[(0, None)] * 2 * d,
            constraints={"type": "ineq", "fun": lambda w: R - w.sum(), "jac": lambda w: -np.ones(2 * d)},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        x = found.x[:d] - found.x[d:]
        g = problem.gradient(x)
        gap = g @ (x - lmo(g, R))
        assert gap <= 1e-6
        best.append(problem.value(x) - gap)
    return min(best)
