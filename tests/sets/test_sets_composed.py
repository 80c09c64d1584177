"""Sums, images, cuts and shifts of sets: what the contract of the catalogue does not ask."""

from __future__ import annotations

import ast
import inspect
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sets_composed import TALL, WIDE, best_corner, largest_entry, transposition

import extremal as ex
from extremal.points.composed import Combination
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex, least
from extremal.sets.made.blocks import FacedProduct, FacedRows, Product, Rows
from extremal.sets.made.cuts import AffineCut
from extremal.sets.made.images import LinearImage, Symmetrised
from extremal.sets.made.sums import MinkowskiSum, ScaledSet, ShiftedSet
from extremal.sets.oracle import Oracle

SHORT = 0.25  # by how much the bounds of the oracle below fall short of the minimum


def short_l1(kind: str, g: np.ndarray):
    """The l1 ball of radius 2, with a bound that is below the minimum."""
    v, low = largest_entry(g), -(2 + SHORT) * float(np.abs(g).max())
    match kind:
        case "coordinate":
            return replace(v, low=low)
        case "sparse":
            return SparseVertex(np.array([v.j]), np.array([v.value]), v.shape, low)
        case "dense":
            return DenseVertex(v.to_array(), low)
    return Combination(((1.0, v),), low)


def inexact(kind: str, shape) -> Oracle:
    return Oracle(partial(short_l1, kind), 4.0, shape)


# kinds of vertices


def test_scaled_vertices_keep_their_kind():
    sets = {
        Coordinate: ex.Simplex(),
        DenseVertex: ex.LinfBall(1.0),
        SparseVertex: Rows(ex.Simplex()),
        RankOne: Oracle(lambda g: RankOne(np.array([1.0, 2.0]), np.array([1.0, 0.0, -1.0])), 1.0),
        LowRank: Oracle(lambda g: LowRank(np.ones((2, 2)), np.ones((3, 2))), 1.0),
    }
    g = np.arange(6.0).reshape(2, 3)
    for kind, C in sets.items():
        v = ScaledSet(C, -3.0).lmo(g)
        assert type(v) is kind
        np.testing.assert_allclose(v.to_array(), -3 * C.lmo(-g).to_array())


def test_dense_parts_are_added_up():
    assert isinstance(MinkowskiSum(ex.LinfBall(1.0), ex.L2Ball(1.0)).lmo(np.ones(3)), DenseVertex)
    assert isinstance(ShiftedSet(ex.LinfBall(1.0), 2.0).lmo(np.ones(3)), DenseVertex)
    v = MinkowskiSum(ex.LinfBall(1.0), ex.Simplex(), ex.L2Ball(1.0)).lmo(np.ones(3))
    assert [type(part) for _, part in v.terms] == [Coordinate, DenseVertex]


def test_images_of_a_coordinate_are_columns():
    g = np.array([1.0, -2.0, 0.5])
    column = WIDE[:, (WIDE.T @ g).argmin()]
    np.testing.assert_array_equal(LinearImage(WIDE, ex.Simplex()).lmo(g).to_array(), column)
    v = LinearImage(sp.csr_array(WIDE), ex.Simplex()).lmo(g)
    assert isinstance(v, SparseVertex)
    np.testing.assert_array_equal(v.indices, np.flatnonzero(column))


def test_small_sets_far_away_hold_their_points_up_to_rounding():
    C = ShiftedSet(ex.L2Ball(1e-4), [1e4, -3e4])
    for g in np.random.default_rng(0).standard_normal((20, 2)):
        s = C.lmo(g).to_array()
        assert C.contains(s, 1e-12)  # s is rounded to 1e-12 of its size
        assert C.contains(s.astype(np.float32), 1e-5)
        assert not C.contains(2 * s - C.start(), 1e-12)


