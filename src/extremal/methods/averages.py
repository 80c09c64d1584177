"""Averages over time instead of large batches: momentum, and tables of derivatives."""

from __future__ import annotations

from dataclasses import dataclass

from extremal.gradients.momentum import Momentum, Storm
from extremal.gradients.substitute import Substitute
from extremal.gradients.table import Sag
from extremal.laws import PowerLaw
from extremal.methods.method import BatchAndStep, Budget, Method, root_batch
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.schedules import Decay, InverseSqrt, LuFreundStep, OpenLoop


@dataclass(frozen=True)
class MomentumSFW(BatchAndStep):
    """Stochastic Frank-Wolfe with momentum, as published: the whole average decays.

        g <- (1 - rho_t) g + rho_t (1/b) sum_{i in S} grad f_i(x),   x <- x + eta_t (lmo(g) - x)
        rho_t = 4 / (t + 8)^(2/3),  eta_t = 2 / (t + 7),   t = 1, 2, ...

    An iteration takes b component gradients and one LMO; memory O(d). `CoptMomentumSFW` is the variant of the copt package.

    Parameters
    ----------
    batch : int, optional
        b. Default: 1, as published.
    step : Step, optional
        Default: 2 / (k + 8) at iteration k = 0, 1, ..., as in public codes. Published forms differ (1/(t + 1), 9/(t + 8)).

    References
    ----------
    Mokhtari, Hassani, Karbasi (2020), Stochastic conditional gradient methods, JMLR 21.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.MomentumSFW(batch=20)
    MomentumSFW(batch=20, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        gradient = Momentum(root_batch("MomentumSFW", self.batch, f.n, 0))
        return Method(gradient, self.step or Decay(2, 8)).prepare(f, C, budget)


@dataclass(frozen=True)
class CoptMomentumSFW(BatchAndStep):
    """The variant that the copt package calls MHK: the momentum changes only the derivatives of the batch.

        c_i <- c_i + rho_t (phi'(<a_i, x>) - c_i)  for i in S,   g = (1/n) A' c,   x <- x + 2 / (t + 8) (lmo(g) - x)
        rho_t = (2 / (t + 8))^(2/3),   t = 0, 1, ...

    This is a table method (n numbers), not the published one: entries that are not drawn do not decay. The library has it
    because some papers label its curves with Mokhtari et al. An iteration takes b component gradients and one LMO.

    Parameters
    ----------
    batch : int, optional
        b. Default: 1.
    step : Step, optional
        Default: 2 / (t + 8).

    References
    ----------
    copt 0.9, minimize_sfw(variant="MHK").

    Examples
    --------
    >>> import extremal as ex
    >>> ex.CoptMomentumSFW(batch=20)
    CoptMomentumSFW(batch=20, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        rho = PowerLaw(2 ** (2 / 3), 8, -2 / 3)
        gradient = Sag(root_batch("CoptMomentumSFW", self.batch, f.n, 0), rho)
        return Method(gradient, self.step or Decay(2, 8)).prepare(f, C, budget)


@dataclass(frozen=True)
class OneSampleSFW(BatchAndStep):
    """One-sample stochastic Frank-Wolfe (1-SFW) in its oblivious form: the STORM estimator.

        g <- grad f_S(x) + (1 - rho_t) (g - grad f_S(x_prev)),   x <- x + eta_t (lmo(g) - x),   t = 1, 2, ...
        convex f: rho_t = eta_t = 1/t;   non-convex f (from memory): rho_t = (t - 1)^(-2/3) (1 at t = 1), eta = T^(-2/3)

    The start takes b component gradients; an iteration takes 2b and one LMO. Memory is O(d).

    Parameters
    ----------
    batch : int, optional
        b. Default: 1, as published.
    step : Step, optional
        Default: as above.

    References
    ----------
    Zhang, Shen, Mokhtari, Hassani, Karbasi (2020), One sample stochastic Frank-Wolfe, arXiv:1910.04322. The same update is
    ORGFW of Xie et al. (2020).

    Examples
    --------
    >>> import extremal as ex
    >>> ex.OneSampleSFW()
    OneSampleSFW(batch=None, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        rho = PowerLaw(1, 1, -1) if f.convex else PowerLaw(1, 1e-9, -2 / 3)  # at estimate j = t - 1
        step = Decay(1, 1) if f.convex else InverseSqrt(power=2 / 3)
        gradient = Storm(root_batch("OneSampleSFW", self.batch, f.n, 0), rho)
        return Method(gradient, self.step or step).prepare(f, C, budget)


@dataclass(frozen=True)
class NegiarSFW(BatchAndStep):
    """Stochastic Frank-Wolfe with the SAG estimator.

        c_i <- phi'(<a_i, x>)  for i in S,   g = (1/n) A' c,   x <- x + 2/(t + 2) (lmo(g) - x),   initially c = 0

    The method refreshes the table before the LMO, at the current x. An iteration takes b component gradients and one LMO. The
    table has n numbers. The paper covers linear models; for other finite sums the table has n gradients.

    Parameters
    ----------
    batch : int, optional
        b. Default: 1.
    step : Step, optional
        Default: 2 / (t + 2).

    References
    ----------
    Negiar, Dresdner, Tsai, El Ghaoui, Locatello, Freund, Pedregosa (2020), arXiv:2002.11860.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.NegiarSFW(batch=20)
    NegiarSFW(batch=20, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = root_batch("NegiarSFW", self.batch, f.n, 0)
        return Method(Sag(b), self.step or OpenLoop()).prepare(f, C, budget)


@dataclass(frozen=True)
class LuFreundSFW(BatchAndStep):
    """Generalised stochastic Frank-Wolfe with a substitute gradient.

        g = (1/n) sum_i phi'(sigma_i) a_i,   s = lmo(g),   x <- x + gamma_t (s - x)
        sigma_i <- sigma_i + theta_t (<a_i, s> - sigma_i)  for i in S,   initially sigma_i = <a_i, x0>
        theta_t = 2m / (2m + t + 1),   gamma_t = 2 (2m + t) / ((t + 1) (4m + t)),   m = n/b

    The method takes no derivative at an iterate. The start takes n component gradients; an iteration takes b and one LMO.
    Memory: 2n numbers. Only linear models are accepted.

    Parameters
    ----------
    batch : int, optional
        b. Default: 1, as published.
    step : Step, optional
        Default: gamma_t.

    References
    ----------
    Lu, Freund (2021), arXiv:1807.07680; with m = n/b for batches, as in the copt package.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.LuFreundSFW(batch=20)
    LuFreundSFW(batch=20, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = root_batch("LuFreundSFW", self.batch, f.n, 0)
        return Method(Substitute(b), self.step or LuFreundStep()).prepare(f, C, budget)
