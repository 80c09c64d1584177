"""The facts about the methods that have no row in the paper's Table 1."""

from __future__ import annotations

from extremal.methods.card import Card

ON_POLYTOPES = "strongly convex f over a polytope: n log(1/eps) component gradients, log(1/eps) LMOs"
NOT_A_ROW = "not a row of the paper's table"

BEYOND = {  # by class, in the order of lists
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
    "BoostFW": Card(
        "boost-fw", "toward a combination of vertices that follows the gradient", "Combettes, Pokutta 2020",
        convex=("n/eps", "K/eps"), full_gradients=True, big_batches=True, memory="0",
        note=(
            "K is the number of vertices in a step. If a share of the iterations has at least two, and f grows at least like the "
            "squared distance to its minimisers: n log(1/eps) component gradients, by short steps or an exact line search"
        ),
        correction=NOT_A_ROW,
    ),
    "BlockFW": Card(
        "block-fw", "one block of a product of sets per step", "Lacoste-Julien et al. 2013",
        convex=("n/eps", "1/eps"), full_gradients=True, big_batches=True, memory="n",
        note=(
            "one block of m, drawn at random, is 1/m of an LMO and, for objectives that give parts of their gradients, about n/m "
            "component gradients. With c the sum of the curvatures of the blocks, at most that of the whole, and r = c + f(x_0) "
            "- f*, bounds on means are f(x_k) - f* <= 2m r / (k + 2m), and 6m r / (K + 1) for the smallest gap of K steps"
        ),
        correction=NOT_A_ROW,
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
    "TrackedSagaFW": Card(
        "tracked-saga-fw", "the table of tracked-fw made unbiased; x goes back where f has not fallen", "this library",
        full_gradients=True, memory="3n + d k",
        note=(
            "f falls from each accepted full pass to the next. Strongly convex f over a polytope: f - f* shrinks by a constant "
            "factor in dim C + 4 full passes, from every start (Theorem C of docs/frontier-proofs.md), and full passes are at "
            "most 4 n / b iterations apart. The variance of the estimate is of fourth order in the way since a row was drawn"
        ),
    ),
    "AwaySFW": Card(
        "away-sfw", "away or pairwise steps with batches that grow", "Goldfarb et al. 2017, ASFW, PSFW",
        full_gradients=True, big_batches=True, memory="k d", needs=("L",),
        note=(
            "strongly convex f over a polytope: f - f* falls linearly in iterations, in expectation. The authors prove it for "
            "away and for pairwise steps; their constants were not looked up. Theorem D of docs/frontier-proofs.md has it for "
            "away steps and any growth above 1. Batches of n, which the growth reaches, are full gradients"
        ),
    ),
    "VRAwayFW": Card(
        "vr-away-fw", "away steps along variance-reduced gradients, in stages", "Goldfarb et al. 2016",
        full_gradients=True, big_batches=True, memory="k d", needs=("L",),
        note=(
            "strongly convex f over a polytope, gradient='svrg': f - f* halves in each epoch, in expectation, if epoch and batch "
            "are as large as in Theorem E of docs/frontier-proofs.md. Batches start far smaller, and grow up to n. Goldfarb, "
            "Iyengar, Zhou 2016 prove a linear rate for their semi-stochastic away steps. No theorem covers 'sarah' or 'saga'"
        ),
    ),
    "VRPairwiseFW": Card(
        "vr-pairwise-fw", "pairwise steps along variance-reduced gradients, in stages", "this library",
        full_gradients=True, big_batches=True, memory="k d", needs=("L",),
        note=(
            "no theorem covers it. Steps that do not swap atoms keep the inequality of docs/frontier-proofs.md, but no useful "
            "bound on the number of swaps is known"
        ),
    ),
    "VRBlendedFW": Card(
        "vr-blended-fw", "blended pairwise steps along variance-reduced gradients, in stages", "this library",
        full_gradients=True, big_batches=True, memory="k d", needs=("L",),
        note=(
            "strongly convex f over a polytope, gradient='svrg', over atoms: Theorem E of docs/frontier-proofs.md, as for "
            "vr-away-fw. Within faces, that theorem covers simplices. No theorem covers 'sarah' and 'saga'"
        ),
    ),
    "ShuffledSarahFW": Card(
        "shuffled-sarah-fw", "passes in random order, neither full gradients nor a table", "Beznosikov, Takac 2021",
        memory="3d",
        note=(
            "no rate is proven for Frank-Wolfe steps. Gradient steps of length 1 / (L (n + 1)) converge linearly for strongly "
            "convex f"
        ),
    ),
    "EF21FW": Card(
        "ef21-fw", "workers that send compressed gradients, with error feedback", "Richtarik et al. 2021",
        convex=("n/(a eps)", "1/(a eps)"), nonconvex=("n/(a eps)^2", "1/(a eps)^2"), full_gradients=True,
        big_batches=True, memory="2 m d",
        note=(
            "a is the contraction of the compressor, m the number of workers. The rates are for full gradients, and proved in "
            "docs/compression.md; with other estimators no theorem covers this pair"
        ),
        correction=NOT_A_ROW,
    ),
    "MarinaFW": Card(
        "marina-fw", "workers that send compressed changes of gradients, and rarely whole ones",
        "Gorbunov et al. 2021",
        convex=("n c/eps", "c/eps"), nonconvex=("n (c/eps)^2", "(c/eps)^2"), full_gradients=True,
        big_batches=True, memory="m d",
        note=(
            "c = 1 + sqrt(omega / (p m)), omega the variance constant of the compressor, m the number of workers. The rates are "
            "for full gradients, and proved in docs/compression.md; with other estimators no theorem covers this pair"
        ),
        correction=NOT_A_ROW,
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
