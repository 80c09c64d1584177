"""``extremal solve``: minimise a loss over a set on the data of a file."""

from __future__ import annotations

import dataclasses
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from extremal import checks
from extremal.checks import InputError
from extremal.cli.answers import UNBOUNDED, check_plot, save_picture, show, summary
from extremal.cli.common import AsJson, completed, one_line
from extremal.cli.labels import refuse_labels, target_called
from extremal.cli.shard_rows import opened_shards, shard_objective
from extremal.files.csv_cells import booleans
from extremal.files.models import Model, check_model_out, save_model
from extremal.files.reading import check_room
from extremal.files.shards.directory import ShardDir
from extremal.files.tables import Table, read_table
from extremal.losses.base import Loss
from extremal.losses.multi import Multinomial
from extremal.losses.named import LOSS_FORMS, named_loss
from extremal.methods.cards import METHODS
from extremal.methods.method import Recipe
from extremal.methods.parse import recipe
from extremal.objectives.intercept import InterceptModel
from extremal.objectives.linear import LinearModel
from extremal.objectives.margins import MarginModel
from extremal.run.front import minimize
from extremal.run.progress import last_line, shown
from extremal.run.result import Result, Status
from extremal.run.saving import saving
from extremal.run.wide import Kept, after, budget_left, least_within, with_radius
from extremal.sets.base import ConvexSet
from extremal.sets.words.names import SETS
from extremal.sets.words.read import Reading, read_constraint
from extremal.sets.words.words import check_words
from extremal.support.display import printable, terminal


@one_line()
def solve(
    file: Annotated[
        Path,
        typer.Argument(help="LIBSVM text (also .gz, .bz2, .xz), .csv, .npz, .npy, or a directory of shards.", metavar="FILE"),
    ],
    set_: Annotated[
        str,
        typer.Option(
            "--set",
            metavar="SET",
            help="l1:20, simplex, nonneg, 'l1:3 & age >= 0'; see: extremal sets.",
            autocompletion=completed(SETS),
        ),
    ],
    loss: Annotated[
        str,
        typer.Option(
            metavar="LOSS", help="See: extremal losses; with parameters: huber:1.35.", autocompletion=completed(LOSS_FORMS)
        ),
    ] = "logistic",
    intercept: Annotated[
        bool,
        typer.Option(
            "--intercept",
            help="Also fit an intercept, which no set constrains. "
            "Most estimators in Python fit one by default, and their tol is 1e-6, not 1e-4.",
        ),
    ] = False,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD", help="See: extremal methods; with parameters: sarah-fw:p=0.1.", autocompletion=completed(METHODS)
        ),
    ] = "auto",
    passes: Annotated[float, typer.Option(help="Budget of component gradients, in multiples of n.")] = 100.0,
    tol: Annotated[float, typer.Option(help="Stop when gap <= tol * |value| + atol.")] = 1e-4,
    atol: Annotated[float, typer.Option(help="See --tol.")] = 1e-10,
    batch: Annotated[int | None, typer.Option(help="Rows per step. Default: the method's own choice.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
    max_iter: Annotated[int | None, typer.Option(help="Budget of iterations.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Budget of time.")] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Target: column name, 0-based number or .npy file. Default: the last.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Make this label the positive class, all others the negative one.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="ENGINE", help="Where to read shards: memory, disk or dask. Default: by size.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="MODEL.npz", help="Save the model, for `extremal predict`.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the coefficients: .png, .pdf or .svg. Needs matplotlib.")
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="RUN.ckpt", help="Save the run every minute, and go on from there if the file exists."),
    ] = None,
    checkpoint_seconds: Annotated[float | None, typer.Option(help="Least time between two writes. Default: 60.")] = None,
) -> None:
    """Minimise a loss over a set on the data of FILE, and print the certified answer.

    FILE may be a directory of shards (see: extremal shards build), with its own targets and weights. Nothing is copied.
    """
    check_words(set_)
    named_loss(loss)
    chosen = _recipe(method, batch)
    checks.within("solve", "passes", passes, 0, 1e9)
    if out is not None:
        check_model_out(out)
    if plot is not None:
        check_plot(plot)
    shards = opened_shards(file, engine, target)
    with nullcontext() if shards is None else closing(shards):
        names, column, (f, classes) = asked_problem(file, shards, target, loss, positive, intercept, quiet)
        plan = read_constraint(set_, None, f.shape, names)
        budget = {"seed": seed, "tol": tol, "atol": atol, "max_grads": max(1, round(passes * f.n)), "max_iter": max_iter}
        on_terminal = not quiet and terminal(stderr=True).is_terminal
        with shown("solve", on_terminal), saving("solve", checkpoint, checkpoint_seconds):
            C, result, bounded = _minimum(f, plan, chosen, budget | {"max_seconds": max_seconds})
            last_line("")  # the full result is printed below
        x = np.asarray(result.x)
        level = f.intercept(x) if isinstance(f, InterceptModel) else 0.0
        model = Model(x, level, loss, set_, method, names, classes, column)
        try:
            if out is not None:
                save_model(out, model, result, {"loss": loss, "positive": positive, "intercept": intercept, "target": target})
            if plot is not None:
                save_picture(plot, model, C)
        finally:  # a full disk must not lose the answer
            show(summary(f, C, model, result, bounded, intercept), as_json)
    raise typer.Exit(130 if result.status == Status.INTERRUPTED else 0 if result.converged and bounded else 3)


