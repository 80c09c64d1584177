"""The answer of ``extremal solve``: its facts as JSON or text, with the largest coefficients by name, and a picture of them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import typer

from extremal.checks import InputError
from extremal.cli.common import lines
from extremal.files.models import Model
from extremal.files.outputs import check_out, to_json, whole_file
from extremal.losses.weighted import unweighted
from extremal.objectives.margins import MarginModel
from extremal.run.result import Result
from extremal.sets.base import ConvexSet
from extremal.support.display import printable

UNBOUNDED = "the loss keeps falling as coefficients grow, so there is no best point: give a bound, such as --set l1:10"
MOST_SHOWN, LONGEST_NAME = 20, 40
PICTURES = (".png", ".pdf", ".svg")


def summary(f: MarginModel, C: ConvexSet, model: Model, result: Result, bounded: bool, intercept: bool) -> dict[str, object]:
    """The printed facts about a result, under their JSON names."""
    calls, x = result.calls, model.x
    sentence = result.status.sentence if bounded else UNBOUNDED
    level = np.asarray(model.intercept).tolist() if intercept else None
    return {
        "value": result.value, "gap": result.gap, "relative_gap": result.gap / abs(result.value) if result.value else None,
        "convex": f.convex, "converged": result.converged and bounded,
        "status": result.status.value if bounded else "unbounded", "sentence": sentence,
        "n_iter": result.n_iter, "grads": calls.grads, "certificate_grads": calls.certificate, "passes": calls.grads / f.n,
        "rows": calls.rows,
        "lmos": calls.lmos, "sent_bytes": calls.bytes, "seconds": result.seconds, "nonzeros": int(np.count_nonzero(x)),
        "n": f.n, "dim": int(x.size), "parameters": str(result.method), "why": result.why,
        "loss": model.loss, "set": model.set, "method": model.method,
        "fitted_loss": str(unweighted(f.loss)), "fitted_set": str(C),
        "x": x.tolist(), "intercept": level, "features": None if model.features is None else list(model.features),
        "classes": None if model.classes is None else model.classes.tolist(), "target": model.target,
    }  # fmt: skip


def show(s: dict[str, Any], as_json: bool) -> None:
    """Print the facts: as JSON, or in two columns with the largest coefficients."""
    if as_json:
        typer.echo(to_json(s))
        return
    relative = "none, the value is 0" if s["relative_gap"] is None else f"{s['relative_gap']:.3e}"
    meaning = "no point of the set is better by more" if s["convex"] else "zero at stationary points"
    if not np.isfinite(s["gap"]):
        meaning = "nothing is certified"
    lines([
        ("model", f"{s['fitted_loss']} of {s['n']} rows x {len(s['x'])} features"),
        ("set", f"{s['set']}: {s['fitted_set']}"),
        *_coefficients(s),
        ("intercept", _intercept(s)),
        ("value", f"{s['value']:.10g}"),
        ("certified gap", f"{s['gap']:.3e}  ({meaning})"),
        ("relative gap", relative),
        ("status", s["sentence"]),
        ("iterations", f"{s['n_iter']}"),
        ("component gradients", f"{s['grads']}  ({s['passes']:.1f} passes; {s['certificate_grads']} more for certificates)"),
        ("rows read", f"{s['rows']}  ({s['rows'] / s['n']:.1f} times all)"),
        ("LMOs", f"{s['lmos']}"),
        *([("bytes sent", f"{s['sent_bytes']}")] if s["sent_bytes"] else []),
        ("seconds", f"{s['seconds']:.3g}"),
        ("non-zeros of x", f"{s['nonzeros']} of {s['dim']}"),
        ("method", s["why"] or s["parameters"]),
    ])  # fmt: skip


def _coefficients(s: dict[str, Any]) -> list[tuple[str, str]]:
    """Lines for the largest coefficients; zeros only where all coefficients are shown."""
    x = np.ravel(s["x"])
    few, count = x.size <= MOST_SHOWN, s["nonzeros"]
    largest = np.argsort(-np.abs(x), kind="stable")[: x.size if few else min(count, MOST_SHOWN)]
    said = [(f"  {_name(s['features'], s['classes'], np.shape(s['x']), int(j))}", f"{x[j]: .6g}") for j in largest]
    more = count - len(largest)
    rest = f"and {more} more, in --json or --out" if more > 0 else "" if few else f"the other {x.size - count} are 0"
    head = f"all {x.size}" if few else f"the {len(largest)} largest of {x.size}"
    return [("coefficients", head), *said, *([("", rest)] if rest else [])]


def _name(features: Any, classes: Any, shape: tuple[int, ...], j: int) -> str:
    """The name of a coefficient: that of its feature (x0, x1, ... without names), and of its class if there are several."""
    row, *column = np.unravel_index(j, shape)
    name = f"x{row}" if features is None else printable(str(features[row]))
    name = name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "..."
    return f"{name} ({printable(str(classes[column[0]]))})" if column else name


def _intercept(s: dict[str, Any]) -> str:
    level = s["intercept"]
    if level is None:
        return "none (--intercept fits one)"
    if np.ndim(level) == 0:
        return f"{float(level): .6g}"
    return ", ".join(f"{value:.6g} ({label})" for value, label in zip(level, s["classes"], strict=True))


def check_plot(path: Path) -> None:
    """Refuse a picture that cannot be drawn: before the run, not after it."""
    if path.suffix.lower() not in PICTURES:
        raise InputError(f"--plot {path}: the name of a picture ends in .png, .pdf or .svg")
    needed = {"matplotlib": "matplotlib", "sklearn": "scikit-learn"}
    missing = [package for module, package in needed.items() if find_spec(module) is None]
    if missing:
        raise InputError(f"--plot needs {' and '.join(missing)}: pip install 'extremal[demo]'")
    check_out(path)


def save_picture(path: Path, model: Model, C: ConvexSet) -> None:
    """Write a picture of the largest coefficients, with the bounds of the set if x is a vector."""
    from matplotlib.figure import Figure

    from extremal.sklearn.plots.displays import CoefficientsDisplay, bounds_of

    shape, x = model.x.shape, model.x.reshape(-1)
    lower, upper = bounds_of(C, (1, x.size), 0) if len(shape) == 1 else (None, None)
    names = [_plain(_name(model.features, model.classes, shape, j)) for j in range(x.size)]
    figure = Figure(layout="constrained")
    title = "" if model.target is None else f"coefficients for {_plain(printable(model.target))}"
    CoefficientsDisplay(x, names, lower=lower, upper=upper, title=title).plot(figure.subplots(), max_features=MOST_SHOWN)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lower()[1:])


def _plain(text: str) -> str:
    """Text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")
