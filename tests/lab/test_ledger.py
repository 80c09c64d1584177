"""Verdicts on the paper's claims: the rules, their words, and the ledger in markdown."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from panels_by_hand import made_up

from extremal_lab.reproduction import Problem, ledger, markdown, rates, report, reproduce, spec
from extremal_lab.reproduction.markdown import plain
from extremal_lab.reproduction.studies import Finding


def verdict(rows, word):
    (row,) = [row for row in rows if word in row["claim"]]
    return row["verdict"], row["measured"]


@pytest.mark.parametrize(
    ("ours", "want", "counts"),
    [
        ((0.1, 0.05, 0.1, 0.19), "holds", "comparable in 4 and superior in 3 of 4"),
        ((0.1, 0.3, 0.1, 0.3), "holds in part", "comparable in 2 and superior in 2 of 4"),
        ((0.3, 0.3, 0.3, 0.1), "does not hold here", "comparable in 1 and superior in 1 of 4"),
    ],
)
def test_superior_or_comparable(figure, ours, want, counts):
    """Two problems, both algorithms, a best baseline that ends at 0.1."""
    panels = [
        made_up({("sarah-fw", "own"): a, ("saga-sarah-fw", "own"): b, ("negiar-sfw", "own"): 0.1, ("svrf", "own"): 5.0})
        for a, b in (ours[:2], ours[2:])
    ]
    row = ledger.judge([(replace(figure, factors=()), panels)], [], options=" --quick")[0]
    assert row["verdict"] == want
    assert counts in row["measured"]
    assert "svrf 4 of 4" in row["measured"]
    assert (row["on"], row["command"]) == ("the file made up", "extremal reproduce mine --quick")


def test_without_baselines_nothing_is_compared(figure):
    alone = made_up({("sarah-fw", "own"): 0.1})
    others = made_up({("negiar-sfw", "own"): 0.1})
    assert [row["claim"][:15] for row in ledger.judge([(figure, [alone])], [])] == ["The algorithms "]
    assert ledger.judge([(figure, [others])], []) == []


def exponent(mean, claimed, width=0.1):
    return rates.Exponent(mean, mean - width / 2, mean + width / 2, claimed)


def finding(changes=()):
    """Every exponent as claimed, but for those given: {(index, method): (n, eps)}, each a mean or a (mean, width)."""
    numbers = {}
    for index, rate in enumerate(rates.RATES):
        claimed = rate.claimed_n, rate.claimed_eps
        for method in rates.GRIDS[rate.grid].methods:
            given = [v if isinstance(v, tuple) else (v, 0.1) for v in dict(changes).get((index, method), claimed)]
            pair = [exponent(mean, c, width) for (mean, width), c in zip(given, claimed, strict=True)]
            numbers[rate, method] = rates.Fit(*pair, {})
    return Finding("rates", "data", numbers, {})


def test_rates_are_judged_by_their_intervals():
    def said(one, two):
        found = finding({(0, "sarah-fw"): one, (0, "saga-sarah-fw"): two})
        return verdict(ledger.judge([], [found]), "Convex, b = 1: O(sqrt(n)/eps component")[0]

    assert said((0.5, 1.0), (0.3, 0.7)) == "holds"
    assert said((0.5, (1.0, 0.3)), (0.5, (1.0, 0.3))) == "holds in part; 2 of 4 undecided"  # from 0.85 to 1.15
    assert said((0.58, (1.0, 0.3)), (0.58, (1.0, 0.3))) == "undecided"  # a little above, within the slack or not
    assert said(((-2.0, 0.9), 1.0), (0.5, (-9.0, 3.0))) == "holds"  # wide, but better for certain
    assert said((0.5, 1.0), (0.7, 1.0)) == "holds in part"
    assert said((0.7, 1.3), (0.8, 1.5)) == "does not hold here"
    assert said((0.7, 1.3), (0.58, (1.0, 0.9))) == "does not hold here; 2 of 4 undecided"
    assert said((0.7, 1.0), (0.58, (1.0, 0.9))) == "holds in part; 2 of 4 undecided"
    assert said((math.nan, math.nan), (math.nan, math.nan)) == "undecided"


def test_large_batches_are_refuted_by_a_short_step_that_does_without():
    """Slow runs do not prove that nothing faster exists, and the card has a proof that something does."""
    for one, two, want in (
        (0.4, 0.4, "does not hold here"),
        (0.4, 1.0, "does not hold here"),
        (1.0, 1.0, "refuted by proof; not seen here"),
        ((0.6, 0.3), 1.0, "refuted by proof; undecided here"),
    ):
        found = finding({(8, f"{m}:step=small-batch"): (n, 2.0) for m, n in zip(spec.OURS, (one, two), strict=True)})
        said, measured = verdict(ledger.judge([], [found]), "large batches are required")
        assert said == want
        assert "n + sqrt(n)/eps^2 SFO for non-convex f with the step SmallBatch" in measured


DOCS = Path(__file__).parents[2] / "docs"


def printed(title, page="reproduction-tables.md"):
    """The rows of the table under a heading of a page, as lists of cells."""
    text = (DOCS / page).read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def test_the_verdicts_that_are_printed_are_those_of_the_rules():
    """The numbers in docs/reproduction-tables.md, judged again; and the page has the form that the writer makes."""
    names = {report.label(m): m for grid in rates.GRIDS.values() for m in grid.methods}
    claimed = {(rate.grid, rate.text): rate for rate in rates.RATES}
    numbers, ends, cost = {}, {}, {}
    for grid, text, method, *exponents in printed("Rates over n and eps"):
        rate = claimed[grid, text]
        found = [[float(v) for v in re.findall(r"-?\d+\.\d+", cell)] for cell in exponents]
        pair = [rates.Exponent(*three, c) for three, c in zip(found, (rate.claimed_n, rate.claimed_eps), strict=True)]
        numbers[rate, names[method]] = rates.Fit(*pair, {})
    for problem, one, two, _, ratio, *per_step in printed("No full gradient"):
        key = Problem(*problem.split(", "))
        ends[key], cost[key] = [float(one), float(two), float(one) * float(ratio)], [*map(float, per_step), 2.0]
    found = [Finding("rates", "", numbers, {}), Finding("starts", "", {"ends": ends, "cost": cost, "passes": 100.0}, {})]
    said = {row[0]: (row[1].strip("*"), row[2]) for row in printed("Verdicts", "reproduction.md")}
    text = (DOCS / "reproduction.md").read_text()
    assert len(said) == text.count("<details>") == 21
    judged = ledger.judge([], found)
    assert len(judged) == 11
    for row in judged:
        assert said[row["short"]] == (row["verdict"], row["number"])
        head, where = list(markdown._evidence(row))[:2]
        assert head.strip() in text
        assert where.partition(". *Measured:*")[0] in text
        assert plain(row["rule"]) in text


def test_the_printed_claim_of_this_library_is_that_of_the_rule():
    """The numbers of docs/reproduction-tables.md, judged again."""
    cases: dict[str, list] = {}
    for name, _, own, tuned, tracked, face in printed("Methods without a parameter"):
        ends = {("svrf", "own"): float(own.split()[0]), ("svrf", "tuned"): float(tuned.split()[0])}
        ends |= {(m, s): float(end) for m, end in zip(spec.FREE, (tracked, face), strict=True) for s in ("own", "tuned")}
        cases.setdefault(name, []).append(made_up(ends))
    assert [len(panels) for panels in cases.values()] == [len(figure.problems) for figure in spec.FIGURES.values()]
    said = {row[0]: row[1:] for row in printed("A method without parameters", "reproduction.md")}
    for name, panels in cases.items():
        drawn = spec.Figure(name, f"{name}: as printed", (Problem("x"),), ("svrf",), factors=(1.0,), added=tuple(spec.FREE))
        rows = ledger.judge([(drawn, panels)], [])
        assert said[name] == [f"**{row['verdict']}**, {row['number'].partition(', ')[0]}" for row in rows]
        assert all("TrackedFW" in row["number"] for row in rows)


def test_batches_are_judged():
    cases = [("logistic", m, b) for m in spec.OURS for b in ("1", "sqrt", "n/1")]
    for late, want, same in (([0.1] * 6, "holds", "holds"), ([0.1, 0.1, 0.9, 0.1, 0.1, 0.1], "holds in part", "holds"),
                             ([0.4, 0.1, 0.9, 0.4, 0.1, 0.9], "holds in part", "does not hold here"),
                             ([0.9] * 6, "does not hold here", "holds")):  # fmt: skip
        errors = {(*case, 8.0): 1.0 for case in cases} | {(*case, 64.0): e for case, e in zip(cases, late, strict=True)}
        rows = ledger.judge([], [Finding("batches", "data", {"errors": errors, "budgets": [8.0, 64.0]}, {})])
        assert verdict(rows, "all sizes of batches")[0] == want
        assert verdict(rows, "every b up to sqrt n")[0] == same


def test_starts_are_judged():
    problems = [Problem(name) for name in "abc"]
    for third, want in (([0.1, 0.19, 0.2], "holds"), ([0.1, 0.1, 0.3], "holds in part"), ([0.3, 0.3, 0.1], "does not hold here")):
        ends = {p: [0.1, 0.1, end] for p, end in zip(problems, third, strict=True)}
        cost = {p: [3.9, 2.0, 2.0] for p in problems}
        rows = ledger.judge([], [Finding("starts", "data", {"ends": ends, "cost": cost, "passes": 100.0}, {})])
        said, measured = verdict(rows, "matches Algorithm 1")
        assert said == want
        assert ("c, logistic, l1:2000: 3" in measured) == (want == "holds in part")
        assert ("exp(-N/16n)" in measured) == (want != "holds")
        assert verdict(rows, "fewer component gradients")[0] == "holds"
    cost = {p: [1.9, 2.0, 2.0] for p in problems}
    rows = ledger.judge([], [Finding("starts", "data", {"ends": ends, "cost": cost, "passes": 100.0}, {})])
    assert verdict(rows, "fewer component gradients")[0] == "does not hold here"


def test_memory_is_judged():
    def said(linear, general, n=1000):
        extra = {("linear", m): linear for m in ("saga-sarah-fw", "negiar-sfw", "lu-freund-sfw")}
        extra["separable", "saga-sarah-fw"] = general
        return verdict(ledger.judge([], [Finding("memory", "data", {"extra": extra, "n": n, "d": 100}, {})]), "O(nd)")[0]

    assert said(2e3, 1.1e5) == "holds in part"
    assert said(1e5, 1.1e5) == "holds"
    assert said(2e3, 2e3) == "does not hold here"
    assert said(2e3, 1.1e5, n=200) == "undecided"


def test_a_claim_that_nothing_bears_on_is_not_judged():
    assert ledger.judge([], []) == []


def test_a_convergence_claim_needs_every_start_to_be_left_below(figure):
    good = made_up({("sarah-fw", "own"): 0.1, ("saga-sarah-fw", "own"): 0.1, ("negiar-sfw", "own"): 0.1})
    bad = made_up({("sarah-fw", "own"): 5.0, ("saga-sarah-fw", "own"): 0.1, ("negiar-sfw", "own"): 0.1})  # started at 1
    alone = replace(figure, factors=())
    assert verdict(ledger.judge([(alone, [good])], []), "perform well")[0] == "holds"
    said, measured = verdict(ledger.judge([(alone, [good, bad])], []), "perform well")
    assert said == "holds in part"
    assert "3 of 4" in measured
    assert "Algorithm 1" in measured


def test_the_sizes_of_table_2_are_judged():
    rows = [
        ["a9a", "123", "22696", "a9a", "123", "32561"],
        ["w8a", "300", "49749", "w8a", "300", "49749"],
        ["x", "1", "1", "x", "-", "-"],
    ]
    said, measured = verdict(ledger.judge([], [], {"rows": rows}), "Table 2")
    assert said == "holds in part"
    assert "1 of 2" in measured
    assert "32561" in measured


def test_the_ledger_in_markdown(figure, panels, tmp_path):
    from extremal_lab.reproduction.markdown import write_ledger

    done = [(figure, panels)]
    said = report.report("title", done, quick=False, ledger=ledger.judge(done, []))
    write_ledger(tmp_path / "ledger.md", said, [(figure, *reproduce.ends(panels))])
    text = (tmp_path / "ledger.md").read_text()
    assert f"{panels[0].minimum:.9g}" in text
    assert f"{panels[0].excess(panels[0].curves[0]):.1e}" in text
    first = said["ledger"][0]
    assert f"| {first['short']} | **{first['verdict']}** | {first['number']} |" in text
    assert text.count("<details>") == text.count("\n\n</details>") == len(said["ledger"])
    assert first["measured"] in text.partition("## Evidence")[2]
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")