def _recipe(text: str, batch: int | None) -> Recipe:
    made: Any = recipe(text, batch)
    if batch is not None and "batch" not in {field.name for field in dataclasses.fields(made)}:
        raise InputError(f"--batch does not apply to {text}, which has no batches; omit it or choose another --method")
    return made


def asked_problem(
    file: Path, shards: ShardDir | None, target: str | None, loss: str, positive: str | None, intercept: bool, quiet: bool
) -> tuple[tuple[str, ...] | None, str | None, tuple[MarginModel, np.ndarray | None]]:
    """The names of the features and of the target, the objective, and the labels of its classes."""
    if shards is not None:
        return shards.names, None, shard_objective(shards, loss, positive, intercept)
    table = _read(file, target, quiet)
    return table.names, table.target, _objective(file, table, target, loss, positive, intercept)


def _read(file: Path, target: str | None, quiet: bool) -> Table:
    from rich.text import Text

    said = Text(printable(f"reading {file}"))
    with nullcontext() if quiet else terminal(stderr=True).status(said):  # shown on terminals only
        table = read_table(file, target)
    check_room(file, table.A.shape[1])
    return table


def _objective(
    file: Path, table: Table, target: str | None, name: str, positive: str | None, intercept: bool
) -> tuple[MarginModel, np.ndarray | None]:
    """The data of a file as an objective, and the labels of its classes; errors name the file."""
    y, classes = table.y, None
    assert y is not None
    try:
        if positive is not None:
            y, classes = _two_classes(y, positive, named_loss(name))
        elif name.partition(":")[0].strip().lower() == "multinomial":
            classes, y = np.unique(y, return_inverse=True)
        else:
            y = booleans(y) if named_loss(name).labels is None else y
            refuse_labels(target_called(file, table.target, target), y, named_loss(name), name)
        numbers = y if y.dtype.kind in "biuf" and np.isfinite(y).all() else None  # others are refused below
        loss = named_loss(name, numbers)
        f = (InterceptModel if intercept else LinearModel)(loss, table.A, y)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    return f, np.array(loss.labels) if classes is None and loss.labels is not None else classes


def _two_classes(y: np.ndarray, label: str, loss: Loss) -> tuple[np.ndarray, np.ndarray]:
    """The loss's upper label where y is ``label``, its lower label elsewhere; and the names of both."""
    if loss.labels is None or isinstance(loss, Multinomial):
        raise InputError(f"--positive {label} does not apply to {type(loss).__name__}, which takes numbers or several classes")
    if y.dtype.kind == "f":
        checks.finite("LinearModel", "y", y)  # a missing target is not a class
    low, high = loss.labels
    wanted = None
    with suppress(ValueError):
        wanted = label if y.dtype.kind == "U" else float(label)
    hit = np.array([v == wanted for v in y.tolist()])
    if not hit.any():
        seen = ", ".join(str(v) for v in np.unique(y)[:5].tolist())
        raise InputError(f"--positive {label}: no target has this label; the targets begin with {seen}")
    others = np.unique(y[~hit])
    return np.where(hit, high, low), np.array([str(others[0]) if len(others) == 1 else f"not {label}", label])


def _minimum(f: MarginModel, plan: Reading, chosen: Recipe, kept: Kept) -> tuple[ConvexSet, Result, bool]:
    """The set, the run over it with the cost of all runs before it, and whether a minimum exists."""
    free = None
    if plan.fraction is not None:
        refusal = f"--set {plan}: a percentage refers to the unconstrained solution's norm, but {UNBOUNDED}"
        plan, free = with_radius(f, plan, lambda C, x0, left: minimize(f, C, x0=x0, **left), kept, refusal)
        kept = budget_left(kept, free)
    C, run, exists = least_within(f, plan, lambda C, x0, left: minimize(f, C, chosen, x0=x0, **left), kept)
    return C, run if free is None else after(free, run), exists
