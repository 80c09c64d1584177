"""Matrix completion: what is taken out is put back, what is held back is not seen, and a matrix of low rank is found."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal import MatrixCompletion, NuclearBall
from extremal.points import FactoredMatrix

M, N, COUNT = 40, 30, 500
RNG = np.random.default_rng(0)
ROWS, COLS = np.divmod(RNG.choice(M * N, COUNT, replace=False), N)
VALUES = 3.0 + RNG.standard_normal(COUNT) + 0.3 * (ROWS % 3) - 0.5 * (COLS % 2)


def problem(**options) -> MatrixCompletion:
    return MatrixCompletion(ROWS, COLS, VALUES, (M, N), **options)


def triples(p) -> list[tuple[int, int, float]]:
    """The objective's entries with what was taken out put back."""
    at = p.objective.data.positions
    return sorted(zip(at.rows.tolist(), at.cols.tolist(), np.round(p.objective.y + p.offsets(at.rows, at.cols), 9), strict=True))


def test_every_value_is_either_seen_or_held_back():
    p = problem(validation=0.3, seed=5)
    kept = np.delete(np.arange(COUNT), p.held_back)
    assert len(p.held_back) == 150
    assert p.objective.n == 350
    assert triples(p) == sorted(zip(ROWS[kept].tolist(), COLS[kept].tolist(), np.round(VALUES[kept], 9), strict=True))
    assert repr(p) == "MatrixCompletion(40 x 30, 350 known, 150 held back)"
    np.testing.assert_array_equal(p.held_back, problem(validation=0.3, seed=5).held_back)
    assert (p.held_back != problem(validation=0.3, seed=6).held_back).any()
    assert len(problem(validation=0).held_back) == 0
    assert MatrixCompletion([0], [0], [1.0], validation=0.9).objective.n == 1  # something is left


def test_entries_are_sorted_for_the_oracle():
    assert problem().objective.data.positions.layout[0] is None


def test_what_is_taken_out_depends_on_what_is_seen_only():
    p = problem(validation=0.3)
    others = VALUES.copy()
    others[p.held_back] += 100.0
    q = MatrixCompletion(ROWS, COLS, others, (M, N), validation=0.3)
    assert q.mean == p.mean
    np.testing.assert_array_equal(q.objective.y, p.objective.y)
    assert q.rmse(np.zeros((M, N))) > 90


@pytest.mark.parametrize("centre", ["rows+cols", "mean", None])
def test_offsets_by_hand(centre):
    p = problem(centre=centre, validation=0)
    mean = VALUES.mean() if centre else 0.0
    rows, cols = np.zeros(M), np.zeros(N)
    if centre == "rows+cols":
        for j in range(N):
            cols[j] = (VALUES - mean)[COLS == j].sum() / ((COLS == j).sum() + 5)
        for i in range(M):
            rows[i] = (VALUES - mean - cols[COLS])[ROWS == i].sum() / ((ROWS == i).sum() + 5)
        assert p.rmse(0 * np.eye(M, N), ROWS, COLS, VALUES) < VALUES.std()  # they explain something
    assert p.mean == pytest.approx(mean)
    np.testing.assert_allclose(p.row_offsets, rows, atol=1e-12)
    np.testing.assert_allclose(p.col_offsets, cols, atol=1e-12)


def test_predictions_are_entries_and_offsets():
    p, x = problem(), FactoredMatrix(RNG.standard_normal((M, 2)), RNG.standard_normal((N, 2)))
    full = np.asarray(x) + p.mean + p.row_offsets[:, None] + p.col_offsets[None]
    at = RNG.integers(0, M, (3, 8)), RNG.integers(0, N, (3, 8))
    for point in (x, np.asarray(x)):
        np.testing.assert_allclose(p.predict(point, *at), full[at], atol=1e-12)
        np.testing.assert_allclose(p.complete(point), full, atol=1e-12)
        held = p.held_back
        error = full[ROWS[held], COLS[held]] - VALUES[held]
        assert p.rmse(point) == pytest.approx(np.sqrt(np.mean(error**2)))
        assert p.rmse(point, [0, 1], [2, 3], [1.0, 2.0]) == pytest.approx(
            np.sqrt(((full[0, 2] - 1) ** 2 + (full[1, 3] - 2) ** 2) / 2)
        )


