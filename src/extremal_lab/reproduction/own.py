"""The user's own objects and code in comparisons: objects of this session, and ``module:name`` on the command line.

Tasks are plain texts. A text that begins with ``@`` names an object of the comparison that is running; a text such as
``mypkg.mine:MyFW`` names an object of a module, which is imported. Importing a module executes it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pickle
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from extremal.checks import InputError

HELD: dict[str, Any] = {}  # objects of the comparison that is running, by their texts
_ONE_AT_A_TIME = threading.RLock()
_REFERENCE = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):([A-Za-z_]\w*(?:\.\w+)*)((?::\w+=[^:]*)*)")
SIGN = "@"


@contextmanager
def held(objects: Mapping[str, Any]) -> Iterator[None]:
    """Make objects known by their texts while a comparison runs; another comparison with own objects waits."""
    with _ONE_AT_A_TIME:
        before = dict(HELD)
        HELD.update(objects)
        try:
            yield
        finally:
            HELD.clear()
            HELD.update(before)


def shown(text: str) -> str:
    """The text as people read it.

    Examples
    --------
    >>> shown("@mine"), shown("mypkg.mine:MyFW:batch=10"), shown("l1:5")
    ('mine', 'MyFW:batch=10', 'l1:5')
    """
    return text.partition(":")[2] if is_reference(text) else named(text)


def named(text: str) -> str:
    """The text without the sign of an object; ``module:name`` stays as it is.

    Examples
    --------
    >>> named("@mine"), named("mypkg.mine:MyFW")
    ('mine', 'mypkg.mine:MyFW')
    """
    return text.removeprefix(SIGN)


def is_reference(text: str, known: Collection[str] = ()) -> bool:
    """Whether the text names an object of a module, ``module:name``; texts that begin with a ``known`` name do not.

    Examples
    --------
    >>> is_reference("mypkg.mine:MyFW"), is_reference("mine:MyFW:batch=10"), is_reference("sarah-fw:batch=10")
    (True, True, False)
    >>> is_reference("auto:x", known=("auto",)), is_reference("l1:5")
    (False, False)
    """
    return _REFERENCE.fullmatch(text) is not None and text.partition(":")[0] not in known


def imported(what: str, text: str, make: Callable[[Any, dict[str, Any]], Any]) -> Any:
    """The object that ``module:name:parameter=value`` means: ``make`` gets the object of the module and the parameters."""
    module, name, *settings = text.split(":")
    found = _module(what, text, module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise InputError(f"the {what} {text!r}: the module {module} has no {name!r}")
        found = getattr(found, part)
    given = {key: _value(value) for key, _, value in (setting.partition("=") for setting in settings)}
    try:
        return make(found, given)
    except InputError:
        raise
    except Exception as error:  # code of the user, which may raise anything
        raise InputError(f"the {what} {text!r} cannot be made: {_said(error)}") from error


def made(found: Any, given: dict[str, Any]) -> Any:
    """An object from a class, from a function that makes one, or the object itself, with parameters."""
    if callable(found):
        return found(**given)
    return dataclasses.replace(found, **given) if given else found


def _module(what: str, text: str, module: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does: modules beside the user's data
    try:
        return import_module(module)
    except Exception as error:  # a module executes its code
        raise InputError(f"the {what} {text!r}: the module {module} cannot be imported: {_said(error)}") from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")


def _value(text: str) -> Any:
    """A parameter: a number, a truth value, or text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


# workers and kept results


def texts(fields: Any) -> Iterator[str]:
    """All texts in the fields of a task."""
    if isinstance(fields, str):
        yield fields
    elif isinstance(fields, dict):
        for item in fields.values():
            yield from texts(item)


def held_by(task: Any) -> set[str]:
    """The texts of a task that name objects of the running comparison."""
    if not HELD or not dataclasses.is_dataclass(task):
        return set()
    return set(texts(dataclasses.asdict(cast(Any, task)))) & HELD.keys()


def portable() -> dict[str, Any]:
    """The held objects that another process can have: those that pickle, unless the main script defines them."""
    return {text: item for text, item in HELD.items() if _travels(item)}


def _travels(item: Any) -> bool:
    try:
        return b"__main__" not in pickle.dumps(item)  # a worker has another main script
    except Exception:  # each object may refuse in its own way
        return False


def code_of(fields: Any) -> dict[str, str]:
    """A digest of the user's code behind each ``module:name`` in the fields of a task."""
    return {text: _digest(text.partition(":")[0].partition(".")[0]) for text in texts(fields) if is_reference(text)}


@cache
def _digest(package: str) -> str:
    """A digest of all sources of a package, or of the file of a module; code that these import elsewhere is not in it."""
    spec = find_spec(package) if package in sys.modules or _there(package) else None
    if spec is None or spec.origin is None:
        return ""
    file = Path(spec.origin)
    digest = hashlib.sha256()
    for path in sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
