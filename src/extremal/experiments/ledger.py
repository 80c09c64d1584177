"""The paper's claims, what was measured, and a verdict by a rule that is stated and applied by the code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.experiments.plan import Panel
from extremal.experiments.rates import Fit
from extremal.experiments.report import label
from extremal.experiments.spec import OURS, Figure
from extremal.experiments.studies import Finding

HOLDS, PART, NOT, UNKNOWN = "holds", "holds in part", "does not hold here", "not measured"
COMPARABLE = 2.0  # f - f_min at the end within this factor of the best baseline's
Verdict = tuple[str, str]  # the verdict, what was measured
Findings = dict[str, Finding]


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how it is judged here."""

    text: str
    where: str
    rule: str  # when it holds
    target: str  # what to reproduce
    judge: Callable[[Findings], Verdict]

    def row(self, found: Findings) -> dict[str, str]:
        """As the page and the ledger show it."""
        verdict, measured = self.judge(found) if self.target in found else (UNKNOWN, "")
        return {
            "claim": self.text, "where": self.where, "rule": self.rule, "measured": measured, "verdict": verdict,
            "command": f"extremal reproduce {self.target}",
        }  # fmt: skip


def judge(
    done: Sequence[tuple[Figure, Sequence[Panel]]], studies: Sequence[Finding], table2: dict[str, Any] | None = None
) -> list[dict[str, str]]:
    """A row for each claim that the given figures and studies bear on."""
    found = {study.name: study for study in studies}
    rows = [claim.row(found) for claim in CLAIMS if claim.target in found]
    rows += [_figure_row(figure, panels) for figure, panels in done]
    convex = [panel for _, panels in done for panel in panels if panel.convex]
    return rows + ([_well(convex)] if convex else []) + ([_sizes(table2)] if table2 else [])


# rates


def _rate(claim: str, claimed: float) -> Callable[[Findings], Verdict]:
    def judged(found: Findings) -> Verdict:
        fits = {m: found["rates"].numbers[f"{claim}, {m}"] for m in OURS}
        other = found["rates"].numbers.get(f"{claim}, frank-wolfe")
        shown = fits if other is None else fits | {"frank-wolfe": other}
        text = "; ".join(f"{label(m)}: {_interval(fit)}" for m, fit in shown.items())
        return _by_count([fit.reaches(claimed) for fit in fits.values()]), text

    return judged


def _interval(fit: Fit) -> str:
    return f"{fit.slope:.2f} (95 %: {fit.low:.2f} to {fit.high:.2f})"


def _by_count(held: Sequence[bool]) -> str:
    return HOLDS if all(held) else PART if any(held) else NOT


# batches, starts, memory


def _any_batch(found: Findings) -> Verdict:
    gains = found["batches"].numbers["gains"]
    early, late = found["batches"].numbers["budgets"]
    least = min(gains, key=gains.get)
    text = (
        f"{len(gains)} cases (two problems, both algorithms, batches 1 to n): from {early:g} to {late:g} passes the error fell "
        f"{gains[least]:.1f} (batch {least[2]}, {label(least[1])}, {least[0]}) to {max(gains.values()):.0f} times"
    )
    return _by_count([gain > 2 for gain in gains.values()]), text


def _no_full_gradient(found: Findings) -> Verdict:
    ends = found["starts"].numbers["ends"]
    ratios = [cold / first for first, _, cold in ends.values()]
    text = (
        f"f - f_min of Algorithm 2 without any full gradient over that of Algorithm 1: median {np.median(ratios):.2f}, "
        f"from {min(ratios):.2f} to {max(ratios):.2f} over {len(ratios)} problems"
    )
    return _by_count([ratio <= COMPARABLE for ratio in ratios]), text


def _table_memory(found: Findings) -> Verdict:
    numbers = found["memory"].numbers
    extra, n, d = numbers["extra"], numbers["n"], numbers["d"]
    linear, general = extra["linear", "saga-sarah-fw"], extra["separable", "saga-sarah-fw"]
    text = (
        f"Algorithm 2 beyond Algorithm 1, n = {n}, d = {d}: {general / (n * d):.2f} n d numbers for general sums, but only "
        f"{linear / n:.1f} n for linear models; Negiar et al. {extra['linear', 'negiar-sfw'] / n:.1f} n"
    )
    return (HOLDS if linear > n * d / 2 else PART if general > n * d / 2 else NOT), text


# the figures


def _figure_row(figure: Figure, panels: Sequence[Panel]) -> dict[str, str]:
    choices = {"own steps against own steps": ("theory", "theory")}
    if figure.factors:
        choices |= {"own steps against tuned baselines": ("theory", "tuned"), "all tuned": ("tuned", "tuned")}
    ratios = {text: [_ratio(panel, *steps) for panel in panels] for text, steps in choices.items()}
    held = [ratio <= COMPARABLE for ratio in next(iter(ratios.values()))]
    text = "; ".join(f"{text}: {_places(panels, found)}" for text, found in ratios.items())
    return {
        "claim": f"Both algorithms are superior or comparable to the baselines ({figure.title}).",
        "where": "Section 5, Appendix D",
        "rule": "f - f_min at the end of the better of the two, own steps for all, at most twice the best baseline's",
        "measured": text,
        "verdict": _by_count(held),
        "command": f"extremal reproduce {figure.name}",
    }


