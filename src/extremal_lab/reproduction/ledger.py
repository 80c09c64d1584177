"""The paper's claims and one of this library's, the measurements, and a verdict by a rule that the code states and applies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.methods import METHODS
from extremal_lab.reproduction.contests import figure_rows, has_ours, well
from extremal_lab.reproduction.plan import Panel
from extremal_lab.reproduction.rates import GRIDS, LOGISTIC, RATES, SLACK
from extremal_lab.reproduction.report import label
from extremal_lab.reproduction.spec import OURS, Figure, transient
from extremal_lab.reproduction.studies import Finding
from extremal_lab.reproduction.verdicts import (
    COMPARABLE,
    HOLDS,
    NOT,
    PART,
    REFUTED,
    UNDECIDED,
    Row,
    Verdict,
    by_share,
    row,
)

SAME = 3.0  # errors within this factor are called the same
COMMAND = "extremal reproduce"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and its judgement here."""

    short: str  # for a table
    text: str
    where: str
    rule: str  # when the claim holds
    target: str  # the target of `extremal reproduce`
    judge: Callable[[Finding], Verdict]


def judge(
    done: Sequence[tuple[Figure, Sequence[Panel]]],
    studies: Sequence[Finding],
    table2: dict[str, Any] | None = None,
    options: str = "",
) -> list[Row]:
    """A row for each claim about the given figures and studies; ``options`` are those of the command behind them."""
    rows = [
        row((claim.short, claim.text), claim.where, claim.rule, claim.judge(study), study.on, f"{COMMAND} {study.name}{options}")
        for study in studies
        for claim in CLAIMS
        if claim.target == study.name
    ]
    rows += [made for figure, panels in done for made in figure_rows(figure, panels, f"{COMMAND} {figure.name}{options}")]
    convex = [panel for _, panels in done for panel in panels if panel.convex and panel.problem.loss == LOGISTIC]
    names = " ".join(figure.name for figure, _ in done)
    rows += [well(convex, f"{COMMAND} {names}{options}")] if has_ours(convex) else []
    return rows + ([_sizes(table2)] if table2 else [])


# rates


def _rate(index: int) -> Callable[[Finding], Verdict]:
    rate = RATES[index]

    def judged(found: Finding) -> Verdict:
        fits = {m: found.numbers[rate, m] for m in GRIDS[rate.grid].methods}
        text = "; ".join(f"{label(m)}: n^{fit.n} eps^-{fit.eps}" for m, fit in fits.items())
        ours = [fit for m, fit in fits.items() if m.split(":")[0] in OURS]
        most = f"n^{max(fit.n.mean for fit in ours):.2f} eps^-{max(fit.eps.mean for fit in ours):.2f}"
        return Verdict(_of_three([exponent.holds for fit in ours for exponent in (fit.n, fit.eps)]), most, text)

    return judged


def _of_three(held: Sequence[bool | None]) -> str:
    """All hold, some do, some do not and none does, or nothing is decided; the word also counts undecided ones."""
    if True not in held and False not in held:
        return UNDECIDED
    word = HOLDS if all(held) else PART if True in held else NOT
    return word if None not in held else f"{word}; {held.count(None)} of {len(held)} undecided"


def _big_batches(found: Finding) -> Verdict:
    """A short step with the good rate at b = 1 refutes the claim, also by proof; no run can show that the claim holds."""
    _, most, text = _rate(8)(found)
    held = [found.numbers[RATES[8], m].n.holds for m in GRIDS[RATES[8].grid].methods]
    seen = NOT if any(held) else f"{REFUTED}; {'undecided' if None in held else 'not seen'} here"
    cards = ", ".join(f"{label(m)}: {METHODS[m].card.smallest.correction}" for m in OURS)
    return Verdict(seen, most, f"with the step c / sqrt K, c from b and n (SmallBatch), at b = 1: {text}. By proof: {cards}")


# batches, starts, memory


def _any_batch(found: Finding) -> Verdict:
    errors, (early, late) = found.numbers["errors"], found.numbers["budgets"]
    gains = {key[:3]: errors[*key[:3], early] / errors[*key[:3], late] for key in errors}
    least = min(gains, key=lambda key: gains[key])
    number = f"{sum(g > 2 for g in gains.values())} of {len(gains)} cases"
    text = (
        f"from {early:g} to {late:g} passes the error fell more than 2 times in {number} (two problems, both algorithms, "
        f"batches 1 to n): from {gains[least]:.1f} times (batch {least[2]}, "
        f"{label(least[1])}, {least[0]}) to {max(gains.values()):.0f} times"
    )
    return Verdict(by_share([gain > 2 for gain in gains.values()]), number, text)


def _same_gradients(found: Finding) -> Verdict:
    errors, (_, late) = found.numbers["errors"], found.numbers["budgets"]
    ratios = {m: errors[LOGISTIC, m, "1", late] / errors[LOGISTIC, m, "sqrt", late] for m in OURS}
    text = "; ".join(f"{label(m)}: error at b = 1 over error at b = sqrt n {ratio:.2f}" for m, ratio in ratios.items())
    return Verdict(by_share([ratio <= SAME for ratio in ratios.values()]), f"{max(ratios.values()):.2f} times", text)


