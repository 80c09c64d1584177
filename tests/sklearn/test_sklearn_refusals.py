"""The argument ``constraint``: every refusal with its reason, words for the same, and what is never proposed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from constraint_texts import ROWS, read
from scipy.optimize import Bounds

import extremal as ex
from extremal.sklearn import ConstrainedLogisticRegression


@pytest.mark.parametrize(
    ("constraint", "radius", "message"),
    [
        ("l1=5", None, r"did you mean 'l1:5'\?$"),
        ("L1 <= 5", None, r"did you mean 'l1:5'\?$"),
        ("box=0,1", None, r"did you mean 'box:0,1'\?$"),
        ("lasso:5", None, r"did you mean 'l1:5'\?$"),
        ("Lasso", None, r"did you mean 'l1'\?$"),
        ("ridge=3", None, r"did you mean 'l2:3'\?$"),
        (">0", None, "strict bounds do not exist, write '>=0' for '>0'$"),
        ("simplex & < 0.4", None, "write '<=0.4' for '< 0.4'$"),
        (ex.CappedSimplex(0.05), None, "4 weights of at most 0.05 sum to at most 0.2, not 1$"),
        ("l3:1", None, "no constraint of that name"),
        ("simlex", None, r"no constraint of that name; did you mean 'simplex'\?"),
        ("l1:", None, "write l1:RADIUS or give radius="),
        ("lp:3", None, "write lp:RADIUS,P or give radius="),
        ("l1:10", 5, "`radius` must be left out, or belong to one constraint in words .* no part of it needs one"),
        ("l1 & l2", 5, "more than one part of it needs one"),
        ("nonneg", 5, "no part of it needs one"),
        (ex.L1Ball(1.0), 5, "`radius` must be left out if `constraint` is a set"),
        ("l1", -1, r"`radius` must be a positive number, or a fraction such as '30%'"),
        ("l1", "130%", "at most 100%"),
        ("l1", True, "`radius` must be a positive number"),
        ("l1:-3", None, "`radius` must be a positive number"),
        ("l1:abc", None, "`radius` must be a positive number"),
        ("simplex:30%", None, "simplex is not a ball of a norm"),
        ("box:0%,1", None, "box is not a ball of a norm"),
        ("box:1,0", None, "must have lower <= upper"),
        ("hypersimplex:9", None, "does not fit coefficients of shape"),
        ("capped-simplex:0.1", None, "4 weights of at most 0.1 sum to at most 0.4, not 1$"),
        ("k-support:1,1.5", None, "must be a whole number"),
        ("nuclear:2", None, "nuclear is for matrices"),
        ("monotone:1", None, "write monotone or monotone:LOWER,UPPER"),
        ("monotone:1,0", None, "the bounds must be in order"),
        ("groups:5", None, "groups of features are missing"),
        ("groups:5;size=3", None, "4 features cannot be cut into groups of 3"),
        ("groups:5;0-1;1-3", None, "must not overlap.*exactly one group"),
        ("groups:5;0-1", None, "but 2 is in none.*exactly one group"),
        ("groups:5;0-9", None, "there is no feature 9, X has 4"),
        (ex.L2Ball(1.0, shape=3), None, r"does not fit coefficients of shape \(4,\)"),
        (ex.NuclearBall(1.0), None, r"does not fit coefficients of shape \(4,\)"),
        ({"incme": ">=0"}, None, "no feature 'incme'; did you mean 'income'"),
        ({7: ">=0"}, None, "there is no feature 7, X has 4"),
        ({1.5: ">=0"}, None, "called by name or position"),
        ({"age": ">=0", 0: "<=1"}, None, "'age' and 0 are the same feature"),
        ({"age": "> 0"}, None, "strict bounds do not exist, write '>=0' for '> 0'$"),
        ({"age": (1, 0)}, None, "leave no number between them"),
        ({"age": (0, 1, 2)}, None, "cannot read the bounds"),
        ({"age": float("nan")}, None, "are not bounds"),
        ({"age": True}, None, "cannot read the bounds True"),
        ([{"age": ">=1"}, {"age": "<=0"}], None, "cannot be at least 1 and at most 0 .by {age: >=1} and {age: <=0}"),
        ("age >= 1 & age <= 0", None, "feature 'age' cannot be at least 1 and at most 0"),
        ("age >= 1 & age <= income & income <= 0", None, "no coefficients satisfy all of it"),
        ("simplex & >=0.3", None, "sum to 1.2 to inf, not to 1|would be at least"),
        ("simplex & <=0.2", None, "sum to 0 to 0.8, not to 1"),
        ("simplex & simplex:2", None, "cannot sum to 1.0 and to 2.0"),
        ("simplex:2 & l1:1", None, "more than the radius 1"),
        ("l1:1 & >=0.5", None, "magnitudes between the bounds sum to at least 2, more than the radius 1"),
        ("monotone & monotone-decreasing", None, "all equal"),
        ("l2:3 & nonneg", None, "l2:3 cannot be joined with nonneg: there is no oracle for both. These can be joined"),
        ("l1:30% & l1:5", None, "one radius can be a fraction"),
        ("linf:30% & nonneg", None, "cannot be joined with nonneg"),
        ("age < 1", None, "write <= for <"),
        ("age <= 1 <", None, "one side of the inequality is empty"),
        ("age + <= 1", None, "cannot read it at ''"),
        ("age income <= 1", None, "a sign is missing before it"),
        ("age * income <= 1", None, "terms are numbers, features"),
        ("1 / age <= 1", None, "terms are numbers, features"),
        ("age / 0 <= 1", None, "divides by 0"),
        ("age <= (income)", None, "cannot read it from"),
        ("agee <= 1", None, "no feature 'agee'; did you mean 'age'"),
        ("__import__('os').getcwd() <= 1", None, "cannot read it|no feature"),
        ("0*age >= 1", None, "a row of zeros says 1 <= 0 <= inf"),
        ((np.ones((2, 3)), 1.0), None, r"A must have a column for each of the 4 features, got shape \(2, 3\)$"),
        ((ROWS, [1.0, 2.0, 3.0]), None, "b must be a number, or one for each of the 2 rows"),
        ((ROWS, [1.0, np.nan]), None, "b must be without NaN"),
        ((np.full((1, 4), np.nan), 1.0), None, "A must be finite"),
        ({"A_ub": ROWS}, None, "A_ub and b_ub must be given together"),
        (Bounds([0, 0], 1), None, "one for each of the 4 features"),
        (3.0, None, "its type float is not accepted. Accepted are: a set such as"),
        (["l1:3", 4], None, "its type int is not accepted"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_the_reason(constraint, radius, message):
    with pytest.raises(ex.InputError, match=message) as caught:
        read(constraint, radius)
    assert "`constraint" in str(caught.value) or "`radius`" in str(caught.value)


SIGNS = {"nonneg": ("positive", "nonnegative", "pos"), "nonpos": ("negative", "nonpositive", "neg")}
ORDERS = {"monotone": ("increasing", "nondecreasing"), "monotone-decreasing": ("decreasing", "nonincreasing")}
OPPOSITE = {"nonneg": "nonpos", "nonpos": "nonneg", "monotone": "monotone-decreasing", "monotone-decreasing": "monotone"}


@pytest.mark.parametrize(("meant", "word"), [(m, w) for m, words in (SIGNS | ORDERS).items() for w in words])
def test_words_for_the_same_are_understood(meant, word):
    for written in (word, word.upper(), re.sub("^non", "non-", word), re.sub("^non", "non_", word)):
        np.testing.assert_array_equal(corners(written), corners(meant))


def corners(constraint) -> np.ndarray:
    C = read(constraint).set(5.0)
    return np.array([C.lmo(g).to_array() for g in (np.ones(4), -np.ones(4), np.arange(4) - 1.5, 1.5 - np.arange(4))])


def misspelt(word):
    """The word with a letter missing, doubled or swapped, or another in its place."""
    for i in range(len(word)):
        yield from (
            word[:i] + word[i + 1 :],
            word[:i] + word[i] + word[i:],
            word[:i] + word[i + 1 : i + 2] + word[i] + word[i + 2 :],
        )
        yield from (word[:i] + c + word[i + 1 :] for c in "aeopsx")


@pytest.mark.parametrize(("meant", "word"), [(m, w) for m, words in (SIGNS | ORDERS).items() for w in (m, *words)])
def test_the_opposite_is_never_proposed(meant, word):
    proposed = 0
    for text in set(misspelt(word)):
        try:
            read(text)
        except ex.InputError as error:
            hint = str(error).partition("did you mean")[2].partition("?")[0]
            assert hint.strip(" '") != OPPOSITE[meant], text
            proposed += hint.strip(" '") == meant
        else:  # the mistake is a word too
            assert not np.array_equal(corners(text), corners(OPPOSITE[meant])), text
    assert proposed or len(word) < 6


@pytest.mark.parametrize("text", ["npos", "nneg", "onnegative", "nnegative"])
def test_what_may_mean_both_is_left_open(text):
    with pytest.raises(ex.InputError, match="no constraint of that name") as caught:
        read(text)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("constraint", ["age <= income", "monotone", (ROWS, 1.0), "l1:2 & sum == 1"])
def test_what_is_for_one_output_is_refused_for_several(constraint):
    with pytest.raises(ex.InputError, match="for one output"):
        read(constraint, shape=(4, 2))


def test_names_come_with_data_frames():
    with pytest.raises(ex.InputError, match=r"no feature names: these come with a DataFrame\. .* Otherwise write x0, x1"):
        read({"age": ">=0"}, names=None)
    with pytest.raises(ex.InputError, match="a reach is needed"):
        read("nonneg").set()


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_a_list_of_classes_with_a_gap_has_no_class_of_that_name(gap):
    X, y = np.arange(8.0).reshape(4, 2), ["a", "b", "a", gap]
    with pytest.raises(ex.InputError, match=r"y has missing values, first in row 3"):
        ConstrainedLogisticRegression("l1:1").fit(X, y)
