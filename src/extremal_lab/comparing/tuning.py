"""Trials over any parameter of a method, the same number for each method unless the caller asks for another."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from extremal import checks
from extremal.checks import InputError
from extremal.methods import METHODS, full_name, recipe
from extremal_lab.comparing.entries import Entries
from extremal_lab.reproduction.loops import Loop
from extremal_lab.reproduction.own import SIGN, is_reference, shown
from extremal_lab.reproduction.spec import FACTORS, Trial

FACTOR = "factor"  # the constant before the step, as a parameter of every method
Tuning = tuple[tuple[str, tuple[Trial, ...]], ...]


def read_tuning(tune: Any, methods: Sequence[str], entries: Entries, unequal: bool) -> tuple[tuple[float, ...], Tuning]:
    """The constants for all methods, and the trials of single methods."""
    if tune is None or isinstance(tune, bool):
        loops = tuple((method, ()) for method in methods if isinstance(entries.objects.get(method), Loop))
        return (FACTORS, loops) if tune else ((), ())
    if not isinstance(tune, Mapping):
        raise InputError(f"`compare(tune=...)` must be True or a dict such as {{'sarah-fw': {{'batch': [10]}}}}, got {tune!r}")
    names = {shown(method): method for method in methods}
    found = {}
    for name, grid in tune.items():
        method = names[checks.one_of("method of `compare(tune=...)`", _full(str(name), names), names)]
        found[method] = trials(method, grid, entries)
    _check_numbers({shown(method): len(found.get(method, ())) for method in methods}, unequal)
    return (), tuple(found.items())


def _check_numbers(counts: dict[str, int], unequal: bool) -> None:
    """Refuse different numbers of trials, unless the caller wants them."""
    if len(set(counts.values())) > 1 and not unequal:
        said = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InputError(
            f"`compare(tune=...)` must have the same number of trials for each method, got {said}; unequal=True accepts this"
        )


def _full(name: str, names: Collection[str]) -> str:
    """The name of a method of the comparison; beginnings of the library's names are completed."""
    known = name in names or not any(full.startswith(name.partition(":")[0]) for full in METHODS)
    return name if known else full_name(name)


def trials(method: str, grid: Any, entries: Entries) -> tuple[Trial, ...]:
    """All combinations of the values of a grid.

    Examples
    --------
    >>> [trial.said for trial in trials("sarah-fw", {"batch": [1, 10], "factor": [1.0]}, Entries())]
    ['batch=1, factor=1', 'batch=10, factor=1']
    """
    if not isinstance(grid, Mapping) or not all(_values(values) for values in grid.values()) or not grid:
        raise InputError(
            f"`compare(tune=...)` must have lists of values for parameters, such as {{'batch': [10, 30]}}, got {grid!r}"
        )
    return tuple(
        _trial(method, dict(zip(grid, values, strict=True)), entries) for values in itertools.product(*grid.values())
    )  # fmt: skip


def _values(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str) and len(values) > 0


def _trial(method: str, given: dict[str, Any], entries: Entries) -> Trial:
    said = ", ".join(f"{name}={_said(value)}" for name, value in given.items())
    if FACTOR in given and isinstance(entries.objects.get(method), Loop):
        raise InputError(f"`compare(tune=...)`: {shown(method)} is a loop with steps of its own, which no factor can scale")
    factor = checks.positive("compare", "tune", given.get(FACTOR, 1.0))
    rest = {name: value for name, value in given.items() if name != FACTOR}
    return Trial(_with(method, rest, entries), factor, said)


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _with(method: str, given: dict[str, Any], entries: Entries) -> str:
    """The text of a method with parameters: a text where it can be one, so that finished runs are kept."""
    if not given:
        return method
    plain = all(isinstance(value, int | float | str) for value in given.values())
    settings = "".join(f":{name}={value}" for name, value in given.items())
    if method.startswith(SIGN):
        return entries.text(f"{shown(method)} {settings[1:]}", _changed(entries.objects[method], given))
    if is_reference(method, METHODS):
        if not plain:
            raise InputError(f"`compare(tune=...)` must have numbers or texts as parameters of {method}, got {given!r}")
        return method + settings
    if plain:
        recipe(method + settings)  # refuses wrong parameters
        return method + settings
    return entries.text(f"{method} {settings[1:]}", _changed(recipe(method), given))


def _changed(method: Any, given: dict[str, Any]) -> Any:
    fields = [item.name for item in dataclasses.fields(method)] if dataclasses.is_dataclass(method) else []
    for name in given:
        if name not in fields:
            has = ", ".join(fields) or "no parameters, since it is not a dataclass"
            raise InputError(f"`compare(tune=...)`: {type(method).__name__} has no parameter {name!r}; it has {has}")
    return dataclasses.replace(cast(Any, method), **given)