# sparse maps


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
@pytest.mark.parametrize("C", [ex.Simplex(), ex.L2Ball(1.0), Rows(ex.Simplex(), shape=(1, 5))], ids=repr)
def test_sparse_maps_answer_as_dense_ones(make, C):
    dense, sparse = LinearImage(WIDE, C), LinearImage(make(WIDE), C)
    rng = np.random.default_rng(0)
    for g in (*rng.standard_normal((5, 3)), np.zeros(3)):
        np.testing.assert_allclose(sparse.lmo(g).to_array(), dense.lmo(g).to_array(), atol=1e-12)
    np.testing.assert_allclose(sparse.start(), dense.start())
    assert dense.diameter <= sparse.diameter <= 1.5 * dense.diameter
    assert sparse.contains(sparse.start())
    with pytest.raises(ex.NonFiniteError):
        sparse.lmo(np.array([np.nan, 1.0, 1.0]))


def test_duplicate_entries_of_a_sparse_map_are_summed():
    A = sp.coo_array((np.array([1.0, 2.0, 5.0]), (np.array([0, 0, 1]), np.array([0, 0, 0]))), shape=(2, 1))
    np.testing.assert_array_equal(LinearImage(A, ex.Simplex()).lmo(np.ones(2)).to_array(), [3.0, 5.0])
    A = sp.csc_array((np.array([5.0, 1.0, 2.0]), np.array([1, 0, 0]), np.array([0, 3])), shape=(2, 1))  # out of order, too
    v = LinearImage(A, ex.Simplex()).lmo(np.ones(2))
    np.testing.assert_array_equal(v.indices, [0, 1])
    np.testing.assert_array_equal(v.to_array(), [3.0, 5.0])
    assert A.nnz == 3  # the caller's is as it was


def test_maps_are_copied():
    A = TALL.copy()
    C = LinearImage(A, ex.Simplex())
    A[...] = 0.0
    np.testing.assert_array_equal(C.A, TALL)
    with pytest.raises(ValueError, match="read-only"):
        C.A[0, 0] = 1.0


# bounds of parts that are not exact


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("kind", ["coordinate", "sparse", "dense", "combination"])
def test_bounds_of_inexact_parts_are_carried(scale, kind):
    """Each composition of the l1 ball of radius 2: where its bound is, by hand."""
    part = partial(inexact, kind)
    g = scale * np.array([1.0, -3.0, 2.0, 0.5])
    short = (2 + SHORT) * 3 * scale  # the part's bound is -short
    square = g.reshape(2, 2)
    mean = scale * np.array([[1.0, -0.5], [-0.5, 0.5]])
    found = {
        "scaled": (least(ScaledSet(part(4), 10.0).lmo(g), g), -10 * short),
        "mirrored": (least(ScaledSet(part(4), -10.0).lmo(g), g), -10 * short),
        "shifted": (least(ShiftedSet(part(4), 1.0).lmo(g), g), -short + 0.5 * scale),
        "summed": (least(MinkowskiSum(part(4), ex.Simplex(), ex.LinfBall(1.0)).lmo(g), g), -short - 3 * scale - 6.5 * scale),
        "image": (least(LinearImage(np.diag([1.0, 1.0, 5.0, 1.0]), part(4)).lmo(g), g), -(2 + SHORT) * 10 * scale),
        "product": (least(Product(part(2), ex.Simplex(shape=2)).lmo(g), g), -short + 0.5 * scale),
        "rows": (least(Rows(part(2), 2).lmo(square), square), -(2 + SHORT) * 5 * scale),
        "symmetrised": (
            least(Symmetrised(part((2, 2)), transposition(2)).lmo(square), square),
            -(2 + SHORT) * np.abs(mean).max(),
        ),
    }
    for name, (low, truth) in found.items():
        assert low == pytest.approx(truth, rel=1e-12), name


