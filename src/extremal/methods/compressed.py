"""Frank-Wolfe steps along compressed estimates: workers, each with a part of the rows, send messages to a server."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import SomeGradient, check_gradient
from extremal.gradients.compressed import EF21, Marina
from extremal.gradients.compressors import NoCompression, RandomK, TopK, as_compressor
from extremal.gradients.full import Full
from extremal.gradients.messages import Compressor
from extremal.gradients.reduced import Sarah
from extremal.gradients.workers import bounds
from extremal.methods.method import Budget, Checked, Method
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.steps.schedules import InverseSqrt, OpenLoop


class _OnWorkers(Checked):
    """Shared part: the estimator of the workers, and the default step."""

    compressor: Any
    workers: int | None
    gradient: SomeGradient | None
    batch: int | None
    step: Step | None

    def __post_init__(self):
        super().__post_init__()
        call = type(self).__name__
        if self.compressor is not None:
            checks.fix(self, compressor=as_compressor(call, self.compressor))
        if self.workers is not None:
            checks.whole(call, "workers", self.workers, 1)
        if self.gradient is not None:
            check_gradient(call, self.gradient)
        if self.gradient is not None and self.batch is not None:
            raise InputError(f"`{call}(batch=...)` is the batch of Sarah: give the batch of {self.gradient} there")

    def _crew(self, f: Objective) -> int:
        return min(4, f.n) if self.workers is None else self.workers

    def _own(self, f: Objective) -> SomeGradient:
        """The estimator of each worker: the given one, `Sarah` with the given batch, or full gradients."""
        if self.gradient is not None or self.batch is None:
            return self.gradient or Full()
        call, m = type(self).__name__, checks.whole(type(self).__name__, "workers", self._crew(f), 1, f.n)
        smallest = min(last - first for first, last in bounds(f.n, m))
        b = checks.whole(call, "batch", self.batch, 1, smallest)
        return Sarah(b, 2 * b / (smallest + 2 * b))

    def _made(self, gradient: SomeGradient, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        return Method(gradient, self.step or (OpenLoop() if f.convex else InverseSqrt())).prepare(f, C, budget)


@dataclass(frozen=True)
class EF21FW(_OnWorkers):
    """Frank-Wolfe with error feedback: m workers send compressed differences of their gradients.

        g_i <- g_i + C(grad f_i(x) - g_i),   g = (1/m) sum_i g_i,   s = lmo(g),   x <- x + eta_k (s - x)

    Worker i has the rows [n i/m, n (i+1)/m), and the mean of the f_i is f. An iteration takes n component gradients, one LMO and
    m messages; memory: 2 m d numbers. ``result.calls.numbers`` and ``result.calls.bytes`` are the entries and the bytes of all
    messages to the server; each worker gets the vertex of the step, which is not counted. The workers are simulated in one
    process.

    Parameters
    ----------
    compressor : Compressor or str, optional
        C: `TopK`, `RandomK`, `Natural`, or their names "top-10", "random-10", "natural". Default: `TopK` of a tenth of d.
    workers : int, optional
        m. Default: 4 (fewer if n < 4).
    gradient : Gradient, optional
        The estimator of each worker. Default: `Full`.
    batch : int, optional
        Instead of a gradient: each worker runs `Sarah` with batches of b.
    step : Step, optional
        Default: `OpenLoop` for convex f, `InverseSqrt` for others.

    References
    ----------
    Richtarik, Sokolov, Fatkhullin (2021), EF21, arXiv:2106.05203, for gradient steps.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((400, 50))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(400)))
    >>> r = ex.minimize(f, ex.L1Ball(2.0), method=ex.EF21FW("top-5"), max_iter=200, tol=0)
    >>> r.gap < 1e-2, r.calls.lmos, r.calls.numbers, r.calls.bytes              # 201 messages of 4 workers, 60 bytes each
    (True, 200, 4020, 48240)
    """

    compressor: Any = None
    workers: int | None = None
    gradient: SomeGradient | None = None
    batch: int | None = None
    step: Step | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        compressor = self.compressor or TopK(_tenth(f))
        return self._made(EF21(self._own(f), compressor, self._crew(f)), f, C, budget)


@dataclass(frozen=True)
class MarinaFW(_OnWorkers):
    """Frank-Wolfe with MARINA: m workers send compressed differences of consecutive gradients, and rarely whole gradients.

        g = grad f(x)                                                with probability p, and at the start
        g = g_prev + (1/m) sum_i Q(grad f_i(x) - grad f_i(x_prev))   otherwise
        s = lmo(g),   x <- x + eta_k (s - x)

    Worker i has the rows [n i/m, n (i+1)/m), and the mean of the f_i is f. An iteration takes n component gradients, one LMO and
    m messages; memory: m d numbers. ``result.calls.numbers`` and ``result.calls.bytes`` are the entries and the bytes of all
    messages to the server; each worker gets the vertex of the step, which is not counted. The workers are simulated in one
    process.

    Parameters
    ----------
    compressor : Compressor or str, optional
        Q, unbiased: `RandomK`, `Natural`, or their names "random-10", "natural". Default: `RandomK` of a tenth of d.
    workers : int, optional
        m. Default: 4 (fewer if n < 4).
    gradient : Gradient, optional
        The estimator of each worker. Default: `Full`.
    batch : int, optional
        Instead of a gradient: each worker runs `Sarah` with batches of b, as in VR-MARINA.
    p : float, optional
        Probability of whole gradients. Default: the bytes of a message over those of a whole vector, so that both kinds of
        messages take about the same bytes.
    step : Step, optional
        Default: `OpenLoop` for convex f, `InverseSqrt` for others.

    References
    ----------
    Gorbunov, Burlachenko, Li, Richtarik (2021), MARINA, arXiv:2102.07845, for gradient steps.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((400, 50))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(400)))
    >>> r = ex.minimize(f, ex.L1Ball(2.0), method=ex.MarinaFW("natural"), max_iter=200, tol=0)
    >>> r.gap < 1e-2, r.calls.lmos, r.calls.numbers, r.calls.bytes < 201 * 4 * 8 * 50 / 2
    (True, 200, 40200, True)
    """

    compressor: Any = None
    workers: int | None = None
    gradient: SomeGradient | None = None
    batch: int | None = None
    p: float | None = None
    step: Step | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.p is not None:
            checks.within("MarinaFW", "p", self.p, 0, 1)

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        compressor: Compressor = self.compressor or RandomK(_tenth(f))
        d = math.prod(f.shape)
        p = min(1.0, compressor.size(d) / NoCompression().size(d)) if self.p is None else self.p
        return self._made(Marina(self._own(f), compressor, p, self._crew(f)), f, C, budget)


def _tenth(f: Objective) -> int:
    return -(-math.prod(f.shape) // 10)