def test_other_forms_are_the_same_problem():
    A = np.full((M, N), np.nan)
    A[ROWS, COLS] = VALUES
    order = np.lexsort((COLS, ROWS))
    p = MatrixCompletion(ROWS[order], COLS[order], VALUES[order], (M, N), seed=3)
    forms = (
        MatrixCompletion.from_dense(A, seed=3),
        MatrixCompletion.from_sparse(sp.csr_array((VALUES, (ROWS, COLS)), shape=(M, N)), seed=3),
    )
    for q in forms:
        assert q.shape == p.shape
        assert triples(q) == triples(p)
        np.testing.assert_array_equal(q.held_back, p.held_back)
    stored = sp.coo_array(([0.0, 2.0], ([0, 1], [0, 1])), shape=(2, 2))
    assert MatrixCompletion.from_sparse(stored, validation=0).objective.n == 2  # a stored zero is known
    assert MatrixCompletion.from_dense([[1, 2], [3, 4]], centre=None, validation=0).objective.n == 4
    assert MatrixCompletion(ROWS, COLS, VALUES).shape == (ROWS.max() + 1, COLS.max() + 1)


def test_a_matrix_of_low_rank_is_found_where_it_was_not_seen():
    rng = np.random.default_rng(1)
    truth = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 60))
    known = rng.random(truth.shape) < 0.4
    p = MatrixCompletion(*np.nonzero(known), truth[known], centre=None)
    C = NuclearBall(float(np.linalg.norm(truth, "nuc")))
    assert C.radius < p.largest_radius
    r = ex.minimize(
        p.objective,
        C,
        ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.Pairwise()),
        tol=0,
        atol=1e-3,
        max_iter=2000,
    )
    assert r.converged
    assert p.rmse(r.x) < 0.1 * np.sqrt(np.mean(truth**2))
    assert np.linalg.norm(p.complete(r.x) - truth) < 0.1 * np.linalg.norm(truth)
    assert r.x.norm_nuclear() <= C.radius * (1 + 1e-9)


def test_from_the_largest_radius_on_all_values_can_be_met():
    p = problem()
    at = p.objective.data.positions
    x = np.zeros((M, N))
    x[at.rows, at.cols] = p.objective.y
    assert p.objective.value(x) == 0
    assert np.linalg.norm(x, "nuc") <= p.largest_radius


def test_labels():
    labels = np.where(VALUES > 3, 1, -1)
    p = MatrixCompletion(ROWS, COLS, labels, (M, N), centre=None, loss=ex.Logistic())
    r = ex.minimize(p.objective, NuclearBall(20.0), ex.FrankWolfe(step=ex.steps.LineSearch()), max_iter=30)
    assert r.x.dtype == np.float64
    assert r.value < p.objective.value(0 * r.x) == pytest.approx(np.log(2), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: problem(centre="median"),
            r"`MatrixCompletion\(centre=...\)` must be 'rows\+cols', 'mean' or None, got 'median'",
        ),
        (lambda: problem(loss=ex.Logistic()), r"`MatrixCompletion\(centre=...\)` must be None with Logistic\(\)"),
        (lambda: problem(validation=1), r"`MatrixCompletion\(validation=...\)` must be a number from 0 to below 1, got 1"),
        (lambda: problem(validation=-0.1), r"`MatrixCompletion\(validation=...\)`"),
        (lambda: problem(seed=-1), r"`MatrixCompletion\(seed=...\)`"),
        (lambda: MatrixCompletion(ROWS, COLS, VALUES[1:]), r"`MatrixCompletion\(values=...\)` must be 500 numbers"),
        (lambda: MatrixCompletion([0], [0], ["a"]), r"`MatrixCompletion\(values=...\)` must be 1 numbers"),
        (
            lambda: MatrixCompletion([0, 0], [0, 1], [1, np.nan]),
            r"`MatrixCompletion\(values=...\)` must be finite, got nan at index 1",
        ),
        (lambda: MatrixCompletion([0, 9], [0, 0], [1, 2], (3, 3)), r"from 0 to 2, got 9 at index 1"),
        (lambda: MatrixCompletion([], [], []), "at least one row"),
        (lambda: MatrixCompletion.from_sparse(np.eye(2)), "must be a scipy sparse matrix, got ndarray"),
        (lambda: MatrixCompletion.from_dense(np.ones(3)), "must be a matrix of numbers"),
        (lambda: MatrixCompletion.from_dense(np.full((2, 2), np.nan)), "at least one row"),
        (lambda: problem(validation=0).rmse(np.zeros((M, N))), "needs values that were held back"),
        (lambda: problem().predict(np.zeros((M, N)), [0, 40], [0, 0]), r"`predict\(rows=...\)` .* 0 to 39, got 40 at index 1"),
        (lambda: problem().rmse(np.zeros((M, N)), [0], [0], [1.0, 2.0]), r"`rmse\(values=...\)`"),
    ],
)
def test_mistakes_are_named(call, match):
    with pytest.raises(ex.InputError, match=match):
        call()