def test_exact_parts_leave_no_bound():
    g = np.array([1.0, -3.0, 2.0, 0.5])
    sets = (ScaledSet(ex.L2Ball(1.0), 2.0), ShiftedSet(ex.Simplex(), 1.0), MinkowskiSum(ex.Simplex(), ex.L2Ball(1.0)))
    sets += (
        LinearImage(np.eye(4), ex.L2Ball(1.0)),
        Product(ex.L2Ball(1.0, shape=4)),
        Symmetrised(ex.L2Ball(1.0), [[1, 0, 2, 3]]),
    )
    assert [C.lmo(g).low for C in sets] == [None] * len(sets)


# symmetric points


def test_generators_are_enough():
    """All rotations by the smallest one."""
    one = Symmetrised(ex.Simplex(shape=5), [(np.arange(5) + 1) % 5])
    every = Symmetrised(ex.Simplex(shape=5), [(np.arange(5) + k) % 5 for k in range(5)])
    g = np.random.default_rng(0).standard_normal(5)
    np.testing.assert_allclose(one.lmo(g).to_array(), np.full(5, 0.2))
    np.testing.assert_allclose(every.lmo(g).to_array(), np.full(5, 0.2))


def test_points_of_the_set_that_are_not_symmetric_are_outside():
    C = Symmetrised(ex.LinfBall(1.0, shape=(2, 2)), transposition(2))
    assert C.contains(np.array([[0.0, 0.5], [0.5, 1.0]]))
    assert not C.contains(np.array([[0.0, 0.5], [0.4, 1.0]]))
    assert not C.contains(np.array([[0.0, 1.5], [1.5, 1.0]]))


# affine cuts


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_cuts_know_both_constraints(make):
    C = AffineCut(ex.Simplex(), make(np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])), lower=[0.0, -np.inf], upper=[0.0, 0.2])
    assert C.contains(np.array([0.4, 0.4, 0.2]))
    assert not C.contains(np.array([0.35, 0.35, 0.3]))  # beyond the upper bound
    assert not C.contains(np.array([0.45, 0.35, 0.2]))  # not equal
    assert not C.contains(np.array([0.4, 0.4, 0.1]))  # not in the simplex
    assert not C.contains(np.full(3, np.nan))
    assert C.violation(np.array([0.5, 0.1, 0.5])) == pytest.approx(0.5)
    assert C.violation(np.array([0.4, 0.4, 0.2])) == pytest.approx(0.0, abs=1e-15)


def test_cuts_leave_oracle_start_and_size_to_their_set():
    inner = ex.L1Ball(2.0, shape=(2, 2))
    C = AffineCut(ex.L1Ball(2.0), np.ones((1, 4)), upper=0.0).on((2, 2))
    assert C.C == inner
    g = np.array([[1.0, 0.0], [-3.0, 2.0]])
    assert C.lmo(g).key == inner.lmo(g).key
    assert C.diameter == inner.diameter
    np.testing.assert_array_equal(C.start(), inner.start())
    assert pickle.loads(pickle.dumps(C)) == C
    assert "\n" not in repr(C)


def test_membership_in_a_cut_scales_with_everything():
    for a, b in ((1e-8, 1e8), (1e8, 1e-8)):
        C = AffineCut(ex.Simplex(a, 3), b * np.array([[1.0, -1.0, 0.0]]), lower=0.0, upper=0.0)
        assert C.contains(a * np.array([0.4, 0.4 + 1e-12, 0.2]))
        assert not C.contains(a * np.array([0.4, 0.4 + 1e-6, 0.2 - 1e-6]))


def test_no_set_is_made_of_a_cut():
    cut = AffineCut(ex.Simplex(shape=2), np.ones((1, 2)), upper=1.0)
    makers = (
        lambda: ScaledSet(cut, 2.0), lambda: ShiftedSet(cut, 2.0), lambda: MinkowskiSum(cut, ex.Simplex()), lambda: Product(cut),
        lambda: Rows(cut), lambda: LinearImage(np.eye(2), cut), lambda: Symmetrised(cut, [[1, 0]]),
        lambda: AffineCut(cut, np.ones((1, 2)), upper=1.0),
    )  # fmt: skip
    for make in makers:
        with pytest.raises(ex.InputError, match="cannot be made of an AffineCut"):
            make()


# bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ScaledSet(ex.Simplex(), 0.0), r"`ScaledSet\(factor=...\)` must be a finite number other than zero, got 0.0"),
        (lambda: ScaledSet(ex.Simplex(), np.nan), r"`ScaledSet\(factor=...\)` must be a finite number other than zero"),
        (lambda: ScaledSet(ex.Simplex(), True), r"`ScaledSet\(factor=...\)` must be a finite number other than zero"),
        (lambda: ScaledSet(ex.Simplex, 1.0), r"`ScaledSet\(...\)` must be made of sets such as L1Ball\(2.0\), got <class"),
        (lambda: ScaledSet(ex.Simplex(shape=2), 1.0, 3), r"`ScaledSet\(...\)` must be made of sets with points of shape \(3,\)"),
        (lambda: ShiftedSet(ex.Simplex(), "a"), r"`ShiftedSet\(offset=...\)` must be a number or an array of numbers"),
        (lambda: ShiftedSet(ex.Simplex(), []), r"`ShiftedSet\(offset=...\)` must be a number or an array of numbers"),
        (lambda: ShiftedSet(ex.Simplex(), [1.0, np.inf]), r"`ShiftedSet\(offset=...\)` must be finite, got inf at index 1"),
        (lambda: ShiftedSet(ex.Simplex(), [1.0], 2), r"`ShiftedSet\(offset=...\)` must be a number or have the shape \(2,\)"),
        (lambda: ShiftedSet(ex.Simplex(shape=3), [1.0, 2.0]), r"must be made of sets with points of shape \(2,\)"),
        (lambda: MinkowskiSum(), r"`MinkowskiSum\(...\)` must be given sets, one by one or as one list"),
        (lambda: MinkowskiSum(3), r"`MinkowskiSum\(...\)` must be made of sets"),
        (lambda: MinkowskiSum(ex.Simplex(shape=2), ex.Simplex(shape=3)), r"made of sets with points of shape"),
        (lambda: Product(ex.Simplex()), r"`Product\(...\)` must be made of sets of known shapes: give Simplex\(\).on\(shape\)"),
        (lambda: Product([]), r"`Product\(...\)` must be given sets"),
        (lambda: FacedProduct(ex.LpBall(1, 3, shape=2)), r"`FacedProduct\(...\)` must be made of sets with `away`"),
        (lambda: FacedRows(ex.LpBall(1.0, 3)), r"`FacedRows\(...\)` must be made of sets with `away` and `max_step`"),
        (lambda: Rows(ex.Simplex(), 0), r"`Rows\(count=...\)` must be a whole number of at least 1, got 0"),
        (lambda: Rows(ex.Simplex(), 2, (3, 2)), r"`Rows\(shape=...\)` must be \(rows, ...\), 2 of them, got \(3, 2\)"),
        (lambda: Rows(ex.Simplex()).on(3), r"`Rows\(shape=...\)` must be \(rows, ...\), any number of them, got \(3,\)"),
        (lambda: Rows(ex.Simplex(shape=2)).on((3, 4)), r"must be made of sets with points of shape \(4,\)"),
        (lambda: LinearImage([1.0, 2.0], ex.Simplex()), r"`LinearImage\(A=...\)` must be a matrix of numbers, got shape \(2,\)"),
        (lambda: LinearImage([[np.nan]], ex.Simplex()), r"`LinearImage\(A=...\)` must be finite"),
        (lambda: LinearImage(np.eye(3), ex.Simplex(shape=2)), r"`LinearImage\(A=...\)` must have a column for each entry"),
        (lambda: Symmetrised(ex.Simplex(), [[0, 0, 1]]), r"each with every index from 0 to d - 1 once"),
        (lambda: Symmetrised(ex.Simplex(), [[0.0, 1.0]]), r"`Symmetrised\(permutations=...\)` must be index arrays"),
        (lambda: Symmetrised(ex.Simplex(), []), r"`Symmetrised\(permutations=...\)` must be index arrays"),
        (lambda: Symmetrised(ex.Simplex(shape=3), [[1, 0]]), r"must have an index for each entry of shape \(3,\), got 2"),
        (lambda: AffineCut(ex.Simplex(), np.ones(3), upper=1.0), r"`AffineCut\(G=...\)` must be a matrix of numbers"),
        (lambda: AffineCut(ex.Simplex(), np.ones((1, 3))), r"`AffineCut\(lower=..., upper=...\)`: give at least one"),
        (lambda: AffineCut(ex.Simplex(shape=2), np.ones((1, 3)), upper=1.0), r"`AffineCut\(G=...\)` must have a column for each"),
        (lambda: AffineCut(ex.Simplex(), np.ones((1, 3)), 1.0, 0.0), r"must have lower <= upper everywhere"),
        (lambda: Oracle(3, 1.0), r"`Oracle\(lmo=...\)` must be a callable g -> point, got 3"),
        (lambda: Oracle(best_corner), r"`Oracle\(diameter=...\)` must be a positive finite number, got None"),
        (lambda: Oracle(best_corner, 0.0), r"`Oracle\(diameter=...\)` must be a positive finite number, got 0.0"),
        (lambda: Oracle(best_corner, 1.0, contains=True), r"`Oracle\(contains=...\)` must be a callable \(x, tol\) -> bool"),
        (lambda: Oracle(best_corner, 1.0, 2, start=np.zeros(3)), r"`Oracle\(start=...\)` must have the shape \(2,\), got \(3,\)"),
        (lambda: Oracle(best_corner, 1.0, start=[0.0, np.nan]), r"`Oracle\(start=...\)` must be finite"),
        (lambda: Oracle(best_corner, 1.0, start="x"), r"`Oracle\(start=...\)` must be an array of real numbers"),
    ],
)  # fmt: skip
def test_bad_input_is_named(make, message):
    with pytest.raises(ex.InputError, match=message):
        make()


