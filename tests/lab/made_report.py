"""A report with every kind of panel, and what a page of it should plot."""

from __future__ import annotations

import numpy as np

ROWS, SEEDS = 12, 3
METHODS = [("sarah-fw", "Algorithm 1 (Sarah FW)", True), ("frank-wolfe", "Frank-Wolfe", False), ("svrf", "SVRF <& co>", False)]


def problem(data: str, origin: str, convex: bool, rng: np.random.Generator) -> dict:
    """Curves that fall by eight powers of ten; those with tuned steps end below the accuracy of f_min, and even below f_min."""
    f_min, f_max, gap = 0.25, 0.75, 1e-6
    curves = []
    for method, _, _ in METHODS:
        for steps in ("own", "tuned"):
            runs = []
            for seed in range(SEEDS):
                passes = np.linspace(0, 22, ROWS)
                fall = np.exp(-passes * rng.uniform(0.1, 0.4)) if steps == "own" else 10 ** (-passes / 2.5) - 1e-8
                lmos = (passes * rng.integers(2, 9)).astype(int).tolist()
                runs.append({
                    "seed": seed, "passes": passes.tolist(), "lmos": lmos, "cpu": (passes * rng.uniform(0.1, 0.2)).tolist(),
                    "value": (f_min + (f_max - f_min) * fall).tolist(), "gap": np.abs(3 * fall).tolist(),
                })  # fmt: skip
            factor = 1.0 if steps == "own" else 0.125
            edge = method == "svrf" and (steps == "own" or data == "a8a")  # which means nothing where nothing was tuned
            curves.append({"method": method, "steps": steps, "factor": factor, "edge": edge, "batch": 7, "runs": runs})
    return {
        "key": f"{data}-key", "data": data, "origin": origin, "origin_text": f"where {data} is from", "n": 1234, "d": 56,
        "loss": "logistic", "set": "l1:20", "convex": convex, "f_min": f_min, "f_min_gap": gap, "f_min_how": "a long run",
        "f_max": f_max, "curves": curves,
    } | ({"floor": 3e-6} if data == "a8a" else {})  # fmt: skip


def make_report() -> dict:
    rng = np.random.default_rng(0)
    first = [problem("a8a", "real", True, rng), problem('w8a, "odd"', "stand-in", True, rng)]
    broken = first[0]["curves"][2]["runs"]  # frank-wolfe, own steps: one seed of three ends in NaN, all of them at the last row
    broken[1]["value"][8:] = [float("nan")] * (ROWS - 8)
    for run in broken:
        run["value"][-1] = float("nan")
    ranks = [
        {"method": m, "median": i + 1.0, "q1": 1.0, "q3": 3.0, "first": 3 - i, "problems": 3}
        for i, (m, _, _) in enumerate(METHODS)
    ]
    series = {"label": "SVRF <& co>", "x": [1, 2, 4], "y": [3.0, None, 1.0], "low": [2.0, 1.0, 0.5], "high": [4.0, 3.0, 2.0]}
    plot = {"title": "b", "x_label": "batch", "y_label": "passes", "log_x": True, "log_y": False, "series": [series]}
    verdicts = ["holds", "holds in part", "does not hold here", "undecided", "not measured"]
    return {
        "title": "A rerun </script><b>bold</b>", "generated": "2026-01-02T03:04:05+00:00", "quick": False,
        "summary": ["One sentence.", "Another & more."],
        "methods": [{"name": name, "label": label, "source": "a paper", "ours": ours} for name, label, ours in METHODS],
        "figures": [
            {"name": "fig1", "title": "Figure 1: convex", "caption": "What it shows.", "problems": first},
            {"name": "fig2", "title": "Figure 2: non-convex", "caption": "", "problems": [problem("mine", "file", False, rng)]},
        ],
        "overview": {"own": ranks, "tuned": ranks[::-1]},
        "studies": [{"name": "batch", "title": "Batches", "text": "Why.", "plots": [plot],
                     "tables": [{"title": "t", "columns": ["b", "what"], "rows": [[16, "x"], [None, "y"]]}]}],
        "ledger": [{"claim": f"claim {i}", "short": f"short {i}", "where": "4", "rule": f"{i} < 5 & <so on>",
                    "measured": "m" * (i < 4), "verdict": v, "number": f"{i} of 5" * (i < 4),
                    "command": "extremal reproduce"} | ({"on": "LIBSVM's a9a"} if i == 1 else {})
                   for i, v in enumerate(verdicts)],
        "settings": {"passes": 22, "seeds": [0, 1, 2]}, "versions": {"numpy": "2"}, "machine": {"cores": "2"},
        "table2": {"columns": ["data", "L"], "rows": [["a8a", 0.25]], "remark": "Constants."},
    }  # fmt: skip


def column(curve: dict, key: str) -> np.ndarray:
    """Rows x seeds; what is not finite counts as infinite."""
    held = np.array([run[key] for run in curve["runs"]], dtype=float).T
    return np.where(np.isfinite(held), held, np.inf)


def expected(held: dict, steps: str, x: str = "passes", y: str = "relative", hidden: tuple = ()) -> dict:
    """method -> (x, y): medians over the seeds, as they should be plotted."""
    least = held.get("floor", held["f_min_gap"])
    span = max(held["f_max"] - held["f_min"], least)
    key, shift, scale, floor = {
        "relative": ("value", held["f_min"], span, least / span),
        "excess": ("value", held["f_min"], 1.0, least),
        "value": ("value", 0.0, 1.0, held["f_min"]),
        "gap": ("gap", 0.0, 1.0, 1e-16),
    }[y]
    found = {}
    for curve in held["curves"]:
        if curve["steps"] == steps and curve["method"] not in hidden:
            ys = np.maximum((np.median(column(curve, key), axis=1) - shift) / scale, floor)
            found[curve["method"]] = (np.median(column(curve, x), axis=1), np.where(np.isfinite(ys), ys, np.nan))
    return found
