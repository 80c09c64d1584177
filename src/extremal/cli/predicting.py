"""``extremal predict``: the predictions of a saved model for the rows of a file."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from extremal.checks import InputError
from extremal.cli.common import AsJson, one_line
from extremal.cli.shard_rows import opened_shards, shard_model
from extremal.files.models import load_model
from extremal.files.outputs import cells, check_out, to_json, whole_file
from extremal.files.tables import read_features


@one_line()
def predict(
    model: Annotated[Path, typer.Argument(help="A model saved by `extremal solve --out`.", metavar="MODEL.npz")],
    file: Annotated[
        Path,
        typer.Argument(help="LIBSVM text (also .gz, .bz2, .xz), .csv, .npz, .npy, or a directory of shards.", metavar="FILE"),
    ],
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A column that is not a feature, by name or 0-based number."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Write the CSV there instead of to stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the predictions of a saved model for the rows of FILE, as CSV: values, means of counts, or classes and probabilities.

    Columns are matched by name if both the model and the file have names; other columns of the file are ignored.
    """
    if out is not None:
        _check_own(check_out(out), model, file)
    fitted = load_model(model)
    shards = opened_shards(file, None, target)
    if shards is None:
        said = fitted.predict(read_features(file, len(fitted.x), fitted.features, target).A)
    else:
        said = shard_model(shards, fitted).predict(shards)
    columns = {name: column.tolist() for name, column in said.items()}
    text = to_json(columns) + "\n" if as_json else _csv(columns)
    if out is None:
        sys.stdout.write(text)
        return
    with whole_file(out) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def _check_own(out: Path, *read: Path) -> None:
    """Refuse to replace a file that the command reads."""
    if out.exists() and any(path.exists() and out.samefile(path) for path in read):
        raise InputError(f"--out {out}: this file is read by the same command; choose another name")


def _csv(columns: dict[str, list[object]]) -> str:
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(cells(columns))
    writer.writerows(cells(row) for row in zip(*columns.values(), strict=True))
    return held.getvalue()
