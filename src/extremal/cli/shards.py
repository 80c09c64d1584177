"""``extremal shards``: convert data to a directory of shards, describe a directory, verify every byte of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from extremal.cli.common import AsJson, lines, one_line
from extremal.files.outputs import to_json
from extremal.files.shards.manifest import Manifest, ShardProgress, read_manifest
from extremal.support.display import terminal

SHARDS_CODES = "Exit codes: 0 done; 2 a mistake in the input, or a file that cannot be read or written; 130 Ctrl-C."
shards_app = typer.Typer(
    help="Rows on disk, for data larger than memory: build a directory of shards, describe it, verify it.",
    epilog=SHARDS_CODES, no_args_is_help=True,
)  # fmt: skip
ShardFolder = Annotated[Path, typer.Argument(metavar="DIRECTORY", help="A directory of shards.")]


@shards_app.command("build", epilog=SHARDS_CODES)
@one_line("interrupted before the build began")
def build_command(
    sources: Annotated[
        list[str], typer.Argument(metavar="SOURCE...", help="LIBSVM text, CSV, .npz, .npy or Parquet; patterns are expanded.")
    ],
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="The target directory; created if missing.")],
    no_shuffle: Annotated[bool, typer.Option("--no-shuffle", help="Keep the order of the rows.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the shuffle.")] = 0,
    target: Annotated[str | None, typer.Option(help="The target's column, a name or a number. Default: the last one.")] = None,
    weights: Annotated[str | None, typer.Option(help="The column of the weights, a name or a number.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 or float64.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing shards.")] = False,
) -> None:
    """Convert files to shards, shuffled, in bounded memory. The same command resumes a build that was interrupted."""
    from extremal.files.shards.build import build

    with _line() as progress:
        manifest = build(
            sources, directory, shuffle=not no_shuffle, seed=seed, target=target, weights=weights, dtype=dtype,
            overwrite=overwrite, progress=progress,
        )  # fmt: skip
    typer.echo(f"{directory}: {manifest.n} rows of {manifest.d} columns in {len(manifest.shards)} shards")


@shards_app.command("info", epilog=SHARDS_CODES)
@one_line("interrupted")
def info_command(directory: ShardFolder, as_json: AsJson = False) -> None:
    """Describe the contents of a directory, by its manifest."""
    found = shard_summary(read_manifest(directory))
    if as_json:
        typer.echo(to_json(found))
        return
    lines([(name, _said(value)) for name, value in found.items() if value is not None])


@shards_app.command("verify", epilog=SHARDS_CODES)
@one_line("interrupted before every byte was verified")
def verify_command(directory: ShardFolder) -> None:
    """Read every byte of a directory, and compare it with the manifest."""
    from extremal.files.shards.verify import verify_shards

    with _line() as progress:
        manifest = verify_shards(directory, progress)
    typer.echo(f"{directory}: {manifest.n} rows in {len(manifest.shards)} shards, all as the manifest says")


def shard_summary(manifest: Manifest) -> dict[str, object]:
    """The facts to print about a directory."""
    targets = manifest.targets
    return {
        "kind": manifest.kind, "rows": manifest.n, "columns": manifest.d, "entries": manifest.nnz, "dtype": manifest.dtype,
        "bytes": manifest.bytes, "shards": len(manifest.shards), "shuffled": manifest.shuffled,
        "seed": manifest.seed if manifest.shuffled else None,
        "targets": {"least": targets.least, "greatest": targets.greatest, "whole": targets.whole, "outputs": targets.outputs},
        "classes": targets.classes,
        "weights": None if manifest.weights is None else vars(manifest.weights),
        "names": manifest.names,
    }  # fmt: skip


def _said(value: object) -> str:
    """A value as text; long lists are cut."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_said(item)}" for name, item in value.items() if item is not None)
    if isinstance(value, (list, tuple)):
        more = f", ... ({len(value)} in all)" if len(value) > 12 else ""
        return ", ".join(map(_said, value[:12])) + more
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


@contextmanager
def _line() -> Iterator[ShardProgress | None]:
    """Show progress in one line on stderr, if that is a terminal."""
    console = terminal(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status("") as status:
        yield _ShardWatch(status.update)


class _ShardWatch:
    """Shows progress at most ten times a second, and whenever another pass begins."""

    def __init__(self, show: Callable[[str], object]):
        self.show, self.due, self.stage = show, 0.0, ""

    def __call__(self, stage: str, rows: int, size: int, total: int | None) -> None:
        now = time.monotonic()
        if now >= self.due or stage != self.stage:
            self.show(f"{rows}{'' if total is None else f' of {total}'} rows {stage}, {size / 1e6:.0f} MB")
            self.due, self.stage = now + 0.1, stage
