"""``extremal solve``: minimise a loss over a set on the data of a file."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from extremal import checks
from extremal.checks import InputError
from extremal.cli.common import AsJson, lines, one_line
from extremal.driver import minimize
from extremal.experiments.recipes import recipe
from extremal.files import load, save_model
from extremal.losses import LOSSES, Loss
from extremal.methods import Recipe
from extremal.objective import LinearModel
from extremal.outputs import check_out
from extremal.result import Result, Status
from extremal.sets import parse
from extremal.solver import State


@one_line()
def solve(
    file: Annotated[Path, typer.Argument(help="LIBSVM text (also .gz, .bz2, .xz), .csv, .npz or .npy.", metavar="FILE")],
    set_: Annotated[str, typer.Option("--set", metavar="SET", help="l1:20, simplex, box:0,1; see: extremal sets.")],
    loss: Annotated[str, typer.Option(metavar="LOSS", help="See: extremal losses.")] = "logistic",
    method: Annotated[
        str, typer.Option(metavar="METHOD", help="See: extremal methods; with parameters: sarah-fw:p=0.1.")
    ] = "sarah-fw",
    passes: Annotated[float, typer.Option(help="Budget of component gradients, in multiples of n.")] = 100.0,
    tol: Annotated[float, typer.Option(help="Stop when gap <= tol * |value| + atol.")] = 1e-4,
    atol: Annotated[float, typer.Option(help="See --tol.")] = 1e-10,
    batch: Annotated[int | None, typer.Option(help="Rows a step; the method's own choice if left out.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    max_iter: Annotated[int | None, typer.Option(help="Budget of iterations.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Budget of time.")] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Target by column name or 0-based number, or a .npy file; else last.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Make this label the positive class, all others the negative one.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="MODEL.npz", help="Save x, with its value, gap and status.")] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
) -> None:
    """Minimise a loss over a set on the data of FILE, and print the certified answer."""
    C, recipe = parse(set_), _recipe(method, batch)
    phi = LOSSES[checks.one_of("loss", loss, LOSSES)]()
    checks.within("solve", "passes", passes, 0, 1e9)
    if out is not None:
        check_out(out)
    f = _objective(file, target, phi, positive, quiet)
    with _progress(passes, quiet) as callback:
        result = minimize(
            f, C, recipe, seed=seed, tol=tol, atol=atol, max_grads=max(1, round(passes * f.n)), max_iter=max_iter,
            max_seconds=max_seconds, callback=callback, bursts=True,
        )  # fmt: skip
    about = {"loss": loss, "set": set_, "method": method}
    try:
        if out is not None:
            save_model(out, result, **about)
    finally:  # a disk that is full does not cost the answer
        _show(_summary(f, result) | about, as_json)
    raise typer.Exit(130 if result.status == Status.INTERRUPTED else 0 if result.converged else 3)


def _recipe(text: str, batch: int | None) -> Recipe:
    made: Any = recipe(text, batch)
    if batch is not None and "batch" not in {field.name for field in dataclasses.fields(made)}:
        raise InputError(f"--batch does not apply to {text}, which has no batches; leave it out or choose another --method")
    return made


def _objective(file: Path, target: str | None, loss: Loss, positive: str | None, quiet: bool) -> LinearModel:
    """The data of a file as an objective, refusing what does not fit with the file's name."""
    from rich.console import Console
    from rich.text import Text

    with nullcontext() if quiet else Console(stderr=True).status(Text(f"reading {file}")):  # shows on terminals only
        A, y = load(file, target)
    try:
        return LinearModel(loss, A, y if positive is None else _two_classes(y, positive, loss))
    except InputError as error:
        hint = "; here: --positive LABEL" if loss.labels is not None and "map them" in str(error) else ""
        raise InputError(f"{file}: {error}{hint}") from None


def _two_classes(y: np.ndarray, label: str, loss: Loss) -> np.ndarray:
    """The labels of the loss: its upper one where y is ``label``, its lower one elsewhere."""
    if loss.labels is None:
        raise InputError(f"--positive {label} does not apply to {type(loss).__name__}, which takes numbers and not classes")
    if y.dtype.kind == "f":
        checks.finite("LinearModel", "y", y)  # a target that is missing is no class
    low, high = loss.labels
    wanted = None
    with suppress(ValueError):
        wanted = label if y.dtype.kind == "U" else float(label)
    hit = np.array([v == wanted for v in y.tolist()])
    if not hit.any():
        seen = ", ".join(str(v) for v in np.unique(y)[:5].tolist())
        raise InputError(f"--positive {label}: no target is that; the targets begin with {seen}")
    return np.where(hit, high, low)


def _summary(f: LinearModel, result: Result) -> dict[str, Any]:
    """All that is printed of a result, under its names in JSON."""
    calls = result.calls
    return {
        "value": result.value, "gap": result.gap, "relative_gap": result.gap / abs(result.value) if result.value else None,
        "convex": f.convex, "converged": result.converged, "status": result.status.value, "sentence": result.status.sentence,
        "n_iter": result.n_iter, "grads": calls.grads, "certificate_grads": calls.certificate, "passes": calls.grads / f.n,
        "lmos": calls.lmos, "seconds": result.seconds, "nonzeros": int((result.x != 0).sum()),
        "n": f.n, "dim": int(result.x.size), "parameters": str(result.method),
    }  # fmt: skip


def _show(s: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(s, allow_nan=False))
        return
    relative = "none, the value is 0" if s["relative_gap"] is None else f"{s['relative_gap']:.3e}"
    meaning = "no point of the set is better by more" if s["convex"] else "zero at stationary points"
    lines([
        ("value", f"{s['value']:.10g}"),
        ("certified gap", f"{s['gap']:.3e}  ({meaning})"),
        ("relative gap", relative),
        ("status", s["sentence"]),
        ("iterations", f"{s['n_iter']}"),
        ("component gradients", f"{s['grads']}  ({s['passes']:.1f} passes; {s['certificate_grads']} more for certificates)"),
        ("LMOs", f"{s['lmos']}"),
        ("seconds", f"{s['seconds']:.3g}"),
        ("non-zeros of x", f"{s['nonzeros']} of {s['dim']}"),
        ("method", s["parameters"]),
    ])  # fmt: skip


@contextmanager
def _progress(passes: float, quiet: bool) -> Iterator[Callable[[State], None] | None]:
    """A callback that shows how far the run is: a bar on stderr if that is a terminal, elsewhere nothing."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = BarColumn(), TextColumn("{task.completed:.1f} of {task.total:g} passes{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=passes)
        yield _Watch(0.1, lambda k, text: bar.update(task, completed=min(k, passes), description=text))


class _Watch:
    """Shows passes, exact value and exact gap: off the count, off the clock, and for a twentieth of the time at most."""

    def __init__(self, every: float, show: Callable[[float, str], object]):
        self.every, self.show, self.text = every, show, ""
        self.due, self.measure_due = time.monotonic() + every, 0.0  # when to show and when to measure next

    def __call__(self, state: State) -> None:
        now = time.monotonic()
        if now < self.due:
            return
        if now >= self.measure_due:
            self.text = _measure(state)
            self.measure_due = now + max(0.5, 20 * (time.monotonic() - now))
        self.show(state.calls.grads / state.f.n, self.text)
        self.due = now + self.every


def _measure(state: State) -> str:
    value, gap = state.measure()
    return f", value {value:.6g}, gap {gap:.2e}"
