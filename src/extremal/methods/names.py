"""Methods by name."""

from __future__ import annotations

from collections.abc import Mapping

from extremal import checks
from extremal.checks import InputError
from extremal.methods.base import Recipe
from extremal.support.lazy import Named

METHODS: Mapping[str, type] = Named("extremal.methods", {  # names on the command line, in the order of the paper's Table 1
    "frank-wolfe": "FrankWolfe",
    "online-fw": "OnlineFW",
    "scgs": "SCGS",
    "cgs": "CGS",
    "sfw": "SFW",
    "svfw": "SVFW",
    "saga-fw": "SagaFW",
    "svrf": "SVRF",
    "storc": "STORC",
    "ncgs": "NCGS",
    "ncgs-vr": "NCGSVR",
    "spider-fw": "SpiderFW",
    "fzfw": "FZFW",
    "fzcgs": "FZCGS",
    "fcgs": "FCGS",
    "momentum-sfw": "MomentumSFW",
    "copt-momentum-sfw": "CoptMomentumSFW",
    "one-sample-sfw": "OneSampleSFW",
    "negiar-sfw": "NegiarSFW",
    "lu-freund-sfw": "LuFreundSFW",
    "most-fw": "MostFW",
    "riemannian-sfw": "RiemannianSFW",
    "svrfw": "SVRFW",
    "spider-rfw": "SpiderRFW",
    "dmfw": "DMFW",
    "sarah-fw": "SarahFW",
    "saga-sarah-fw": "SagaSarahFW",
    "away-fw": "AwayFW",  # these have no row there
    "pairwise-fw": "PairwiseFW",
    "blended-pairwise-fw": "BlendedPairwiseFW",
    "fully-corrective-fw": "FullyCorrectiveFW",
    "in-face-fw": "InFaceFW",
    "newton-fw": "NewtonFW",
    "auto": "Auto",
    "low-rank-fw": "LowRankFW",
    "vr-sliding": "VRSliding",
})  # fmt: skip


def as_recipe(call: str, method: Recipe | str | None) -> Recipe:
    """The method that was asked for: an object, a name from ``METHODS``, or `Auto` if left open."""
    if method is None:
        return METHODS["auto"]()
    if isinstance(method, str):
        return METHODS[checks.one_of("method", method, METHODS)]()
    if checks.lacks(method, "prepare"):
        raise InputError(f"`{call}(method=...)` must be a method such as SarahFW() or a name, got {method!r}")
    return method
