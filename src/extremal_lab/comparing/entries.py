"""Problems and methods as users write them, as the texts of tasks; objects get texts that begin with ``@``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from extremal import checks
from extremal.checks import InputError
from extremal.losses import LOSSES
from extremal.methods import METHODS, full_name, recipe
from extremal.sets import SETS, ConvexSet
from extremal.sets.words import check_words
from extremal_lab.reproduction.loops import Loop, as_method
from extremal_lab.reproduction.own import SIGN, is_reference
from extremal_lab.reproduction.sources import checked_arrays
from extremal_lab.reproduction.spec import Problem

FORMS = "(f, set) with an objective f, (A, y, loss, set), (data, loss, set) or (data, set) with the name of data, or Problem"


class Entries:
    """Texts for the objects of a comparison.

    Examples
    --------
    >>> import extremal as ex
    >>> entries = Entries()
    >>> entries.text("mine", ex.L1Ball(2.0)), entries.text("mine", ex.L1Ball(3.0)), list(entries.objects)
    ('@mine', '@mine 2', ['@mine', '@mine 2'])
    """

    def __init__(self):
        self.objects: dict[str, Any] = {}

    def text(self, name: str, item: Any) -> str:
        """A text for an object: its name, with a number if another object has the name."""
        for text in self._names(SIGN + name.replace(":", " ").replace("/", " ")):
            if self.objects.setdefault(text, item) is item:
                return text
        raise AssertionError("there are enough numbers")

    @staticmethod
    def _names(text: str) -> Iterator[str]:
        yield text
        number = 2
        while True:
            yield f"{text} {number}"
            number += 1

    # problems

    def problems(self, given: Any, test: Any) -> tuple[Problem, ...]:
        """The problems of a comparison, each with its test rows."""
        single = isinstance(given, Problem | tuple)
        named = given.items() if isinstance(given, Mapping) else (("", item) for item in ([given] if single else given))
        found = [self._problem(str(name), item, place) for place, (name, item) in enumerate(named, 1)]
        wanted = test if isinstance(test, Mapping) else dict.fromkeys((p.key for p in found), test)
        for name in wanted:
            checks.one_of("problem of `compare(test=...)`", name, [p.key for p in found])
        return tuple(replace(p, test=self._test(p, wanted[p.key])) if p.key in wanted else p for p in found)

    def _problem(self, name: str, item: Any, place: int) -> Problem:
        if isinstance(item, Problem):
            return replace(item, name=name or item.name)
        match item:
            case (f, C) if not checks.lacks(f, "value_and_grad"):
                name = name or f"problem {place}"
                return Problem(self.text(name, f), "", self._set(C), name=name)
            case (str(data), C):
                return Problem(data, set=self._set(C), name=name)
            case (str(data), loss, C):
                return Problem(data, self._loss(loss), self._set(C), name=name)
            case (A, y, loss, C):
                name, rows = name or f"problem {place}", checked_arrays("compare(problems=...)", (A, y))
                return Problem(self.text(name, rows), self._loss(loss), self._set(C), name=name)
        raise InputError(f"`compare(problems=...)` must have problems of the form {FORMS}, got {type(item).__name__}")

    def _loss(self, loss: Any) -> str:
        if isinstance(loss, str):
            return loss if is_reference(loss, LOSSES) else checks.one_of("loss", loss, LOSSES)
        if checks.lacks(loss, "value", "deriv"):
            raise InputError(f"`compare(problems=...)` must have losses such as ex.Logistic() or 'logistic', got {loss!r}")
        return self.text(type(loss).__name__, loss)

    def _set(self, C: Any) -> str:
        if isinstance(C, str):
            if not is_reference(C, SETS):
                check_words(C)
            return C
        if not isinstance(C, ConvexSet):
            raise InputError(f"`compare(problems=...)` must have sets such as ex.L1Ball(5.0) or 'l1:5', got {C!r}")
        return self.text(short(C), C)

    def _test(self, problem: Problem, test: Any) -> str:
        """The text of test rows: a share, rows, or an objective."""
        if test is None:
            return problem.test
        if isinstance(test, float | int):
            return f"{checks.within('compare', 'test', test, 0, 0.9):g}"
        if not checks.lacks(test, "value"):
            return self.text(f"test of {problem.key}", test)
        f = self.objects.get(problem.data)
        if f is not None and not isinstance(f, tuple) and not hasattr(f, "loss"):
            raise InputError(f"`compare(test=...)` must be an objective for {problem.key}, whose objective has no loss of rows")
        return self.text(f"test of {problem.key}", checked_arrays("compare(test=...)", test))

    # methods

    def methods(self, given: Any) -> tuple[str, ...]:
        """The texts of methods."""
        if isinstance(given, Mapping):
            return tuple(self.method(str(name), item) for name, item in given.items())
        several = given if isinstance(given, list | tuple) else [given]
        return tuple(self.method("", item) for item in several)

    def method(self, name: str, item: Any) -> str:
        """The text of a method: a name of the library or ``module:name`` stays; an object gets its own."""
        if isinstance(item, str) and is_reference(item, METHODS):
            return item
        if isinstance(item, str):
            recipe(item)  # refuses wrong names
            if not name:
                return full_name(item)
            item = recipe(item)
        method = as_method("compare(methods=...)", item)
        if name in METHODS and type(method) is not METHODS[name]:
            raise InputError(
                f"`compare(methods=...)` must not call another method {name!r}, the name of {METHODS[name].__name__}"
            )
        return self.text(name or _name(item, method), method)


def _name(item: Any, method: Any) -> str:
    if isinstance(method, Loop):
        return _name_of_function(method.points)
    return type(method).__name__ if not inspect.isfunction(item) else item.__name__


def _name_of_function(points: Any) -> str:
    return points.__name__ if inspect.isfunction(points) else type(points).__name__


def short(C: ConvexSet) -> str:
    """A set in a few words; arrays in it are left out.

    Examples
    --------
    >>> import extremal as ex
    >>> short(ex.L1Ball(5.0))
    'L1Ball(radius=5.0)'
    """
    text = " ".join(str(C).split())
    return text if len(text) <= 60 else type(C).__name__
