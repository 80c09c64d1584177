"""The named methods: each a gradient estimator, a move and a step rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from extremal import checks
from extremal.checks import InputError
from extremal.lazy import Named, attach

if TYPE_CHECKING:
    from extremal.methods.affine import MostFW
    from extremal.methods.atoms import AwayFW, BlendedPairwiseFW, FullyCorrectiveFW, InFaceFW, PairwiseFW
    from extremal.methods.auto import Auto
    from extremal.methods.base import Budget, Card, Method, Recipe
    from extremal.methods.classic import FrankWolfe, OnlineFW
    from extremal.methods.decentralised import DMFW
    from extremal.methods.epochs import SVRF, SpiderFW
    from extremal.methods.linear import LuFreundSFW, NegiarSFW
    from extremal.methods.low_rank import LowRankFW
    from extremal.methods.momentum import CoptMomentumSFW, MomentumSFW, OneSampleSFW
    from extremal.methods.newton import NewtonFW
    from extremal.methods.nonconvex_sliding import FCGS, NCGS, NCGSVR
    from extremal.methods.reddi import SFW, SVFW, SagaFW
    from extremal.methods.reduced_sliding import VRSliding
    from extremal.methods.riemannian import SVRFW, RiemannianSFW, SpiderRFW
    from extremal.methods.sarah import SagaSarahFW, SarahFW
    from extremal.methods.sliding import CGS, SCGS, STORC
    from extremal.methods.zeroth import FZCGS, FZFW
else:
    __getattr__, __dir__ = attach(__name__, {
        "affine": "MostFW",
        "atoms": "AwayFW BlendedPairwiseFW FullyCorrectiveFW InFaceFW PairwiseFW",
        "auto": "Auto",
        "base": "Budget Card Method Recipe",
        "classic": "FrankWolfe OnlineFW",
        "decentralised": "DMFW",
        "epochs": "SVRF SpiderFW",
        "linear": "LuFreundSFW NegiarSFW",
        "low_rank": "LowRankFW",
        "momentum": "CoptMomentumSFW MomentumSFW OneSampleSFW",
        "newton": "NewtonFW",
        "nonconvex_sliding": "FCGS NCGS NCGSVR",
        "reddi": "SFW SVFW SagaFW",
        "reduced_sliding": "VRSliding",
        "riemannian": "SVRFW RiemannianSFW SpiderRFW",
        "sarah": "SagaSarahFW SarahFW",
        "sliding": "CGS SCGS STORC",
        "zeroth": "FZCGS FZFW",
    })  # fmt: skip

__all__ = [
    "CGS", "DMFW", "FCGS", "FZCGS", "FZFW", "METHODS", "NCGS", "NCGSVR", "SCGS", "SFW", "STORC", "SVFW", "SVRF", "SVRFW",
    "Auto", "AwayFW", "BlendedPairwiseFW", "Budget", "Card", "CoptMomentumSFW", "FrankWolfe", "FullyCorrectiveFW", "InFaceFW",
    "LowRankFW", "LuFreundSFW", "Method", "MomentumSFW", "MostFW", "NegiarSFW", "NewtonFW", "OneSampleSFW", "OnlineFW",
    "PairwiseFW", "Recipe", "RiemannianSFW", "SagaFW", "SagaSarahFW", "SarahFW", "SpiderFW", "SpiderRFW", "VRSliding",
    "as_recipe",
]  # fmt: skip

METHODS: Mapping[str, Any] = Named(__name__, {  # names on the command line, in the order of the paper's Table 1
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
    if isinstance(method, type) or not hasattr(method, "prepare"):
        raise InputError(f"`{call}(method=...)` must be a method such as SarahFW() or a name, got {method!r}")
    return method
