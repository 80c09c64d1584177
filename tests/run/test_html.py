"""What notebooks show of a result."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import extremal as ex
from extremal.run.html import gap_picture, proves
from extremal.run.result import Trace

RNG = np.random.default_rng(0)
A = RNG.standard_normal((40, 4))
F = ex.LinearModel(ex.Squared(), A, A @ np.array([1.0, -1.0, 0.0, 0.0]) + RNG.standard_normal(40))
IMAGE = "<img src=x onerror=alert(1)>"


def solved(**options):
    return ex.minimize(F, ex.L1Ball(1.0), **options)


def parsed(html):
    """The page is well-formed, and has these elements only."""
    tree = ET.fromstring(html)
    assert {node.tag for node in tree.iter()} <= {"div", "table", "tr", "th", "td", "svg", "polyline", "circle", "text"}
    return tree


def test_the_certificate_is_told():
    result = solved()
    cells = {row[0].text: row[1].text for row in parsed(result._repr_html_()).iter("tr")}
    assert cells["status"] == f"gap: {result.status.sentence}"
    assert cells["f(x)"] == f"{result.value:.10g}"
    assert cells["gap"].startswith(f"{result.gap:.3e}")
    assert "no point of the set is better by more than the gap" in cells["proves"]
    assert cells["set"].endswith(f"violated by {result.violation:.3g}")
    assert cells["component gradients"].startswith(str(result.calls.grads))
    assert cells["why"] == result.why != ""


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda r: replace(r, method=replace(r.method, why=IMAGE)),
        lambda r: replace(r, set=type("Named", (ex.L1Ball,), {"__repr__": lambda self: IMAGE})(1.0)),
    ],
    ids=["why", "set"],
)
def test_names_are_text(spoilt):
    html = spoilt(solved())._repr_html_()
    assert IMAGE not in html
    assert "&lt;img src=x" in html
    parsed(html)


def test_what_a_gap_proves():
    assert "not convex" in proves(1e-3, convex=False)
    assert proves(math.nan, convex=True).startswith("Nothing is proved")
    g = ex.LinearModel(ex.NonlinearLeastSquares(), A, (F.y > 0).astype(float))
    result = ex.minimize(g, ex.L1Ball(1.0), "frank-wolfe", max_iter=3)
    assert result.convex is False
    assert "f is not convex" in result._repr_html_()
    assert solved().convex


def test_the_picture_shows_every_gap():
    result = solved(method="frank-wolfe", max_iter=20, tol=0, atol=0, record=1)
    tree = ET.fromstring(gap_picture(result.trace))
    points = np.array([point.split(",") for point in tree.find("polyline").get("points").split()], float)
    assert len(points) == len(result.trace) == len(tree.findall("circle"))
    assert (np.diff(points[:, 0]) > 0).all()
    order = np.argsort(result.trace.gap)
    assert (np.diff(points[order, 1]) <= 0).all()  # smaller gaps are lower: y grows downwards
    assert points.min() >= 0
    assert points[:, 0].max() <= float(tree.get("width"))


def test_there_is_no_picture_without_gaps():
    trace = Trace()
    for k, gap in enumerate((math.nan, 0.0, 1.0, math.inf)):
        trace.append({"iter": k, "grads": k, "passes": k, "lmos": k, "seconds": 0.0, "cpu": 0.0, "value": 1.0, "gap": gap})
    assert gap_picture(trace) == ""
    assert "<svg" not in replace(solved(), trace=trace)._repr_html_()


def test_equal_gaps_make_a_level_line():
    trace = Trace()
    for k in range(3):
        trace.append({"iter": k, "grads": 5, "passes": 5.0, "lmos": k, "seconds": 0.0, "cpu": 0.0, "value": 1.0, "gap": 0.5})
    ET.fromstring(gap_picture(trace))


def test_values_of_zero_and_results_without_a_set():
    html = replace(solved(), value=0.0, set=None, method=None)._repr_html_()
    assert "violated" not in html
    parsed(html)
