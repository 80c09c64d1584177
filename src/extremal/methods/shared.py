"""What the named methods share: a card each, and for most of them a batch and a step."""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass
from typing import ClassVar

from extremal import checks
from extremal.methods.base import Card, Recipe
from extremal.methods.cards import CARDS
from extremal.steps.base import Step, check_step


class WithCard(Recipe):
    """A named method: its card is the row under its name, and its docstring says what the row guarantees."""

    card: ClassVar[Card]

    def __init_subclass__(cls, **options: object):
        super().__init_subclass__(**options)
        if cls.__name__ not in CARDS:  # a user's class has its own card, or that of the method that it is made from
            return
        cls.card = CARDS[cls.__name__]
        if cls.__doc__ is not None:  # python -OO has none
            text, said = inspect.cleandoc(cls.__doc__), textwrap.fill(cls.card.guarantee, 120, break_on_hyphens=False)
            places = (text.find(f"\n{section}\n---") for section in ("Parameters", "Examples"))
            place = min((place for place in places if place >= 0), default=len(text))
            cls.__doc__ = f"{text[:place].rstrip()}\n\n{said}\n{text[place:]}"


class WithParameters(WithCard):
    """A named method with parameters that many have: a step rule, a batch size, a smoothness constant, flags."""

    def __post_init__(self):
        """Refuse what is no step rule, no batch size, no smoothness constant or no flag, of methods that have these."""
        call, given = type(self).__name__, {name: item for name, item in vars(self).items() if item is not None}
        if "L" in given:
            checks.positive(call, "L", given["L"])
        if "step" in given:
            check_step(call, given["step"])
        if "batch" in given:
            checks.whole(call, "batch", given["batch"], 1)
        for name in vars(self).keys() & {"blended", "lazy"}:
            checks.flag(call, name, vars(self)[name])


@dataclass(frozen=True)
class BatchAndStep(WithParameters):
    """A method with these two parameters first."""

    batch: int | None = None
    step: Step | None = None


@dataclass(frozen=True)
class EpochAndStep(WithParameters):
    """A method with these three parameters first."""

    batch: int | None = None
    epoch: int | None = None
    step: Step | None = None


@dataclass(frozen=True)
class SlidingInEpochs(WithParameters):
    """A sliding method with these three parameters first."""

    L: float | None = None
    batch: int | None = None
    epoch: int | None = None
