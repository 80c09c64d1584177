"""Data that need no download: generated stand-ins for real data sets that are not here.

A stand-in has the size of the real set and resembles it in properties that matter to first-order methods; each generator lists
them. It is not the real set: results hold for the stand-in only, and `describe` says so. The numbers below were measured on
the real files. All stand-ins are deterministic, and made in less than a second.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal import checks
from extremal.files.datasets import CATALOGUE

Pair = tuple[sp.csr_array, np.ndarray]

# frequency of each category of each attribute, in rows of 10000; the remaining rows have no entry
CENSUS = """1969 1805 2098 1960 2169 / 6970 780 343 295 643 399 4 2 / 2000 2000 2000 2000 2000
/ 1645 2239 361 3225 177 328 424 158 198 133 529 52 287 127 102 16 / 1306 3225 2239 752 2478 / 4599 1365 3281 315 305 128 7
/ 285 1259 1012 1121 1249 1271 421 615 1158 305 490 46 199 3 / 482 1556 4052 2551 301 1058 / 8543 319 96 83 959 / 3308 6692
/ 9167 833 / 9533 467 / 1715 670 4673 790 2152 / 8959 6 28 35 37 42 4 31 19 9 25 23 29 13 4 61 22 18 25 21 197 11 7 9 21 6
9 16 14 18 4 20 10 4 6 5 33 6 10 6 1"""
MUSHROOMS = """5 556 3880 1019 39 4500 / 3993 3146 5 2856 / 54 207 1846 2265 2811 177 20 20 1280 1320 / 4156 5844
/ 492 236 2659 44 492 4343 315 709 709 / 258 9742 / 8385 1615 / 6908 3092 / 2127 118 926 901 502 79 1290 1837 30 606 1480 106
/ 4328 5672 / 30 6371 2920 679 / 350 6076 2836 739 / 44 532 118 709 236 551 2304 5495 10
/ 44 532 118 709 236 630 2304 5396 30 / 10000 / 10 118 9754 118 / 739 9217 44 / 4884 44 3417 1595 59
/ 59 2009 2304 59 2422 89 59 2939 59 / 473 419 492 1536 4973 2107 / 3875 2644 359 1024 1408 453 236"""
# w8a: the frequency of the column of this rank, in rows of 10000; interpolated on a logarithmic scale
WORDS = {0: 3515, 5: 2196, 20: 1301, 50: 741, 100: 418, 150: 226, 170: 73, 190: 36, 200: 29, 250: 10, 299: 2.2}
# breast-cancer: how many of the 444 negative and 239 positive rows have the value 1, 2, ..., 10 in features 2 to 10
BENIGN = """136 46 92 67 83 15 1 4 0 0 / 369 37 27 8 0 0 1 1 1 0 / 344 51 30 12 2 2 2 1 0 0 / 363 37 31 5 4 3 0 0 0 1
/ 43 355 28 7 5 1 2 2 0 1 / 387 21 14 6 10 0 1 2 0 3 / 148 153 125 7 4 1 6 0 0 0 / 391 30 11 1 2 4 2 3 0 0
/ 431 8 2 0 1 0 1 1 0 0"""
MALIGNANT = """3 4 12 12 45 18 22 40 14 69 / 4 8 25 30 30 25 18 27 5 67 / 2 7 23 31 30 27 28 26 7 58
/ 30 21 27 28 19 18 13 25 4 54 / 1 21 43 41 34 39 9 19 2 30 / 15 9 14 13 20 4 7 19 9 129 / 2 7 36 32 30 8 65 28 11 20
/ 41 6 31 17 17 18 14 20 15 60 / 132 27 31 12 5 3 8 7 0 14"""


def stand_in(name: str) -> Pair:
    """Generated data instead of the data set of that name: (A, y) in the form of `extremal.files.datasets.load`.

    Examples
    --------
    >>> A, y = stand_in("mushrooms")
    >>> A.shape, A.nnz / 8124, round(float((y > 0).mean()), 3)
    ((8124, 112), 21.0, 0.518)
    """
    return _MAKERS[checks.one_of("data set", name, CATALOGUE)][0]()


def describe(name: str) -> str:
    """The stand-in in one line, which also says that it is not the real set.

    Examples
    --------
    >>> describe("w8a")
    'generated: 49749 x 300, 0/1 entries, 11.65 a row; not w8a'
    """
    entry = CATALOGUE[checks.one_of("data set", name, CATALOGUE)]
    return f"generated: {entry.n} x {entry.d}, {_MAKERS[name][1]}; not {name}"


def _census(n: int, positives: int, part: int = 0) -> Pair:
    """The stand-in for a9a: 14 attributes as 0/1 columns, one of each in a row unless it is missing; noisy labels.

    Matched: the frequencies of the columns, 12 to 14 ones in a row (really 11 to 14) and 13.87 on average, the number of
    positives; within a fifth, the four largest eigenvalues of A'A/n and the least logistic loss in the l1 ball of radius 20.
    """
    rng = np.random.default_rng(9)
    attributes = _attributes(CENSUS, rng)
    rng = np.random.default_rng([9, part])
    z = rng.standard_normal((n, 3))
    A = _one_hot(z, attributes, 0.9, rng)
    score = _rule(A, z)
    return A, _labels(score + 0.33 * score.std() * rng.logistic(size=n), positives)


def _rows_of_census(first: int, last: int) -> Pair:
    """The stand-ins for a8a and a8a.t: together they are the stand-in for a9a, like the real sets."""
    A, y = _census(CATALOGUE["a9a"].n, CATALOGUE["a9a"].positives)
    return A[first:last], y[first:last]


def _mushrooms(n: int, positives: int) -> Pair:
    """The stand-in for mushrooms: 21 attributes as 0/1 columns, one of each in a row; a linear rule separates the labels.

    Matched: the frequencies of the columns, 21 ones in every row, the number of positives, separable classes;
    within a fifth, the four largest eigenvalues of A'A/n and the least logistic loss in the l1 ball of radius 20.
    """
    rng = np.random.default_rng(21)
    z = rng.standard_normal((n, 3))
    z[:, 0] = 0.31 * z[:, 0] + 0.95 * np.where(rng.random(n) < positives / n, 1.0, -1.0)  # two clusters, variance 1
    A = _one_hot(z, _attributes(MUSHROOMS, rng), 0.98, rng)
    return A, _labels(_rule(A, z), positives)


def _attributes(text: str, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each attribute: its categories in some order, their upper quantiles, and its direction among three factors."""
    attributes = []
    for rows in _numbers(text):
        order, direction = rng.permutation(len(rows)), rng.standard_normal(3)
        edges = np.cumsum(rows[order]) / 1e4
        edges[-1] = 1.0 if edges[-1] > 0.999 else edges[-1]  # rounding, or missing values
        attributes.append((order, edges, direction / np.linalg.norm(direction)))
    return attributes


