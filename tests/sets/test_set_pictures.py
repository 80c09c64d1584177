"""The page of sets: every set has a card and a picture, and the bodies that are drawn are the sets."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import extremal as ex
from extremal import sets

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "sets.md").read_text()
CARDS = [line.split(" | ") for block in re.findall(r"```\{sets\}\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
IN_TEXT = {"FacedProduct", "FacedRows"}  # the same points as Product and Rows


@pytest.fixture(scope="module")
def pictures():
    for name in ("matplotlib", "sphinx"):
        pytest.importorskip(name)
    spec = importlib.util.spec_from_file_location("set_pictures", DOCS / "_ext" / "set_pictures.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def classes():
    found = (getattr(sets, name) for name in sets.__all__)
    return {kind.__name__ for kind in found if isinstance(kind, type) and issubclass(kind, ex.ConvexSet)} - {"ConvexSet"}


def test_every_set_has_one_card():
    assert all(len(card) == 4 for card in CARDS)
    names = [card[0] for card in CARDS]
    assert len(names) == len(set(names))
    assert {*names, *IN_TEXT} == classes()
    assert all(f"extremal.{name}>" in PAGE for name in IN_TEXT)


def test_cards_have_the_words_of_their_sets():
    words = {name: said for name, said, _, _ in CARDS}
    for word, (kind, _, _) in sets.SETS.items():
        assert words[kind].startswith(word)


def test_every_card_has_a_picture(pictures):
    assert pictures.SHAPES.keys() == {card[0] for card in CARDS}
    for name, make in pictures.SHAPES.items():
        assert type(make().C).__name__.removeprefix("Faced") == name


@pytest.mark.parametrize("name", ["Simplex", "L1Ball", "GroupBall", "KNormBall", "MinkowskiSum", "AffineCut", "Matchings"])
def test_what_is_drawn_is_the_boundary(pictures, monkeypatch, name):
    monkeypatch.setattr(pictures, "DIRECTIONS", 60)
    pictures.directions.cache_clear()
    shape = pictures.SHAPES[name]()
    found = pictures.points(shape)
    pictures.directions.cache_clear()
    middle = found.mean(axis=0)
    for point in found:
        assert shape.C.contains(point, 1e-6)
        assert not shape.C.contains(middle + 1.01 * (point - middle), 1e-6)
    drawn = pictures.picture(found)
    faces = drawn.axes[0].collections[1].get_paths()
    assert len(faces) == 1 if name == "Simplex" else len(faces) > 1
    normals = [normal for _, normal in pictures.faces(found)]
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0)
