"""``extremal verify``: check a saved answer against the data, without the solver."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from extremal.checks import InputError
from extremal.cli.common import AsJson, completed, lines, one_line
from extremal.cli.shard_rows import opened_shards
from extremal.cli.solving import asked_problem
from extremal.files.answers import load_answer, said_by, verify_arrays
from extremal.losses.named import LOSS_FORMS
from extremal.objectives.margins import MarginModel
from extremal.sets.base import ConvexSet
from extremal.sets.words.names import SETS
from extremal.sets.words.read import read_constraint
from extremal.trust.verifier import Verification

OPEN, REFUTED = 3, 4  # exit codes


@one_line("interrupted before the check was done")
def verify_answer(
    answer: Annotated[Path, typer.Argument(help="An answer of `extremal solve --out` or `Result.save`.", metavar="ANSWER.npz")],
    file: Annotated[
        Path,
        typer.Argument(help="LIBSVM text (also .gz, .bz2, .xz), .csv, .npz, .npy, or a directory of shards.", metavar="DATA"),
    ],
    set_: Annotated[
        str | None,
        typer.Option(
            "--set", metavar="SET", help="The set that you expect. Default: the answer's.", autocompletion=completed(SETS)
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Target: column name, 0-based number or .npy file. Default: as solved.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="ENGINE", help="Where to read shards: memory or disk. Default: by size.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that x is in the set, and that its value and its gap are as stated, by formulas of its own and exact sums.

    The verdict is "proved", "not proved" or "refuted".
    """
    held = load_answer(answer)
    said = said_by(answer, held)
    words = _words(answer, said)
    target = words["target"] if target is None else target
    shards = opened_shards(file, engine, target)
    with nullcontext() if shards is None else closing(shards):
        names, _, (f, _) = asked_problem(file, shards, target, words["loss"], words["positive"], words["intercept"], True)
        found = verify_arrays(held, f, None if set_ is None else _expected(set_, f, names), answer)
    _show(found, said, as_json)
    raise typer.Exit({"proved": 0, "not proved": OPEN}.get(found.verdict, REFUTED))


def _words(path: Path, said: dict[str, Any]) -> dict[str, Any]:
    """How the objective was made from a file: as the answer says, or by the name of its loss."""
    words = said.get("words")
    if words is None:
        plan = said["loss"]
        if isinstance(plan.get("fields"), dict) and isinstance(plan["fields"].get("loss"), dict) and "heaviest" in plan["fields"]:
            plan = plan["fields"]["loss"]  # of weighted rows
        kind, fields = "Logistic" if plan.get("kind") == "SignedLogistic" else plan.get("kind"), plan.get("fields")
        names = [name for name, (_, _, made) in LOSS_FORMS.items() if made.__name__ == kind]
        if not names or not isinstance(fields, dict):
            raise InputError(f"{path}: its loss {str(kind)[:100]!r} has no name for a command; use `ex.verify(path, f, C)`")
        numbers = [str(fields[name]) for name in ("delta", "q", "width") if name in fields]
        words = {"loss": ":".join([names[0], *([",".join(numbers)] if numbers else [])]), "intercept": said["intercept"]}
    kinds = {"loss": str, "intercept": bool, "positive": str | None, "target": str | None}
    if not isinstance(words, dict) or not all(isinstance(words.get(name), kind) for name, kind in kinds.items()):
        raise InputError(f"{path}: its text does not say how the objective was made")
    return {name: words.get(name) for name in kinds}


def _expected(text: str, f: MarginModel, names: tuple[str, ...] | None) -> ConvexSet:
    plan = read_constraint(text, None, f.shape, names)
    if plan.fraction is not None or not plan.bounded:
        raise InputError(f"--set {text}: a check takes a bounded set with its numbers, such as l1:20; leave it out otherwise")
    return plan.set()


def _show(found: Verification, said: dict[str, Any], as_json: bool) -> None:
    from extremal.files.outputs import to_json

    value, gap = found.stated
    if as_json:
        item = {"verdict": found.verdict, "reasons": found.reasons, "notes": found.notes, "value": value, "gap": gap}
        bounds = {"value_from": found.value[0], "value_to": found.value[1], "gap_from": found.gap[0], "gap_to": found.gap[1]}
        typer.echo(to_json(item | bounds | {"outside": found.outside, "set": said["set"], "loss": said["loss"]}))
        return
    lines([
        ("verdict", found.verdict),
        *[("", reason) for reason in found.reasons],
        *[("note", note) for note in found.notes],
        ("set", _brief(said["set"])),
        ("loss", _brief(said["loss"])),
        ("value", f"{value:.15g}, in [{found.value[0]:.15g}, {found.value[1]:.15g}]"),
        ("gap", f"{gap:.6e}, in [{found.gap[0]:.6e}, {found.gap[1]:.6e}]"),
        ("outside the set", f"by at most {found.outside:.1e}"),
    ])  # fmt: skip


def _brief(plan: Any) -> str:
    """A set or a loss in one line."""
    if not isinstance(plan, dict) or "kind" not in plan:
        return "array" if isinstance(plan, dict) and "array" in plan else "..." if isinstance(plan, dict) else repr(plan)
    given = plan.get("fields")
    fields = (
        {name: value for name, value in given.items() if value is not None and name != "shape"} if isinstance(given, dict) else {}
    )
    return f"{plan['kind']}({', '.join(f'{name}={_brief(value)}' for name, value in fields.items())})"