def _one_hot(z: np.ndarray, attributes: list[Any], load: float, rng: np.random.Generator) -> sp.csr_array:
    """A 0/1 column for each category, with the right frequency; the factors z make attributes depend on each other."""
    n, start, rows, columns = len(z), 0, [], []
    for order, edges, direction in attributes:
        score = load * (z @ direction) + np.sqrt(1 - load**2) * rng.standard_normal(n)
        quantile = np.empty(n)
        quantile[np.argsort(score)] = (np.arange(n) + 0.5) / n
        place = np.searchsorted(edges, quantile)
        there = np.flatnonzero(place < len(order))
        rows.append(there)
        columns.append(start + order[place[there]])
        start += len(order)
    return _ones(np.concatenate(rows), np.concatenate(columns), (n, start))


def _rule(A: Any, z: np.ndarray) -> np.ndarray:
    """A linear function of the rows: the weight of a column is the mean of the first factor over its rows."""
    return A @ ((A.T @ z[:, 0]) / np.maximum(1.0, A.sum(axis=0)))


def _words(n: int, d: int, per_row: float, positives: int) -> Pair:
    """The stand-in for w8a: words on pages of unequal length about six topics; labels from a sparse linear rule with noise.

    Matched: 11.65 ones in a row, the number of positives; within a tenth, the frequencies of the columns and the variance
    of the row counts; within a fifth, the three largest eigenvalues of A'A/n and the least logistic loss in the l1 ball of
    radius 20; 6 % of the rows are empty (really 8 %).
    """
    rng = np.random.default_rng(8)
    rates = np.exp(np.interp(np.arange(d), list(WORDS), np.log(list(WORDS.values()))))
    counts = np.rint(rng.permutation(rates) * (n * per_row / rates.sum())).astype(int)
    length, interest, topic = np.log(rng.gamma(1.1, size=n)), rng.standard_normal((n, 6)), rng.integers(6, size=d)
    pages = []
    for j, count in enumerate(counts):
        score = length + 1.2 * interest[:, topic[j]] + rng.gumbel(size=n)
        pages.append(np.argpartition(score, n - count)[n - count :])
    A = _ones(np.concatenate(pages), np.repeat(np.arange(d), counts), (n, d))
    rule = rng.normal(-0.6, 1.5, d) * (rng.random(d) < 0.2)
    return A, _labels(A @ rule + rng.logistic(size=n), positives)


