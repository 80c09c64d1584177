"""Figures judged: the paper's two algorithms, and methods without a parameter, against the best baseline on each problem."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from extremal_lab.reproduction.plan import Panel
from extremal_lab.reproduction.report import label
from extremal_lab.reproduction.spec import FREE, OURS, Figure
from extremal_lab.reproduction.verdicts import COMPARABLE, Row, Verdict, by_share, row

Ratios = list[tuple[str, float]]  # a case, and f - f_min at the end over that of the best baseline


def figure_rows(figure: Figure, panels: Sequence[Panel], command: str) -> list[Row]:
    """The paper's claim about a figure, and this library's claim about methods without a parameter."""
    papers = [replace(panel, curves=tuple(c for c in panel.curves if c.method not in figure.added)) for panel in panels]
    return _papers_row(figure, papers, command) + _free_rows(figure, panels, command)


def has_ours(panels: Sequence[Panel]) -> bool:
    """Whether one of the paper's two algorithms was run with its own parameters."""
    return any(curve.method in OURS for panel in panels for curve in panel.curves)


# the paper's two algorithms


def _papers_row(figure: Figure, panels: Sequence[Panel], command: str) -> list[Row]:
    """Each of the two algorithms against the best baseline; no row without an algorithm or a baseline."""
    if not has_ours(panels) or all(curve.method in OURS for panel in panels for curve in panel.curves):
        return []
    choices = {"own steps against own steps": ("own", "own")}
    if figure.tuned:
        choices |= {"own steps against tuned baselines": ("own", "tuned"), "all tuned": ("tuned", "tuned")}
    ratios = {text: _ratios(panels, OURS, *steps) for text, steps in choices.items()}
    text = "; ".join(
        [f"own steps, against each baseline: {_against(panels, OURS)}", *(f"{t}: {_places(r)}" for t, r in ratios.items())]
    )
    rule = f"own steps: f - f_min at the end at most {COMPARABLE:g} times the best baseline's, each algorithm on each problem"
    claim = f"Both algorithms are superior or comparable to the baselines ({figure.title})."
    short = f"{_number(figure)}: superior or comparable to the baselines"
    held = [ratio <= COMPARABLE for _, ratio in ratios["own steps against own steps"]]
    verdict = Verdict(by_share(held), f"{sum(held)} of {len(held)} cases", text)
    return [row((short, claim), "Section 5, Appendix D", rule, verdict, _on(panels), command)]


def well(panels: Sequence[Panel], command: str) -> Row:
    """Whether the two algorithms, with their own steps, end below where they started."""
    ends = [
        (f"{panel.source.name} {panel.problem.set} {label(c.method)}", c.final < c.start)
        for panel in panels
        for c in panel.curves
        if c.method in OURS and c.steps == "own"
    ]
    above = [name for name, below in ends if not below]
    number = f"{len(ends) - len(above)} of {len(ends)} cases"
    text = f"below the start in {number}"
    text += f"; above it: {', '.join(above)}" if above else ""
    claim = "The algorithms perform well on different l1-constrained logistic regression problems, with nothing to tune."
    rule = "with their own steps both end below the value at the start, on every problem that was run"
    verdict = Verdict(by_share([below for _, below in ends]), number, text)
    return row(("Logistic regression: good with nothing to tune", claim), "Section 6", rule, verdict, _on(panels), command)


# methods without a parameter


def _free_rows(figure: Figure, panels: Sequence[Panel], command: str) -> list[Row]:
    """A row against baselines with their own steps, and one against tuned baselines; none without such a method or baseline."""
    methods = dict.fromkeys(curve.method for panel in panels for curve in panel.curves)
    free = [method for method in methods if method in FREE]
    if not free or len(free) == len(methods):
        return []
    added = f"{command} --methods {','.join(figure.added)}" if figure.added else command
    return [_free_row(figure, panels, free, steps, added) for steps in (("own", "tuned") if figure.tuned else ("own",))]


def _free_row(figure: Figure, panels: Sequence[Panel], free: Sequence[str], steps: str, command: str) -> Row:
    """The best of the methods without a parameter; both paper's algorithms are baselines here."""
    ratios = {method: _ratios(panels, (method,), "own", steps, others=free) for method in free}
    held = {method: [ratio <= COMPARABLE for _, ratio in found] for method, found in ratios.items()}
    best = max(held, key=lambda method: sum(held[method]))
    text = "; ".join(
        f"{label(m)}: {_places(found)}; against each baseline: {_against(panels, (m,), steps, free)}"
        for m, found in ratios.items()
    )
    baselines = {"own": "baselines with their own steps", "tuned": "tuned baselines"}[steps]
    verdict = Verdict(by_share(held[best]), f"{sum(held[best])} of {len(held[best])} cases, {label(best)}", text)
    claim = f"There is a method without parameters that is superior or comparable to all {baselines} ({figure.title})."
    rule = (
        f"f - f_min at the end is at most {COMPARABLE:g} times that of the best of all {baselines}, for one and the same method "
        "on each problem; the paper's two algorithms are baselines too"
    )
    short = f"{_number(figure)}: a method without parameters against {baselines}"
    return row((short, claim), "this library's own claim", rule, verdict, _on(panels), command)


# shared


def _number(figure: Figure) -> str:
    return figure.title.partition(":")[0]


def _on(panels: Sequence[Panel]) -> str:
    return ", ".join(dict.fromkeys(panel.source.text for panel in panels))


def _against(panels: Sequence[Panel], ours: Collection[str], theirs: str = "own", others: Collection[str] = ()) -> str:
    """In how many cases each baseline is not better by more than the factor; ``ours`` have their own steps."""
    names = dict.fromkeys(c.method for panel in panels for c in panel.curves if c.method not in {*ours, *others})
    found = {name: [ratio <= COMPARABLE for _, ratio in _ratios(panels, ours, "own", theirs, only=name)] for name in names}
    return ", ".join(f"{label(name)} {sum(held)} of {len(held)}" for name, held in found.items())


def _ratios(
    panels: Sequence[Panel],
    ours: Collection[str],
    steps: str,
    theirs: str,
    only: str | None = None,
    others: Collection[str] = (),
) -> Ratios:
    """f - f_min at the end of each of ``ours`` over that of the best baseline, or over that of one baseline.

    Baselines are all methods but ``ours`` and ``others``.
    """
    found = []
    for panel in panels:
        rivals = [c for c in panel.curves if c.steps == theirs and c.method not in {*ours, *others} and only in (None, c.method)]
        best = min(panel.excess(c) for c in rivals)
        for curve in (c for c in panel.curves if c.method in ours and c.steps == steps):
            case = panel.source.name + (f" {list(ours).index(curve.method) + 1}" if len(ours) > 1 else "")
            found.append((case, panel.excess(curve) / best))
    return found


def _places(ratios: Ratios) -> str:
    each = ", ".join(f"{name}: {ratio:.2g}" for name, ratio in ratios)
    comparable, superior = (sum(ratio <= most for _, ratio in ratios) for most in (COMPARABLE, 1.0))
    what = "data and algorithm" if any(" " in name for name, _ in ratios) else "data"
    return f"comparable in {comparable} and superior in {superior} of {len(ratios)} cases ({what}: ratio; {each})"