def _no_full_gradient(found: Finding) -> Verdict:
    passes, ends = found.numbers["passes"], found.numbers["ends"]
    ratios = {p: cold / first for p, (first, _, cold) in ends.items()}
    above = ", ".join(f"{p.key}: {ratio:.3g}" for p, ratio in ratios.items() if ratio > COMPARABLE)
    number = f"{sum(ratio <= COMPARABLE for ratio in ratios.values())} of {len(ratios)} problems"
    text = (
        f"f - f_min of Algorithm 2 without any full gradient over that of Algorithm 1: at most {COMPARABLE:g} on {number}; "
        f"median {np.median(list(ratios.values())):.2f}, from {min(ratios.values()):.2f} to {max(ratios.values()):.3g}"
    )
    if above:
        left = " and ".join(f"{transient(m, passes):.1e} for {label(m)}" for m in OURS)
        text += f"; above it: {above}. The constant steps leave exp(-N/8n) and exp(-N/16n) of the start's error: here {left}"
    return Verdict(by_share([ratio <= COMPARABLE for ratio in ratios.values()]), number, text)


def _cheaper(found: Finding) -> Verdict:
    pairs = [(one, two) for one, two, _ in found.numbers["cost"].values()]
    ones, twos = zip(*pairs, strict=True)
    text = f"component gradients an iteration over b: Algorithm 1 {min(ones):.2f} to {max(ones):.2f}, Algorithm 2 {max(twos):.2f}"
    return Verdict(by_share([two < one for one, two in pairs]), f"{max(twos):.2f} b against {min(ones):.2f} b", text)


def _table_memory(found: Finding) -> Verdict:
    extra, n, d = (found.numbers[name] for name in ("extra", "n", "d"))
    if n < 1000 or d < 10:
        return Verdict(UNDECIDED, f"n = {n}, d = {d}", f"n = {n}, d = {d}: too small for a table to be seen")
    general = extra["separable", "saga-sarah-fw"] / (n * d)
    linear = {m: extra["linear", m] / n for m in ("saga-sarah-fw", "negiar-sfw", "lu-freund-sfw")}
    each = ", ".join(f"{label(m)} {size:.1f} n" for m, size in linear.items())
    text = f"beyond Algorithm 1, n = {n}, d = {d}: Algorithm 2 {general:.2f} n d for general sums; for linear models only {each}"
    said = HOLDS if min(linear.values()) > d / 2 else PART if general > 0.5 else NOT
    return Verdict(said, f"{general:.2f} n d; linear models {min(linear.values()):.1f} n", text)


def _sizes(table2: dict[str, Any]) -> Row:
    """The paper's Table 2 against the data."""
    same = {row[0]: (row[1], row[2]) == (row[4], row[5]) for row in table2["rows"] if row[5] != "-"}
    wrong = [row for row in table2["rows"] if not same.get(row[0], True)]
    number = f"{sum(same.values())} of {len(same)} data sets"
    text = f"as printed for {number} that are here"
    text += "".join(f"; {row[0]}: printed n = {row[2]}, the file {row[3]} has n = {row[5]}" for row in wrong)
    verdict = Verdict(by_share(list(same.values())) if same else UNDECIDED, number, text)
    claim = "Table 2: sizes of the data sets", "The sizes of the data sets (Table 2)."
    return row(claim, "Section 5", "n and d as printed", verdict, "", f"{COMMAND} table2")


_EXPONENT = (
    f"for both algorithms the 95 % intervals of both exponents end at most {SLACK:g} above the claimed ones (an exponent whose "
    "interval begins above that does not hold, any other one is undecided)"
)


def _claimed(index: int, where: str) -> Claim:
    short = f"{RATES[index].grid[0].upper()}{RATES[index].grid[1:]}: O({RATES[index].text})"
    return Claim(short, f"{short}, up to logarithms.", where, _EXPONENT, "rates", _rate(index))


CLAIMS = (
    _claimed(0, "Corollary 1, Table 1"),
    _claimed(1, "Corollary 1, Section 4.1"),
    _claimed(2, "Corollary 1, Section 4.1"),
    _claimed(3, "Corollary 1, Section 4.1"),
    _claimed(4, "Corollary 2, Table 1"),
    _claimed(5, "Corollary 2, Table 1"),
    _claimed(6, "Corollary 2, Table 1"),
    _claimed(7, "Corollary 2, Table 1"),
    Claim("Non-convex: large batches are required",
          "Non-convex f: large batches are required for the better dependence of the component gradients on n.",
          "Section 2, Small batches", "no step has at b = 1 the exponent of n that b = sqrt n has: runs can only refute it",
          "rates", _big_batches),
    Claim("Any batch size converges", "The algorithms converge with all sizes of batches.",
          "Section 2, Small batches", "the error falls more than 2 times over an 8 (quick) or 16 times larger budget",
          "batches", _any_batch),
    Claim("Convex: b up to sqrt n costs the same gradients",
          "Convex f: for every b up to sqrt n the number of component gradients is the same.",
          "Section 4.1", f"the error at b = 1 is at most {SAME:g} times that at b = sqrt n, at equal gradients", "batches",
          _same_gradients),
    Claim("Algorithm 2 matches Algorithm 1", "Algorithm 2, which needs no full gradient, matches Algorithm 1.",
          "Section 4.2", f"f - f_min at the end at most {COMPARABLE:g} times Algorithm 1's, on all convex problems",
          "starts", _no_full_gradient),
    Claim("Algorithm 2 needs fewer gradients a step",
          "An iteration of Algorithm 2 needs fewer component gradients than one of Algorithm 1 (2b against p n + 2b (1 - p)).",
          "Section 4.2", "counted, on every problem", "starts", _cheaper),
    Claim("Tables need O(nd) more memory", "Algorithm 2, Negiar et al. and Lu & Freund need O(nd) more memory.",
          "Section 4.2", "the extra memory is of order n d for general sums and for linear models", "memory", _table_memory),
)  # fmt: skip
