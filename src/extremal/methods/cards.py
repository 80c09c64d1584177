"""The facts about each method, in one place: the paper's Table 1 and more. Docstrings and the command line show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extremal.support.lazy import Named


@dataclass(frozen=True)
class Card:
    """The facts about a method: a row of the paper's Table 1."""

    name: str  # its name on the command line
    summary: str  # one line of text
    source: str  # authors, year, algorithm
    memory: str  # stored numbers beyond a few vectors of length d
    convex: tuple[str, str] | None = None  # SFO and LMO complexity for convex f, O(...); None: no guarantee
    nonconvex: tuple[str, str] | None = None  # the same for the gap of non-convex f
    no_rate: bool = False  # for non-convex f, the method converges without a rate
    full_gradients: bool = False  # whether the method needs them
    big_batches: bool = False  # whether theory needs batches that grow with the accuracy or with n
    needs: tuple[str, ...] = ()  # constants that the method has to know: L, D, sigma
    note: str = ""  # remarks, and doubts about constants; without rates, the known facts instead
    correction: str = ""  # a difference from the paper's table, and its reason
    smallest: Card | None = None  # the row of the same method at b = 1, if the table has one

    @property
    def guarantee(self) -> str:
        """The row as a paragraph."""
        if not (self.convex or self.nonconvex or self.no_rate):
            return f"Guarantee: {self.note}."
        whose = "" if self.correction else ", as in the paper's Table 1"
        said = [f"Guarantee{whose}: {self._rates}", self.note, self.correction]
        if self.smallest is not None:
            said += [f"at b = 1: {self.smallest._rates}", self.smallest.correction]
        return " ".join(f"{_capital(text)}." for text in said if text)

    @property
    def _rates(self) -> str:
        other = "convergence without a rate" if self.no_rate else _calls(self.nonconvex)
        return f"convex f: {_calls(self.convex)}; non-convex f: {other}"


def _calls(cells: tuple[str, str] | None) -> str:
    return "none" if cells is None else f"{cells[0]} component gradients, {cells[1]} LMOs"


def _capital(text: str) -> str:
    """The text with a capital letter, unless it begins with a formula."""
    return text[0].upper() + text[1:] if text[1].isalpha() else text


ON_POLYTOPES = "strongly convex f over a polytope: n log(1/eps) component gradients, log(1/eps) LMOs"
NOT_A_ROW = "not a row of the paper's table"


CARDS = {  # by class, in the order of the paper's Table 1
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
    # the methods below have no row in Table 1
    "AwayFW": Card(
        "away-fw", "away steps over an active set", "Lacoste-Julien, Jaggi 2015",
        convex=("n/eps", "1/eps"), nonconvex=("n/eps^2", "1/eps^2"), full_gradients=True, big_batches=True, memory="k d",
        note=ON_POLYTOPES, correction=NOT_A_ROW,
    ),
    "PairwiseFW": Card(
        "pairwise-fw", "pairwise steps over an active set", "Lacoste-Julien, Jaggi 2015",
        convex=("n/eps", "1/eps"), nonconvex=("n/eps^2", "1/eps^2"), full_gradients=True, big_batches=True, memory="k d",
        note=ON_POLYTOPES, correction=NOT_A_ROW,
    ),
    "BlendedPairwiseFW": Card(
        "blended-pairwise-fw", "pairwise steps between atoms, blended with Frank-Wolfe steps", "Tsuji, Tanaka, Pokutta 2022",
        convex=("n/eps", "1/eps"), nonconvex=("n/eps^2", "1/eps^2"), full_gradients=True, big_batches=True, memory="k d",
        note=ON_POLYTOPES, correction=NOT_A_ROW,
    ),
    "FullyCorrectiveFW": Card(
        "fully-corrective-fw", "all weights optimised after every new vertex", "Holloway 1974",
        convex=("n/eps", "1/eps"), nonconvex=("n/eps^2", "1/eps^2"), full_gradients=True, big_batches=True, memory="k n",
        note=ON_POLYTOPES, correction=NOT_A_ROW,
    ),
    "InFaceFW": Card(
        "in-face-fw", "pairwise steps inside the face that holds x", "Garber, Meshi 2016",
        convex=("n/eps", "1/eps"), nonconvex=("n/eps^2", "1/eps^2"), full_gradients=True, big_batches=True, memory="0",
        note=(
            "strongly convex f over a polytope with 0/1 vertices: n log(1/eps) component gradients, log(1/eps) LMOs; for other "
            "vertices the rate needs blended=True: otherwise steps may become so short that the run stalls"
        ),
        correction=NOT_A_ROW,
    ),
    "TrackedFW": Card(
        "tracked-fw", "tables read at the current point by their Taylor terms, steps within faces; no parameter", "this library",
        memory="3n + d k",
        note=(
            "no global rate is proven. The error of the estimate is of second order in the way since a row was drawn. A step "
            "with exact curvature lowers f by gap^2 / (2 h (1 + M gap / (3 h))) or more, less the step times that error"
        ),
    ),
    "SagaFaceFW": Card(
        "saga-face-fw", "the SAGA estimator, steps within faces; no parameter", "this library",
        full_gradients=True, memory="2n + 2d",
        note="no rate is proven; linear rates of pairwise stochastic steps (Goldfarb, Iyengar, Zhou 2017) need growing batches",
    ),
    "NewtonFW": Card(
        "newton-fw", "Newton steps over the vertices in use", "Liu, Cevher, Tran-Dinh 2022",
        full_gradients=True, big_batches=True, memory="k^2",
        note=(
            "f falls in every step once all rows are in; convergence is quadratic if f is strongly convex on the face of the "
            "solution and the method has found this face"
        ),
    ),
    "Auto": Card(
        "auto", "the method for the problem at hand", "this library",
        full_gradients=True, big_batches=True, memory="by choice",
        note="the guarantee of the chosen method, and never a point worse than x0",
    ),
    "LowRankFW": Card(
        "low-rank-fw", "corrections over the factors of a matrix", "Laue 2012; Zhang et al. 2012",
        convex=("n/eps", "1/eps"), nonconvex=("n/eps^2", "1/eps^2"), full_gradients=True, big_batches=True, memory="(m + n) r",
        note=(
            "over nuclear balls only; the rates are those of Frank-Wolfe steps, since every step decreases f at least as much. "
            "The method is far faster if the solution has low rank"
        ),
        correction=NOT_A_ROW,
    ),
    "VRSliding": Card(
        "vr-sliding", "proximal steps of length 1/L along variance-reduced gradients", "Lan, Zhou 2016; Defazio et al. 2014",
        convex=("n + L/eps", "n/b + L/(b eps)"), memory="n",
        note=(
            "the rates are for the plain form with SAGA or SVRG, over any set, with one LMO per step and one per new atom. "
            "Strongly convex f: (n + L/mu) log(1/eps) component gradients. The accelerated form is proven for SVRG; with the "
            "other estimators it has only been measured"
        ),
        correction=NOT_A_ROW,
    ),
}  # fmt: skip

METHODS: Mapping[str, type] = Named("extremal.methods", {card.name: kind for kind, card in CARDS.items()})  # by name
