"""Products of sets and their vertices: parts one after the other, rows in one pass, faces."""

from __future__ import annotations

import numpy as np
import pytest

import extremal as ex
from extremal.points.composed import Blocks, Combination, joined_blocks, parted
from extremal.points.low_rank import RankOne
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex
from extremal.sets.base import Faced, Projectable
from extremal.sets.made.blocks import FacedProduct, FacedRows, Product, Rows
from extremal.sets.made.sums import ScaledSet

# vertices of products


def some_parts():
    return (
        Coordinate(2, -1.5, (3,)),
        RankOne(np.array([1.0, 2.0]), np.array([0.5, -1.0])),
        SparseVertex(np.array([0, 3]), np.array([1.0, 4.0]), (2, 2)),
        DenseVertex(np.array([7.0])),
        Combination(((2.0, Coordinate(0, 1.0, (2,))), (1.0, DenseVertex(np.array([1.0, 1.0]))))),
    )


DENSE_PARTS = np.array([0, 0, -1.5, 0.5, -1, 1, -2, 1, 0, 0, 4, 7, 3, 1])


@pytest.mark.parametrize("shape", [(14,), (2, 7)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_are_their_parts_one_after_the_other(shape, order):
    v = Blocks(some_parts(), shape)
    truth = DENSE_PARTS.reshape(shape)
    np.testing.assert_array_equal(v.to_array(), truth)
    g = np.asarray(np.random.default_rng(0).standard_normal(shape), order=order)
    assert v.norm2 == pytest.approx(float(np.vdot(truth, truth)))
    assert v.dot(g) == pytest.approx(float((truth * g).sum()))
    for dtype in (np.float64, np.float32):
        x = np.asarray(g, dtype, order=order).copy(order=order)
        v.add_to(x, -2.0)
        assert x.dtype == dtype
        np.testing.assert_allclose(x, g - 2 * truth, rtol=1e-5)


def test_blocks_are_looked_up_by_their_parts():
    v, again = Blocks(some_parts(), (14,)), Blocks(some_parts(), (14,))
    other = Blocks((*some_parts()[:3], DenseVertex(np.array([8.0])), some_parts()[4]), (14,))
    assert v.key == again.key
    assert v.key != other.key
    hash(v.key)


def test_sparse_parts_become_one_sparse_vertex():
    parts = (Coordinate(2, -1.5, (3,)), SparseVertex(np.array([0, 3]), np.array([1.0, 4.0]), (2, 2)), Coordinate(0, 0.5, (1,)))
    v = joined_blocks(parts, [np.zeros(p.shape) for p in parts], (8,))
    assert isinstance(v, SparseVertex)
    np.testing.assert_array_equal(v.indices, [2, 3, 6, 7])
    np.testing.assert_array_equal(v.values, [-1.5, 1.0, 4.0, 0.5])
    for part, back in zip(parts, parted(v, [(3,), (2, 2), (1,)]), strict=True):
        assert type(back) is type(part)
        assert back.key == part.key
        assert back.shape == part.shape


def test_parts_of_a_sparse_vertex_may_be_empty():
    v = SparseVertex(np.array([3]), np.array([2.0]), (5,))
    first, second, third = parted(v, [(2,), (2,), (1,)])
    assert second == Coordinate(1, 2.0, (2,))
    np.testing.assert_array_equal(first.to_array(), [0, 0])
    np.testing.assert_array_equal(third.to_array(), [0])


# products


def test_points_are_split_into_views_and_joined():
    C = Product(ex.Simplex(shape=2), ex.Box(-1.0, 1.0, (2, 2)))
    x = np.arange(6.0)
    first, second = C.split(x)
    assert np.shares_memory(second, x)
    np.testing.assert_array_equal(second, [[2, 3], [4, 5]])
    np.testing.assert_array_equal(C.join([first, second]), x)
    with pytest.raises(ex.InputError, match=r"`Product.split\(x\)` must be given points of shape \(6,\), got \(5,\)"):
        C.split(np.zeros(5))
    with pytest.raises(ex.InputError, match=r"`Product.join\(blocks\)` must be given blocks of shapes"):
        C.join([np.zeros(2), np.zeros(4)])


def test_products_of_sparse_vertices_are_sparse():
    assert isinstance(Product(ex.Simplex(shape=3), ex.L1Ball(1.0, shape=2)).lmo(np.ones(5)), SparseVertex)
    assert isinstance(Product(ex.Simplex(shape=3), ex.LinfBall(1.0, shape=2)).lmo(np.ones(5)), Blocks)
    assert isinstance(Rows(ex.Simplex()).lmo(np.ones((4, 3))), SparseVertex)
    assert isinstance(Rows(ScaledSet(ex.Simplex(), -1.0)).lmo(np.ones((4, 3))), SparseVertex)


@pytest.mark.parametrize(
    "C",
    [ex.Simplex(2.0), ex.L1Ball(1.5), ex.L1Ball(1.5, centre=[1.0, 2.0, 0.0]), ex.LinfBall(0.5), ex.Box(-1.0, [0.0, 1.0, 2.0])],
    ids=repr,
)
def test_rows_in_one_pass_are_rows_one_by_one(C):
    g = np.random.default_rng(0).integers(-2, 3, (6, 3)).astype(float)  # with ties and zeros
    one_by_one = np.array([C.lmo(row).to_array() for row in g])
    np.testing.assert_array_equal(Rows(C).lmo(g).to_array(), one_by_one)


def test_rows_are_found_from_either_end():
    assert Rows(ex.Simplex()).on((5, 3)) == Rows(ex.Simplex(shape=3), 5) == Rows(ex.Simplex(), shape=(5, 3))
    assert Rows(ex.Simplex(shape=3)).on((7, 3)).start().shape == (7, 3)
    assert Rows(ex.Simplex(), 2).on((2, 4)).C.shape == (4,)


def test_only_products_that_say_so_know_their_faces():
    assert isinstance(FacedRows(ex.Simplex()), Faced)
    assert isinstance(FacedProduct(ex.Simplex(shape=2)), Faced)
    for C in (Rows(ex.Simplex()), Product(ex.Simplex(shape=2)), ScaledSet(ex.Simplex(), 2.0)):
        assert not isinstance(C, (Faced, Projectable))


def test_blocks_that_stay_do_not_shorten_a_step():
    C = FacedProduct(ex.Simplex(shape=2), ex.Simplex(shape=2))
    x = np.array([0.1, 0.9, 0.3, 0.7])
    s = joined_blocks([Coordinate(0, 1.0, (2,)), Coordinate(0, 1.0, (2,))], [], (4,))
    a = joined_blocks([Coordinate(0, 1.0, (2,)), Coordinate(1, 1.0, (2,))], [], (4,))
    assert C.max_step(x, s, a) == pytest.approx(0.7)
    assert C.max_step(x, a, a) == 1.0


def test_a_product_is_minimised_over():
    """Nearest points, block by block."""
    target = np.array([2.0, 0.0, 0.3, -5.0, 0.2])
    f = ex.LinearModel(ex.Squared(), np.eye(5), target)
    C = Product(ex.Simplex(shape=2), ex.Box(-1.0, 1.0, 3))
    r = ex.minimize(f, C, ex.FrankWolfe(step=ex.steps.LineSearch()), tol=1e-10, max_iter=3000)
    np.testing.assert_allclose(r.x, [1.0, 0.0, 0.3, -1.0, 0.2], atol=1e-3)


def test_steps_in_faces_of_a_product():
    f = ex.LinearModel(ex.Squared(), np.eye(6), np.array([0.6, 0.4, -1.0, 0.2, 0.3, 0.5]))
    C = FacedProduct(ex.Simplex(shape=3), ex.Simplex(shape=3))
    r = ex.minimize(f, C, ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.InFacePairwise()), tol=1e-9)
    np.testing.assert_allclose(r.x, [0.6, 0.4, 0.0, 0.2, 0.3, 0.5], atol=1e-4)


def test_steps_in_faces_of_rows():
    """The nearest row-stochastic matrix."""
    target = np.array([[[0.6, 0.4, -1.0], [0.2, 0.3, 0.5]]])
    f = ex.Separable(
        1,
        (2, 3),
        grad=lambda x, idx: x - target[idx],
        value=lambda x, idx: ((x - target[idx]) ** 2).sum(axis=(1, 2)) / 2,
        smoothness=1.0,
    )
    r = ex.minimize(
        f, FacedRows(ex.Simplex()), ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.InFacePairwise()), tol=1e-9
    )
    np.testing.assert_allclose(r.x, [[0.6, 0.4, 0.0], [0.2, 0.3, 0.5]], atol=1e-4)
