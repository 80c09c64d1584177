"""``extremal reproduce`` and ``extremal compare``: the paper's experiments, and your own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from extremal import checks
from extremal.checks import InputError
from extremal.cli.common import one_line
from extremal.cli.data import TABLE2, fetch_shown, print_table2, table2_cells
from extremal.files import datasets, terminal

if TYPE_CHECKING:
    from extremal_lab.reproduction.plan import Work
    from extremal_lab.reproduction.spec import Figure

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the page, the numbers and the pictures.")]
Workers = Annotated[int | None, typer.Option(metavar="N", help="Number of processes. Default: all cores.")]
Cache = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder of finished runs. Default: the user's cache.")]
Offline = Annotated[bool, typer.Option("--offline", help="Do not try to download data.")]
Seeds = Annotated[int | None, typer.Option(metavar="N", help="Runs of each curve.")]
Passes = Annotated[float | None, typer.Option(help="Budget of each run, in full gradients.")]
TARGETS = "fig1 to fig5, table2, rates, batches, starts, memory, compression, grid, or all"


@one_line()
def reproduce(
    targets: Annotated[list[str] | None, typer.Argument(metavar="[TARGET]...", help=f"{TARGETS}. Default: all.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer passes, seeds and trials: a minute for a figure.")] = False,
    data: Annotated[str | None, typer.Option(metavar="DATA", help="Other data for the experiments: a name or a file.")] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="LIST", help="More curves for the figures: tracked-fw,saga-face-fw for two.")
    ] = None,
    out: Out = Path("reproduction"),
    seeds: Seeds = None,
    passes: Passes = None,
    workers: Workers = None,
    cache: Cache = None,
    offline: Offline = False,
) -> None:
    """Run the paper's experiments: figures, numbers, an HTML page, and verdicts on its claims.

    Finished runs are kept: after Ctrl-C the same command continues.
    """
    from extremal_lab.reproduction import reproduce as experiments
    from extremal_lab.reproduction.ledger import judge
    from extremal_lab.reproduction.spec import FIGURES
    from extremal_lab.reproduction.studies import STUDIES, run_studies

    chosen = _targets(targets or ["all"], [*FIGURES, "table2", *STUDIES])
    studies = [name for name in chosen if name in STUDIES]
    if studies and (seeds, passes, methods) != (None, None, None):
        what = "--seeds and --passes are" if methods is None else "--methods is"
        raise InputError(f"{what} for figures, and not for {', '.join(studies)}: name the figures to run")
    changes = {"seeds": seeds, "passes": passes, "added": None if methods is None else _names(methods)}
    figures = [_figure(FIGURES[name], quick, data, changes) for name in chosen if name in FIGURES]
    work, console = _work(workers, cache, offline), terminal()
    with _going_on():
        done = experiments.run_figures(figures, work, console, out)
        findings = run_studies(studies, work, console, quick, data)
    table = _table2() if "table2" in chosen else None
    options = {"--quick": quick or None, "--data": data, "--seeds": seeds, "--passes": passes}
    said = "".join(f" {name}" + ("" if value is True else f" {value}") for name, value in options.items() if value is not None)
    more = {"studies": [study.page for study in findings], "table2": table, "ledger": judge(done, findings, table, said)}
    experiments.write("Sarah Frank-Wolfe: the paper's experiments, run again", done, out, console, quick, **more)


@one_line()
def compare(
    data: Annotated[
        list[str], typer.Option(metavar="DATA", help="A file, a name of `extremal data list`, or module:name; may be repeated.")
    ],
    set_: Annotated[
        list[str], typer.Option("--set", metavar="SET", help="l1:5, simplex, 'l1:5 & nonneg', module:name; may be repeated.")
    ],
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            "--method",
            metavar="LIST",
            help="Names with commas; parameters after colons: sarah-fw:batch=10,negiar. Your own: module:name.",
        ),
    ] = "auto,sarah-fw,saga-sarah-fw,negiar-sfw",
    loss: Annotated[str, typer.Option(metavar="LOSS", help="See: extremal losses; or module:name.")] = "logistic",
    passes: Annotated[
        float | None, typer.Option(help="Budget of each run, in full gradients. Default: 50, without --seconds.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(metavar="S", help="Budget of each run, on its clock.")] = None,
    seeds: Annotated[int, typer.Option(metavar="N", help="Runs of each curve.")] = 3,
    batch: Annotated[
        str | None, typer.Option(metavar="B", help="A number, n/100 or sqrt, for all methods. Default: each method's own.")
    ] = None,
    tune: Annotated[bool, typer.Option("--tune/--no-tune", help="Also show tuned steps, the best of the paper's trials.")] = True,
    test: Annotated[float | None, typer.Option(metavar="SHARE", help="Share of the rows to hold out for the test loss.")] = None,
    out: Out = Path("comparison"),
    workers: Workers = None,
    cache: Cache = None,
    offline: Offline = False,
) -> None:
    """Compare methods on your data: the same page as for the paper, with a certified minimum and all metrics.

    module:name is imported from the current folder or from installed packages, and so executes the code of the module.
    """
    from extremal_lab.comparing.front import compare as compared
    from extremal_lab.comparing.result import TITLE
    from extremal_lab.reproduction import reproduce as experiments

    work, console, done = _work(workers, cache, offline), terminal(), []

    def run(figure: Figure) -> Any:
        with _going_on():
            done.extend(experiments.run_figures([figure], work, console, out, check=True))
        return done[0][1]

    found = compared(
        [(name, loss, text) for name in dict.fromkeys(data) for text in dict.fromkeys(set_)], _list(methods),
        passes=passes, seconds=seconds, seeds=seeds, batch=batch, tune=tune, test=test, title=f"{loss} over {', '.join(set_)}",
        run=run,
    )  # fmt: skip
    found.save(out / "comparison.json")
    experiments.write(TITLE, done, out, console, studies=[found.study()])


def _list(methods: str) -> list[str]:
    """The methods of a list with commas."""
    return [name.strip() for name in methods.split(",") if name.strip()]


def _names(methods: str) -> tuple[str, ...]:
    """The methods of a list with commas, with their full names, or as module:name."""
    from extremal_lab.comparing.entries import Entries

    return Entries().methods(_list(methods))


def _figure(figure: Figure, quick: bool, data: str | None, changes: dict[str, Any]) -> Figure:
    """A figure of the paper with the user's changes."""
    from extremal_lab.reproduction.spec import quick as quickly

    changes = {name: value for name, value in changes.items() if value is not None}
    if data is not None:
        changes["problems"] = tuple(dict.fromkeys(replace(problem, data=data) for problem in figure.problems))
    return replace(quickly(figure) if quick else figure, **changes)


