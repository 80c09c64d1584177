"""Methods by name."""

from __future__ import annotations

from collections.abc import Mapping

from extremal import checks
from extremal.checks import InputError
from extremal.methods.base import Recipe
from extremal.methods.cards import CARDS
from extremal.support.lazy import Named

METHODS: Mapping[str, type] = Named("extremal.methods", {card.name: kind for kind, card in CARDS.items()})


def as_recipe(call: str, method: Recipe | str | None) -> Recipe:
    """The method that was asked for: an object, a name from ``METHODS``, or `Auto` if left open."""
    if method is None:
        return METHODS["auto"]()
    if isinstance(method, str):
        return METHODS[checks.one_of("method", method, METHODS)]()
    if checks.lacks(method, "prepare"):
        raise InputError(f"`{call}(method=...)` must be a method such as SarahFW() or a name, got {method!r}")
    return method
