"""``extremal demo``: the library in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from extremal.cli.common import one_line
from extremal.files import check_out, terminal


@one_line()
def demo(
    out: Annotated[Path, typer.Option(metavar="PICTURE.png", help="File of the picture.")] = Path("extremal-demo.png"),
) -> None:
    """Fit a model under a constraint with its certificate, run methods side by side, save a picture."""
    from extremal_lab.reproduction.demo import run

    run(check_out(out), terminal())
