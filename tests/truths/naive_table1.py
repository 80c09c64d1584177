"""The other methods of Table 1 written down as naively as possible, from the papers' boxes as methods.md has them.

An estimator answers g_j for j = 0, 1, ...; component gradients are dense vectors, tables are n x d arrays, sums are plain loops.
Nothing of the library is used: rows, steps and constants are handed in. k counts iterations from 1 within the formulas.
"""

from itertools import count, islice
from math import exp

import numpy as np
from naive import lmo


def mean(problem, rows, x):
    """(1/b) sum over rows of grad f_i(x); a row drawn twice counts twice."""
    total = np.zeros(problem.d)
    for i in rows:
        total += problem.component(i, x)
    return total / len(rows)


def positions(length):
    """(t, k, N_t) of the iterations 0, 1, ...: epoch t = 0, 1, ..., place k = 1, ..., N_t in it."""
    for t in count():
        for k in range(1, length(t) + 1):
            yield t, k, length(t)


# estimators: problem, rows of estimate j, then their own; called with j, the last point, this point, the last vertex


def fresh(problem, rows):
    return lambda j, x_prev, x, s: mean(problem, rows(j), x)


def pool(problem, order, b):
    """Hazan-Kale: all components seen so far, at the new point."""
    return lambda j, x_prev, x, s: mean(problem, order[: min(problem.n, b * (j + 1))], x)


def momentum(problem, rows, rho):
    """Mokhtari et al.: d <- (1 - rho_t) d + rho_t grad f_B(x), d = 0 at first, t = 1, 2, ..."""
    d = np.zeros(problem.d)

    def at(j, x_prev, x, s):
        nonlocal d
        d = (1 - rho(j + 1)) * d + rho(j + 1) * mean(problem, rows(j), x)
        return d

    return at


def storm(problem, rows, rho):
    """Zhang et al., oblivious: d <- (1 - rho_t) (d - grad f_B(x_prev)) + grad f_B(x), d_1 = grad f_B(x_1)."""
    d = None

    def at(j, x_prev, x, s):
        nonlocal d
        new = mean(problem, rows(j), x)
        d = new if j == 0 else (1 - rho(j + 1)) * (d - mean(problem, rows(j), x_prev)) + new
        return d

    return at


def svrg(problem, rows, length):
    where, w, gw = positions(length), None, None

    def at(j, x_prev, x, s):
        nonlocal w, gw
        _, k, _ = next(where)
        if k == 1:
            w, gw = x, problem.gradient(x)
            return gw
        return mean(problem, rows(j), x) - mean(problem, rows(j), w) + gw

    return at


def spider(problem, rows, length, restart=None):
    where, v = positions(length), None

    def at(j, x_prev, x, s):
        nonlocal v
        _, k, _ = next(where)
        if k == 1:
            v = problem.gradient(x) if restart is None else mean(problem, restart(j), x)
        else:
            v = v + mean(problem, rows(j), x) - mean(problem, rows(j), x_prev)
        return v

    return at


def sag(problem, rows, rho=lambda j: 1.0):
    """Negiar et al.; with rho, copt's MHK: y_i <- y_i + rho (grad f_i(x) - y_i) for drawn rows only, once each."""
    y = np.zeros((problem.n, problem.d))

    def at(j, x_prev, x, s):
        for i in set(rows(j)):
            y[i] += rho(j) * (problem.component(i, x) - y[i])
        return y.sum(axis=0) / problem.n

    return at


def saga(problem, rows, refreshed):
    """Reddi et al., Algorithm 4: batch I for the estimate, batch J for the table."""
    y = np.zeros((problem.n, problem.d))

    def at(j, x_prev, x, s):
        if j == 0:
            for i in range(problem.n):
                y[i] = problem.component(i, x)
            return problem.gradient(x)
        v, old = np.zeros(problem.d), y.sum(axis=0) / problem.n
        for i in rows(j):
            v += problem.component(i, x) - y[i]
        for i in refreshed(j):
            y[i] = problem.component(i, x)
        return v / len(rows(j)) + old

    return at


