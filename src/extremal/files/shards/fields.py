"""Fields of an untrusted JSON file: each is checked, and a fault raises one sentence that names the file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from extremal.checks import InputError
from extremal.files.reading import damaged


def parsed(path: Path, text: bytes) -> object:
    r"""Parse JSON; Infinity and NaN are not JSON.

    Examples
    --------
    >>> parsed(Path("m.json"), b'{"n": 1')
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: m.json: the file is truncated or damaged (Expecting ',' delimiter: line 1 column 8 (char 7))
    """
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_no_constant)
    except RecursionError:
        raise damaged(path, "lists within lists without end") from None
    except ValueError as error:  # from the encoding, the text, or an integer of thousands of digits
        raise damaged(path, str(error).partition("\n")[0]) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


class Fields:
    """The fields of an object in a file, and its place there.

    Examples
    --------
    >>> Fields(Path("m.json"), "", {"n": -1}).whole("n", 0, 10)
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: m.json: `n` must be a whole number from 0 to 10, got -1
    """

    def __init__(self, path: Path, where: str, item: object):
        self.path, self.where = path, where
        if not isinstance(item, dict):
            name = f"`{where.removesuffix('.')}`" if where else "the file"
            raise InputError(f"{path}: {name} must be an object with fields, got {_shown(item)}")
        self.item: dict[str, Any] = item

    def wrong(self, name: str, words: str) -> InputError:
        """The error about a field."""
        got = f"got {_shown(self.item[name])}" if name in self.item else "there is none"
        return InputError(f"{self.path}: `{self.where}{name}` {words}, {got}")

    def inner(self, name: str) -> Fields:
        """The fields of a field."""
        return self.within(name, None, self.item.get(name))

    def within(self, name: str, i: int | None, item: object) -> Fields:
        """The fields of item i of a list."""
        return Fields(self.path, f"{self.where}{name}{'' if i is None else f'[{i}]'}.", item)

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number."""
        value = self.item.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(name, f"must be a whole number from {low} to {high}")
        return value

    def number(self, name: str) -> float:
        """A finite number."""
        value = self.item.get(name)
        if not _finite_number(value):
            raise self.wrong(name, "must be a finite number")
        return float(value)  # type: ignore[arg-type]

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self.item.get(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "must be true or false")
        return value

    def text(self, name: str) -> str:
        """A text."""
        value = self.item.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, "must be a text")
        return value

    def one_of(self, name: str, accepted: Iterable[str]) -> str:
        """One of some words."""
        value = self.text(name)
        if value not in accepted:
            raise self.wrong(name, f"must be one of {', '.join(accepted)}")
        return value

    def items(self, name: str) -> list[Any]:
        """A list."""
        value = self.item.get(name)
        if not isinstance(value, list):
            raise self.wrong(name, "must be a list")
        return value

    def labels(self, name: str) -> tuple[str, ...] | tuple[float, ...]:
        """Increasing texts, or increasing numbers."""
        values = self.items(name)
        texts = all(map(is_label, values))
        if not values or not (texts or all(map(_finite_number, values))):
            raise self.wrong(name, "must be texts that are not empty and have no NUL, or finite numbers, at least one")
        found = tuple(values) if texts else tuple(map(float, values))
        if not all(a < b for a, b in pairwise(found)):
            raise self.wrong(name, "must be sorted, each once")
        return found


def is_label(value: object) -> bool:
    """Whether a value is a text that can be a label; arrays of numpy forget a NUL at the end."""
    return isinstance(value, str) and bool(value) and "\0" not in value


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:60] + "..."


def _finite_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
