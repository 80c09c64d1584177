"""Results in notebooks: the certificate as a table, and a small picture of the gap. All text is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from extremal.run.result import Calls, Result, Trace

CANVAS = 320, 110  # width and height of the picture
LEFT, RIGHT, UPPER, LOWER = 58, 302, 18, 92  # the edges of its curve
MOST_DOTS = 60  # rows marked with a dot, at most
CELL = "text-align: left; padding: 1px 10px 1px 0; vertical-align: top"


def result_html(result: Result) -> str:
    """The certificate of a result, its meaning, its cost, and the gap over the passes.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> r = ex.minimize(f, ex.L1Ball(2.0), method="frank-wolfe", max_iter=1000)
    >>> result_html(r).startswith("<div><table>"), "no point of the set" in result_html(r)
    (True, True)
    """
    return f"<div>{html_table(_rows(result))}{gap_picture(result.trace)}</div>"


def html_table(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns of text as an HTML table, escaped.

    Examples
    --------
    >>> "<b>" in html_table([("name", "<b>")])
    False
    """
    lines = (
        f'<tr><th style="{CELL}">{escape(name)}</th><td style="{CELL}">{escape(text)}</td></tr>' for name, text in rows if text
    )
    return f"<table>{''.join(lines)}</table>"


def proves(gap: float, convex: bool) -> str:
    """The meaning of a gap, in one sentence.

    Examples
    --------
    >>> proves(1e-3, convex=True)
    'For any point of the set, f is at least f(x) - 1.00e-03: no point of the set is better by more than the gap.'
    """
    if not math.isfinite(gap):
        return "Nothing is proved: there is no finite gap at this point."
    if not convex:
        return f"f is not convex: the point is stationary up to a gap of {gap:.2e}, and f may be lower elsewhere."
    return f"For any point of the set, f is at least f(x) - {gap:.2e}: no point of the set is better by more than the gap."


def _rows(r: Result) -> list[tuple[str, str]]:
    c, relative = r.calls, f" ({float(r.gap / abs(r.value)):.2e} of |f|)" if r.value else ""
    met = "within the tolerance" if r.converged else "above the tolerance"
    return [
        ("status", f"{r.status.value}: {r.status.sentence}"),
        ("f(x)", f"{float(r.value):.10g}"),
        ("gap", f"{float(r.gap):.3e}{relative}, {met}"),
        ("proves", proves(float(r.gap), r.convex)),
        ("set", "" if r.set is None else f"{r.set}, violated by {r.violation:.3g}"),
        ("iterations", f"{r.n_iter}, in {r.seconds:.3g} s"),
        ("component gradients", f"{c.grads}, and {c.certificate} for certificates"),
        ("LMOs", f"{c.lmos}, and {c.certificate_lmos} for certificates{_of_blocks(c)}"),
        ("sent", f"{c.bytes} bytes, {c.numbers} numbers" if c.bytes else ""),
        ("method", "" if r.method is None else str(r.method)),
        ("why", r.why),
    ]


def _of_blocks(c: Calls) -> str:
    return f"; {c.block_lmos} of one block" if c.block_lmos else ""


def gap_picture(trace: Trace) -> str:
    """The gap over the passes, on a logarithmic scale, as SVG; empty if fewer than two gaps are known.

    Examples
    --------
    >>> from extremal.run.result import Trace
    >>> gap_picture(Trace())
    ''
    """
    rows = np.array([trace.passes, trace.gap], dtype=float).T if len(trace) else np.zeros((0, 2))
    rows = rows[np.isfinite(rows).all(axis=1) & (rows[:, 1] > 0)]
    if len(rows) < 2:
        return ""
    x, y = _scaled(rows[:, 0], LEFT, RIGHT), _scaled(np.log10(rows[:, 1]), LOWER, UPPER)
    points = [(f"{a:.1f}", f"{b:.1f}") for a, b in zip(x, y, strict=True)]
    dots = "".join(f'<circle cx="{a}" cy="{b}" r="2"/>' for a, b in points) if len(points) <= MOST_DOTS else ""
    line = f'<polyline points="{" ".join(map(",".join, points))}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    size = 'width="{0}" height="{1}" viewBox="0 0 {0} {1}"'.format(*CANVAS)
    look = 'fill="currentColor" font-size="10" font-family="sans-serif"'
    return f'<svg role="img" aria-label="gap over passes" {size} {look}>{line}{dots}{_numbers(rows)}</svg>'


def _numbers(rows: np.ndarray) -> str:
    """Labels for the ends of both scales."""
    low, high, first, last = rows[:, 1].min(), rows[:, 1].max(), rows[0, 0], rows[-1, 0]
    texts = [
        (LEFT - 6, UPPER + 3, f"{high:.0e}", "end"),
        (LEFT - 6, LOWER + 3, f"{low:.0e}", "end"),
        (LEFT, CANVAS[1] - 3, f"{first:.4g}", "middle"),
        (RIGHT, CANVAS[1] - 3, f"{last:.4g} passes", "end"),
        (LEFT, 9, "gap", "start"),
    ]
    return "".join(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>' for x, y, text, anchor in texts)


def _scaled(numbers: np.ndarray, start: float, end: float) -> np.ndarray:
    span = float(np.ptp(numbers))
    return start + (end - start) * ((numbers - numbers.min()) / span if span else np.full(len(numbers), 0.5))
