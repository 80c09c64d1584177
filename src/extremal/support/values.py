"""Values that differ from others in some fields."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def changed(value: T, **fields: object) -> T:
    """The same dataclass with other values of some fields, without the checks of its ``__init__``, which take time.

    Numbers that the value keeps (`functools.cached_property`) stay, so they must not depend on the changed fields.

    Examples
    --------
    >>> import extremal as ex
    >>> changed(ex.L1Ball(2.0), radius=3.0)
    L1Ball(radius=3.0)
    """
    new = object.__new__(type(value))
    vars(new).update(vars(value), **fields)
    return new
