"""The colours of all pictures: one per method, others for series, all distinguishable for colour-blind readers."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["GREY", "LATER", "METHOD_COLOURS", "PALETTE", "Colour", "colours_of_methods", "colours_of_series"]

Colour = tuple[str, str]  # on a light background, on a dark one
# any two differ by at least 14.9 in CIELAB, for normal sight and three kinds of colour blindness; 3:1 against the background
PALETTE: tuple[Colour, ...] = (
    ("#0b4fd0", "#5a98ff"), ("#b92800", "#f5602c"), ("#008457", "#22e090"), ("#d77e03", "#ffd60a"), ("#7b1fa2", "#c23aac"),
    ("#1a99ee", "#aae6fe"), ("#b683a9", "#c78391"), ("#2a3038", "#f0f4ea"), ("#541800", "#8a7048"), ("#3c0054", "#a80cfc"),
)  # fmt: skip
LATER: tuple[Colour, ...] = (("#5c6b00", "#c6d64a"), ("#117a8b", "#5fc9d8"), ("#8b6a4f", "#c9a88b"), ("#7b8794", "#9aa6b3"))
GREY = "#767676"  # background elements of a picture: zero lines, tolerances, rivals
METHOD_COLOURS: dict[str, Colour] = dict(zip(
    ("sarah-fw", "saga-sarah-fw", "auto", "lu-freund-sfw", "spider-rfw", "most-fw", "negiar-sfw", "frank-wolfe",
     "copt-momentum-sfw", "momentum-sfw"), PALETTE, strict=True,
))  # fmt: skip


def colours_of_methods(methods: Iterable[str]) -> dict[str, Colour]:
    """A colour for each method: its own in every picture, or one that no method of the list has.

    A variant such as "sarah-fw:batch=10" has the colour of its method if that is free. Colours repeat after fourteen.

    Examples
    --------
    >>> colours_of_methods(["auto", "sarah-fw", "svrf"])["sarah-fw"]
    ('#0b4fd0', '#5a98ff')
    """
    return _assigned(methods, (*LATER, *PALETTE))


def colours_of_series(names: Iterable[str]) -> dict[str, Colour]:
    """A colour for each series of a picture, in palette order; a series named like a method has the colour of that method.

    Examples
    --------
    >>> colours_of_series(["b = 1", "b = n"])["b = 1"][0], colours_of_series(["b = 1", "auto"])["auto"][0]
    ('#0b4fd0', '#008457')
    """
    return _assigned(names, (*PALETTE, *LATER))


def _assigned(names: Iterable[str], order: tuple[Colour, ...]) -> dict[str, Colour]:
    names = list(dict.fromkeys(names))
    found = {name: METHOD_COLOURS[name] for name in names if name in METHOD_COLOURS}
    for name in (name for name in names if name not in found):
        own = METHOD_COLOURS.get(name.partition(":")[0])
        free = [colour for colour in order if colour not in found.values()] or [order[len(found) % len(order)]]
        found[name] = own if own in free else free[0]
    return {name: found[name] for name in names}