def _targets(named: list[str], known: list[str]) -> list[str]:
    for name in named:
        checks.one_of("target", name, [*known, "all"])
    return known if "all" in named else [name for name in known if name in named]


def _work(workers: int | None, cache: Path | None, offline: bool) -> Work:
    from extremal_lab.reproduction.extras import check_extra
    from extremal_lab.reproduction.plan import Work
    from extremal_lab.reproduction.store import Store

    check_extra("figures")
    if workers is not None:
        checks.whole("reproduce", "workers", workers, 1)
    return Work(Store(cache or _cache()), workers or _cores(), None if offline else fetch_shown)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("extremal") / "runs"


@contextmanager
def _going_on() -> Iterator[None]:
    """Handle Ctrl-C and the death of a worker: only unfinished runs are lost."""
    from extremal_lab.reproduction.pool import WorkerError

    try:
        yield
    except KeyboardInterrupt:
        typer.echo("interrupted; finished runs are kept, and the same command continues", err=True)
        raise typer.Exit(130) from None
    except WorkerError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


def _table2() -> dict[str, Any]:
    """The paper's Table 2 beside the numbers of the data: printed, and for the page."""
    found = datasets.table2()
    print_table2(found)
    rows = [table2_cells(row) for row in found]
    remark = "; ".join(row[-1] for row in rows if row[-1])
    return {"columns": list(TABLE2[:-1]), "rows": [row[:-1] for row in rows], "remark": remark}
