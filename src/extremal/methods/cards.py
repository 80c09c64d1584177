"""The facts about each method, in one place: the paper's Table 1 and more. Docstrings and the command line show them."""

from __future__ import annotations

from collections.abc import Mapping

from extremal.methods.card import Card
from extremal.methods.cards_beyond import BEYOND
from extremal.support.lazy import Named

CARDS = {  # by class, in the order of the paper's Table 1, then the others
    "FrankWolfe": Card(
        "frank-wolfe", "full gradients", "Frank, Wolfe 1956, Lacoste-Julien 2016",
        convex=("n/eps", "1/eps"), nonconvex=("n/eps^2", "1/eps^2"), full_gradients=True, big_batches=True, memory="0",
        needs=("L if non-convex",),
    ),
    "OnlineFW": Card(
        "online-fw", "a growing pool of components, all evaluated in each round", "Hazan, Kale 2012",
        convex=("1/eps^4", "1/eps^2"), big_batches=True, memory="n indices",
        note="the exponent 1/2 of the step is from memory",
    ),
    "SCGS": Card(
        "scgs", "accelerated sliding with batches that grow like k^3", "Lan, Zhou 2016, SCGS",
        convex=("1/eps^2", "1/eps"), big_batches=True, memory="2d", needs=("L", "D", "sigma"),
    ),
    "CGS": Card(
        "cgs", "accelerated sliding with full gradients", "Lan, Zhou 2016, CGS",
        convex=("n/sqrt(eps)", "1/eps"), full_gradients=True, big_batches=True, memory="2d", needs=("L", "D"),
    ),
    "SFW": Card(
        "sfw", "fresh batches of T rows for T iterations", "Reddi et al. 2016, Alg. 2",
        nonconvex=("1/eps^4", "1/eps^2"), big_batches=True, memory="0",
        note="the constants of the step are from memory",
    ),
    "SVFW": Card(
        "svfw", "the SVRG estimator, for non-convex f", "Reddi et al. 2016, Alg. 3",
        nonconvex=("n + n^(2/3)/eps^2", "1/eps^2"), full_gradients=True, big_batches=True, memory="2d",
    ),
    "SagaFW": Card(
        "saga-fw", "the SAGA estimator, for non-convex f", "Reddi et al. 2016, Alg. 4",
        nonconvex=("n/eps^2", "1/eps^2"), full_gradients=True, big_batches=True, memory="n, or nd",
        note="the authors claim n + n^(1/3)/eps^2; the paper shows a gap in that proof",
        correction="at b = n^(2/3) a second-moment bound on the table gives n + n^(2/3)/eps^2, where the paper has n/eps^2",
    ),
    "SVRF": Card(
        "svrf", "the SVRG estimator in epochs that double", "Hazan, Luo 2016, SVRF",
        convex=("~n + 1/eps^2", "1/eps"), full_gradients=True, big_batches=True, memory="2d",
        note="the constants are from memory",
    ),
    "STORC": Card(
        "storc", "the SVRG estimator inside accelerated sliding", "Hazan, Luo 2016, STORC",
        full_gradients=True, big_batches=True, memory="4d", needs=("L", "D"),
        note=(
            "not a row of the paper's table; the constants are from memory and belong to the authors' case grad f(x*) = 0. Their "
            "rate n + 1/eps^1.5 for smooth Lipschitz f requires batches that depend on the Lipschitz constant"
        ),
    ),
    "NCGS": Card(
        "ncgs", "non-convex accelerated sliding with fresh batches", "Qu, Li, Xu 2018, Alg. 3",
        nonconvex=("1/eps^4", "1/eps^4"), big_batches=True, memory="2d", needs=("L",),
        note="for |G|^2 ~ eps^2 of the gradient mapping G; lambda_k and m_k are from memory",
    ),
    "NCGSVR": Card(
        "ncgs-vr", "non-convex sliding with the SVRG estimator", "Qu, Li, Xu 2018, Alg. 4",
        nonconvex=("n + n^(2/3)/eps^2", "1/eps^4"), full_gradients=True, big_batches=True, memory="2d", needs=("L",),
        note="for |G|^2 ~ eps^2 of the gradient mapping G",
    ),
    "SpiderFW": Card(
        "spider-fw", "the SPIDER estimator; epochs that double for convex f, of sqrt(n) for others",
        "Yurtsever, Sra, Cevher 2019",
        convex=("n + 1/eps^2", "1/eps"), nonconvex=("n + sqrt(n)/eps^2", "1/eps^2"), full_gradients=True, big_batches=True,
        memory="d",
    ),
    "FZFW": Card(
        "fzfw", "the SPIDER estimator from function values", "Gao, Huang 2020, Alg. 1",
        nonconvex=("n + sqrt(n)/eps^2", "1/eps^2"), full_gradients=True, big_batches=True, memory="d",
        note="the rates count gradients; function values are 2d times as many",
        correction="the authors count values, d sqrt(n)/eps^2; the paper's table omits the factor d",
    ),
    "FZCGS": Card(
        "fzcgs", "non-convex sliding with the SPIDER estimator from function values", "Gao, Huang 2020, Alg. 2",
        nonconvex=("n + sqrt(n)/eps^2", "1/eps^4"), full_gradients=True, big_batches=True, memory="d", needs=("L",),
        note="the rates count gradients, for |G|^2 ~ eps^2 of the gradient mapping G; function values are 2d times as many",
        correction="the authors count values, d sqrt(n)/eps (|G|^2 ~ eps); the paper's table omits the factor d",
    ),
    "FCGS": Card(
        "fcgs", "non-convex sliding with the SPIDER estimator", "Gao, Huang 2020, FCGS",
        nonconvex=("n + sqrt(n)/eps^2", "1/eps^4"), full_gradients=True, big_batches=True, memory="d", needs=("L",),
        note="the paper's row for Alg. 2 of Gao and Huang counts this method; for |G|^2 ~ eps^2 of the gradient mapping G",
    ),
    "MomentumSFW": Card(
        "momentum-sfw", "momentum on fresh batches", "Mokhtari, Hassani, Karbasi 2020",
        convex=("1/eps^3", "1/eps^3"), memory="d",
        note="the step has several published variants",
    ),
    "CoptMomentumSFW": Card(
        "copt-momentum-sfw", "momentum on a table of derivatives, drawn entries only; not the published method",
        "copt 0.9, variant MHK",
        memory="n, or nd",
        note="nothing is proven about it",
    ),
    "OneSampleSFW": Card(
        "one-sample-sfw", "the STORM estimator: momentum carried along by the same batch", "Zhang et al. 2020, 1-SFW",
        convex=("1/eps^2", "1/eps^2"), nonconvex=("1/eps^3", "1/eps^3"), memory="d",
        correction="non-convex f: 1/eps^3 by the authors' abstract, where the paper's table has no guarantee",
    ),
    "NegiarSFW": Card(
        "negiar-sfw", "the SAG estimator: a table of derivatives, refreshed by batches", "Negiar et al. 2020",
        convex=("n/eps", "n/eps"), no_rate=True, memory="n, or nd",
        note=(
            "for linear models; a worst case, since the rate depends on the data. The paper counts a table of nd numbers, which "
            "linear models do not need"
        ),
    ),
    "LuFreundSFW": Card(
        "lu-freund-sfw", "a substitute gradient, at margins that follow the vertices", "Lu, Freund 2021",
        convex=("n/eps", "n/eps"), memory="2n",
        note="linear models only; the start costs n component gradients",
    ),
    "MostFW": Card(
        "most-fw", "the STORM estimator, and a smoothed penalty for a second, affine constraint", "Akhtar, Rajawat 2021, MOST-FW",
        convex=("1/eps^2", "1/eps^2"), memory="d",
        note="the constants of gamma, eta and mu are from memory; the certificate is that of f over the set alone",
    ),
    "RiemannianSFW": Card(
        "riemannian-sfw", "on manifolds, fresh batches of K rows for K iterations; SFW in flat space", "Weber, Sra 2022, Alg. 2",
        convex=("1/eps^4", "1/eps^2"), nonconvex=("1/eps^4", "1/eps^2"), big_batches=True, memory="0",
        note="batch and step are from memory; convex means convex along geodesics",
    ),
    "SVRFW": Card(
        "svrfw", "on manifolds, the SVRG estimator; SVFW in flat space", "Weber, Sra 2022, Alg. 3",
        convex=("n + n^(2/3)/eps^2", "1/eps^2"), nonconvex=("n + n^(2/3)/eps^2", "1/eps^2"), full_gradients=True,
        big_batches=True, memory="2d",
        note="batch, epoch and step are from memory; convex means convex along geodesics",
    ),
    "SpiderRFW": Card(
        "spider-rfw", "on manifolds, the SPIDER estimator without full gradients", "Weber, Sra 2022, Alg. 4",
        convex=("1/eps^3", "1/eps^2"), nonconvex=("1/eps^3", "1/eps^2"), big_batches=True, memory="d",
        note="the constants of both batches and of the epoch are our choice (1); convex means convex along geodesics",
    ),
    "DMFW": Card(
        "dmfw", "agents on a graph: the STORM estimator, gradient tracking, averages with the neighbours",
        "Hou et al. 2022, DMFW",
        convex=("1/eps^2", "1/eps^2"), nonconvex=("exp(1/eps)", "exp(1/eps)"), memory="5 m d for m agents",
        note="the order of the consensus steps and the constants are from memory; one agent is Storm with the steps of DMFW",
    ),
    "SarahFW": Card(
        "sarah-fw", "variance-reduced, any batch, occasional full gradients, memory O(d)", "Beznosikov et al. 2024, Alg. 1",
        convex=("~n + sqrt(n)/eps", "~sqrt(n) + 1/eps"), nonconvex=("n + sqrt(n)/eps^2", "1/eps^2"), full_gradients=True,
        big_batches=True, memory="d",
        note="at b = sqrt(n), up to logarithms",
        smallest=Card(
            "sarah-fw, b = 1", "the same with batches of one component", "Beznosikov et al. 2024, Alg. 1",
            convex=("~n + sqrt(n)/eps", "~n + sqrt(n)/eps"), nonconvex=("n/eps^2", "n/eps^2"), full_gradients=True, memory="d",
            note="at b = 1",
            correction="n + sqrt(n)/eps^2 SFO for non-convex f with the step SmallBatch, where the paper has n/eps^2",
        ),
    ),
    "SagaSarahFW": Card(
        "saga-sarah-fw", "variance-reduced, any batch, no full gradients, a table of n derivatives",
        "Beznosikov et al. 2024, Alg. 2",
        convex=("~n + sqrt(n)/eps", "~sqrt(n) + 1/eps"), nonconvex=("n + sqrt(n)/eps^2", "1/eps^2"), big_batches=True,
        memory="n, or nd",
        note="at b = sqrt(n), up to logarithms",
        smallest=Card(
            "saga-sarah-fw, b = 1", "the same with batches of one component", "Beznosikov et al. 2024, Alg. 2",
            convex=("~n + sqrt(n)/eps", "~n + sqrt(n)/eps"), nonconvex=("n/eps^2", "n/eps^2"), memory="n, or nd",
            note="at b = 1",
            correction="n + sqrt(n)/eps^2 SFO for non-convex f with the step SmallBatch, where the paper has n/eps^2",
        ),
    ),
    **BEYOND,
}  # fmt: skip

METHODS: Mapping[str, type] = Named("extremal.methods", {card.name: kind for kind, card in CARDS.items()})  # by name
