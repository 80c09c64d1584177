"""The table of the methods: every method has its row, and its docstring tells it."""

from __future__ import annotations

import inspect

import pytest

import extremal as ex
from extremal.methods import METHODS, Card
from extremal.methods.cards import CARDS
from extremal.methods.method import WithCard


def test_a_row_is_a_method_and_a_method_is_a_row():
    public = {name for name in ex.__all__ if isinstance(getattr(ex, name), type) and issubclass(getattr(ex, name), WithCard)}
    assert public == set(CARDS)
    assert public >= {name for name in ex.__all__ if hasattr(getattr(ex, name), "prepare")} - {"Method"}
    assert len(METHODS) == len(CARDS)
    assert all(METHODS[card.name] is getattr(ex, kind) and METHODS[card.name].card is card for kind, card in CARDS.items())


@pytest.mark.parametrize("kind", METHODS.values(), ids=lambda kind: kind.__name__)
def test_docstrings_state_the_guarantee(kind):
    """Once, as the last paragraph before the parameters; it has every cell of the row, and what a row without cells has."""
    about, *_ = inspect.getdoc(kind).partition("\nParameters\n")
    *_, last = about.partition("\nExamples\n")[0].strip().split("\n\n")
    assert " ".join(last.split()) == kind.card.guarantee
    assert about.count("Guarantee") == 1
    rows = [kind.card] + ([kind.card.smallest] if kind.card.smallest else [])
    assert all(cell in kind.card.guarantee for row in rows for cell in (*(row.convex or ()), *(row.nonconvex or ())))
    assert kind.card.convex or kind.card.nonconvex or kind.card.note
    assert all(word not in kind.card.guarantee for word in ("..", ". .", " ;"))


def test_classes_of_users_keep_their_docstrings():
    class Mine(ex.SarahFW):
        """My own."""

    class Other(WithCard):
        card = Card("other", "a method of a user", "nobody", "0", note="nothing is known")

    assert (Mine.__doc__, Mine.card) == ("My own.", CARDS["SarahFW"])
    assert (Other.__doc__, Other.card.guarantee) == (None, "Guarantee: nothing is known.")


def test_without_docstrings_there_is_a_card():
    """As under python -OO."""
    bare = type("SarahFW", (WithCard,), {})
    assert (bare.__doc__, bare.card) == (None, CARDS["SarahFW"])


def test_docstrings_without_sections_end_with_the_guarantee():
    short = type("SarahFW", (WithCard,), {"__doc__": "In short.\n"})
    assert short.__doc__.startswith("In short.\n\nGuarantee, as in the paper's Table 1: convex f: ~n")