def _madelon(n: int, part: int = 0) -> Pair:
    """The stand-in for madelon: dense integers, 20 columns that carry the label and 480 of noise.

    It is built like the real set: the label belongs to the 32 corners of a cube in five dimensions. The 20 columns are noisy
    linear images of the corners, so no column alone says much about the label. Matched: the range of the columns' means and
    deviations, the balance of the labels; within a fifth, the largest correlation of a column with the label (0.22), and the
    accuracy of a linear classifier (74 % on these rows, 58 % on others).
    """
    rng = np.random.default_rng(505)
    corners = rng.permutation(32).reshape(2, 16)  # the corners of the negative and of the positive class
    mix = rng.standard_normal((5, 5))
    spread = np.concatenate([rng.uniform(10, 135, 20), rng.uniform(0.6, 44, 480)])
    mean, place = 476 + np.minimum(spread, 44) * rng.random(500), rng.permutation(500)
    rng = np.random.default_rng([505, part])
    y = rng.permutation(np.repeat([-1.0, 1.0], n // 2))
    corner = corners[(y > 0).astype(int), rng.integers(16, size=n)]
    five = (2.0 * (corner[:, None] >> np.arange(5) & 1) - 1 + rng.standard_normal((n, 5))) / np.sqrt(2)
    ten = np.hstack([five, five @ (mix / np.linalg.norm(mix, axis=0))])
    twenty = np.hstack([ten, ten]) + 0.07 * rng.standard_normal((n, 20))
    X = np.hstack([twenty, rng.standard_normal((n, 480))])
    return sp.csr_array(np.clip(np.rint(mean + spread * X), 1, 999)[:, place]), y


def _cells(scaled: bool) -> Pair:
    """The stand-in for breast-cancer: an id and nine integers from 1 to 10; ``scaled`` puts every column into [-1, 1].

    Matched: the frequency of each value for each class and feature, the number of positives, the range and the mean of the
    ids; within a fifth, the two largest eigenvalues of the scaled A'A/n and its least logistic loss in the l1 ball of
    radius 20.
    """
    rng = np.random.default_rng(10)
    y = rng.permutation(np.repeat([-1.0, 1.0], [444, 239]))
    X = np.empty((len(y), 10))
    X[:, 0] = np.rint(np.clip(1.34e6 - rng.exponential(2.6e5, len(y)), 63375, None))
    X[rng.choice(len(y), 3, replace=False), 0] = 63375, 8233704, 13454352
    for label, text, load in ((-1.0, BENIGN, 0.66), (1.0, MALIGNANT, 0.55)):
        rows = np.flatnonzero(y == label)
        severity = rng.standard_normal(len(rows))
        for j, counts in enumerate(_numbers(text), 1):
            score = load * severity + np.sqrt(1 - load**2) * rng.standard_normal(len(rows))
            X[rows[np.argsort(score)], j] = np.repeat(np.arange(1, 11), counts.astype(int))
    low, high = X.min(axis=0), X.max(axis=0)
    return sp.csr_array(2 * (X - low) / (high - low) - 1 if scaled else X), y


def _numbers(text: str) -> list[np.ndarray]:
    return [np.array(part.split(), dtype=float) for part in text.split("/")]


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sp.csr_array:
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _labels(score: np.ndarray, positives: int) -> np.ndarray:
    """+1 for the largest scores, -1 for the others; equal scores have equal labels, so that a rule without noise holds."""
    return np.where(score >= np.partition(score, -positives)[-positives], 1.0, -1.0)


_BINARY, _DENSE, _IDS = "0/1 entries, {} a row", "dense integers about 480", "integers from 1 to 10 and an id"
_MAKERS: dict[str, tuple[Callable[[], Pair], str]] = {
    "a8a": (partial(_rows_of_census, 0, 22696), _BINARY.format(13.87)),
    "a8a.t": (partial(_rows_of_census, 22696, 32561), _BINARY.format(13.87)),
    "a9a": (partial(_census, 32561, 7841), _BINARY.format(13.87)),
    "a9a.t": (partial(_census, 16281, 3846, part=1), _BINARY.format(13.87)),
    "w8a": (partial(_words, 49749, 300, 11.6502, 1479), _BINARY.format(11.65)),
    "mushrooms": (partial(_mushrooms, 8124, 4208), _BINARY.format(21)),
    "madelon": (partial(_madelon, 2000), _DENSE),
    "madelon.t": (partial(_madelon, 600, part=1), _DENSE),
    "breast-cancer": (partial(_cells, scaled=False), _IDS),
    "breast-cancer_scale": (partial(_cells, scaled=True), "dense, entries in [-1, 1]"),
}