def _well(panels: Sequence[Panel]) -> dict[str, str]:
    """Whether the two algorithms, with their own steps, end below where they started."""
    ends = [
        (f"{panel.source.data} {panel.problem.set} {label(c.method)}", c.final < c.runs[0]["value"][0])
        for panel in panels
        for c in panel.curves
        if c.method in OURS and c.steps == "theory"
    ]
    above = [name for name, below in ends if not below]
    text = f"below the start in {len(ends) - len(above)} of {len(ends)} cases"
    text += f"; above it: {', '.join(above)}" if above else ""
    return {
        "claim": "The algorithms perform well on different l1-constrained logistic regression problems, with nothing to tune.",
        "where": "Section 6",
        "rule": "with their own steps both end below the value at the start, on every problem that was run",
        "measured": text,
        "verdict": _by_count([below for _, below in ends]),
        "command": "extremal reproduce fig1 fig3 fig4 fig5",
    }


def _sizes(table2: dict[str, Any]) -> dict[str, str]:
    """The paper's Table 2 against the data."""
    same = {row[0]: (row[1], row[2]) == (row[4], row[5]) for row in table2["rows"] if row[5] != "-"}
    wrong = [row for row in table2["rows"] if not same.get(row[0], True)]
    text = f"as printed for {sum(same.values())} of {len(same)} data sets that are here"
    text += "".join(f"; {row[0]}: printed n = {row[2]}, the file {row[3]} has n = {row[5]}" for row in wrong)
    return {
        "claim": "The sizes of the data sets (Table 2).", "where": "Section 5", "rule": "n and d as printed", "measured": text,
        "verdict": _by_count(list(same.values())) if same else UNKNOWN, "command": "extremal reproduce table2",
    }  # fmt: skip


def _ratio(panel: Panel, ours: str, theirs: str) -> float:
    """The better of the two algorithms over the best baseline."""
    best = min(panel.excess(c) for c in panel.curves if c.method in OURS and c.steps == ours)
    return best / min(panel.excess(c) for c in panel.curves if c.method not in OURS and c.steps == theirs)


def _places(panels: Sequence[Panel], ratios: Sequence[float]) -> str:
    each = ", ".join(f"{panel.source.data} {ratio:.2g}" for panel, ratio in zip(panels, ratios, strict=True))
    return f"comparable on {sum(ratio <= COMPARABLE for ratio in ratios)} of {len(ratios)} (ratio: {each})"


_EXPONENT = "the 95 % interval of the fitted exponent reaches the claimed one, or a better one, for both algorithms"

CLAIMS = (
    Claim(
        "Convex f: the error falls like 1/eps^1 in component gradients (exponent -1 of the error).",
        "Theorems 1 and 3, Corollary 1", _EXPONENT, "rates", _rate("convex, eps", -1.0),
    ),
    Claim(
        "Convex f, b = 1: sqrt(n)/eps component gradients (exponent 1/2 of the error in n, at equal gradients).",
        "Corollary 1, Table 1", _EXPONENT, "rates", _rate("convex, n", 0.5),
    ),
    Claim(
        "Convex f, b = sqrt n: 1/eps LMO calls beyond the first sqrt(n) log (exponent 0 in n, at equal LMO calls).",
        "Corollary 1, Section 4.1", _EXPONENT, "rates", _rate("convex, LMO", 0.0),
    ),
    Claim(
        "Non-convex f: the smallest gap falls like eps^2 (exponent -1/2 in component gradients).",
        "Theorems 2 and 4", _EXPONENT, "rates", _rate("non-convex, eps", -0.5),
    ),
    Claim(
        "Non-convex f, b = sqrt n: sqrt(n)/eps^2 component gradients (exponent 1/4 of the gap in n).",
        "Corollary 2, Table 1", _EXPONENT, "rates", _rate("non-convex, n, b = sqrt n", 0.25),
    ),
    Claim(
        "Non-convex f, b = 1: n/eps^2 component gradients (exponent 1/2 of the gap in n).",
        "Corollary 2, Table 1", _EXPONENT, "rates", _rate("non-convex, n, b = 1", 0.5),
    ),
    Claim(
        "Non-convex f, b = sqrt n: 1/eps^2 LMO calls (exponent 0 of the gap in n, at equal LMO calls).",
        "Corollary 2, Table 1", _EXPONENT, "rates", _rate("non-convex, LMO", 0.0),
    ),
    Claim(
        "The algorithms converge with all sizes of batches.",
        "Section 2, Small batches", "the error falls by more than 2 over a budget 8 to 16 times larger, in every case",
        "batches", _any_batch,
    ),
    Claim(
        "Algorithm 2, which needs no full gradient, matches Algorithm 1.",
        "Section 4.2", f"f - f_min at the end at most {COMPARABLE:g} times Algorithm 1's, on every problem", "starts",
        _no_full_gradient,
    ),
    Claim(
        "Algorithm 2, Negiar et al. and Lu & Freund need O(nd) more memory.",
        "Section 4.2", "the extra memory is of order n d for general sums and for linear models", "memory", _table_memory,
    ),
)  # fmt: skip