def derivative(loss, sigma, y):
    """phi'(sigma, y)."""
    if loss == "logistic":
        return -y / (1 + exp(y * sigma))
    q = 1 / (1 + exp(sigma))
    return 2 * (y - q) * q * (1 - q)


def substitute(problem, loss, rows, b):
    """Lu-Freund: sigma_i tracks <a_i, s>, never <a_i, x>; theta_t = 2m / (2m + t + 1), m = n/b, t = 0, 1, ..."""
    n, m, sigma = problem.n, problem.n / b, np.zeros(problem.n)

    def at(j, x_prev, x, s):
        if j == 0:
            for i in range(n):
                sigma[i] = problem.A[i] @ x
        else:
            theta = 2 * m / (2 * m + (j - 1) + 1)
            for i in set(rows(j)):
                sigma[i] += theta * (problem.A[i] @ s - sigma[i])
        r = np.zeros(problem.d)
        for i in range(n):
            r += derivative(loss, sigma[i], problem.y[i]) * problem.A[i]
        return r / n

    return at


# loops: they yield (x_k, g_k) for k = 0, 1, ...


def vertex_steps(estimate, x0, R, eta):
    x = np.array(x0, float)
    g = estimate(0, None, x, None)
    for k in count():
        yield x, g
        s = lmo(g, R)
        x_prev, x = x, x + eta(k) * (s - x)
        g = estimate(k + 1, x_prev, x, s)


def cndg(g, u, beta, eta, R):
    """min over the ball of <g, v> + beta/2 |v - u|^2 to a gap of eta; and the number of LMOs."""
    u_t, t = np.array(u), 0
    while True:
        t += 1
        slope = g + beta * (u_t - u)
        v = lmo(slope, R)
        V = slope @ (u_t - v)
        if V <= eta:
            return u_t, t
        alpha = min(1.0, V / (beta * ((v - u_t) @ (v - u_t))))
        u_t = u_t + alpha * (v - u_t)


def plain_sliding(estimate, x0, R, beta, eta):
    x, lmos = np.array(x0, float), 0
    g = estimate(0, None, x, None)
    for j in count(1):
        yield x, g, lmos
        x_prev = x
        x, t = cndg(g, x, beta, eta, R)
        lmos += t
        g = estimate(j, x_prev, x, None)


def accelerated_sliding(estimate, x0, R, gamma, beta, eta, length=None):
    """Lan-Zhou: z = (1-gamma) y + gamma x, x <- CndG(g(z), x), y <- (1-gamma) y + gamma x; yields y and g at the next z.

    With epochs (STORC) all sequences start anew from y after each; gamma, beta, eta are given (t, k, N_t). Epoch 0 is the
    vertex of the first gradient (Hazan-Luo, Algorithm 2: w_0 = argmin <grad f(x), w>).
    """
    x = y = z = np.array(x0, float)
    lmos = 0
    g = estimate(0, None, z, None)
    where = positions(length) if length else ((0, k, None) for k in count(1))
    for j in count(1):
        yield y, g, lmos
        t, k, n_t = next(where)
        x, calls = (lmo(g, R), 1) if length and t == 0 else cndg(g, x, beta(t, k, n_t), eta(t, k, n_t), R)
        lmos += calls
        y = (1 - gamma(k)) * y + gamma(k) * x
        if k == n_t:
            x = y
        z_prev, z = z, y if k == n_t else (1 - gamma(k + 1)) * y + gamma(k + 1) * x
        g = estimate(j, z_prev, z, None)


def double_sliding(estimate, x0, R, alpha, beta, beta_y, eta):
    """Qu-Li-Xu, Algorithm 3: y takes a proximal step of its own, from z."""
    x = y = z = np.array(x0, float)
    lmos = 0
    g = estimate(0, None, z, None)
    for k in count(1):
        yield y, g, lmos
        x, one = cndg(g, x, beta(k), eta, R)
        y, two = cndg(g, z, beta_y, eta, R)
        lmos += one + two
        z_prev, z = z, (1 - alpha(k + 1)) * y + alpha(k + 1) * x
        g = estimate(k, z_prev, z, None)


def first(run, K):
    """The states 0, ..., K."""
    return list(islice(run, K + 1))