OPEN = (
    ScaledSet(ex.Simplex(), 2.0),
    ShiftedSet(ex.Simplex(), 2.0),
    MinkowskiSum(ex.Simplex(), ex.Simplex()),
    Rows(ex.Simplex()),
    Symmetrised(ex.Simplex(), [[1, 0, 2]]),
)


@pytest.mark.parametrize("C", OPEN, ids=repr)
def test_open_sets_ask_for_a_dimension(C):
    assert C.shape is None
    with pytest.raises(ex.InputError, match="depends on the dimension"):
        C.start()


# the page on sets


def members(source: str) -> dict[str, str]:
    """Fields and methods of the one class in the source, without docstrings and comments."""
    found = {}
    for node in ast.parse(source).body[-1].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef):
            node.body = node.body[1:] if ast.get_docstring(node) else node.body
            found[node.name] = ast.unparse(node)
        elif isinstance(node, ast.AnnAssign):
            found[ast.unparse(node.target)] = ast.unparse(node)
    return found


def test_the_page_on_sets_shows_the_library_as_it_stands():
    page = (Path(__file__).parents[2] / "docs" / "add-a-set.md").read_text()
    shown = page[page.index(">>> @dataclass") :].split("\n\n")[0]
    shown = members("\n".join(line[4:] for line in shown.splitlines()))
    real = members(inspect.getsource(ex.Simplex))
    assert {"lmo", "contains", "diameter", "start", "total", "shape"} < set(shown)
    assert shown == {name: real[name] for name in shown}
    row = page[page.index("    SetCase(") :].split("\n)")[0]
    assert row in (Path(__file__).parents[1] / "truths" / "sets_composed.py").read_text()
