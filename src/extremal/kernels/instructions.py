"""Instructions that numba has no word for: prefetches, and sums of two or four numbers that stand side by side.

They are written in the intermediate language of LLVM, which knows them for every processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba.core.config as config
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

PAIR, FLOAT64, PLACE = ir.VectorType(ir.DoubleType(), 2), ir.DoubleType(), ir.IntType(64)
FOUR = ir.VectorType(FLOAT64, 4)


def _start(context: Any, builder: Any, signature: Any, args: Any, k: int) -> Any:
    """The address of the first entry of argument k, an array."""
    return context.make_array(signature.args[k])(context, builder, args[k]).data


def _prefetch(_context: object, array: Any, _index: object) -> Any:
    """The processor's own instruction: it affects only the cache, and no address is a fault."""

    def build(context, builder, signature, args):
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(_start(context, builder, signature, args, 0), [args[1]]), pointer)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        builder.call(call, [place, number(0), number(3), number(1)])  # for reading, kept in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.uint64), build


def _lowest_bit(_context: object, bits: Any) -> Any:
    """The position of the lowest bit that is set; 64 if there is none."""

    def build(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), build


def _pair_dots(_context: object, indices: Any, data: Any, first: Any, last: Any, X: Any) -> Any:
    """The sums over the entries from first to last of value times row j of X, which has two columns."""

    def build(context, builder, signature, args):
        def entry(e, total):
            pair = builder.load(row_of(e), align=8)
            if value is not None:
                v = value(e)
                pair = builder.fmul(pair, _vector(builder, PAIR, v, v), _FUSED)
            return builder.fadd(total, pair, _FUSED)

        row_of, value = _rows(context, builder, signature, args, 4), _value(context, builder, signature, args)
        total = _each(builder, args[2], args[3], entry, _vector(builder, PAIR, FLOAT64(0.0), FLOAT64(0.0)))
        return context.make_tuple(
            builder, signature.return_type, [builder.extract_element(total, ir.IntType(32)(k)) for k in (0, 1)]
        )

    return types.UniTuple(types.float64, 2)(indices, data, types.uint64, types.uint64, X), build


def _add_pairs(_context: object, indices: Any, data: Any, first: Any, last: Any, c: Any, m: Any, out: Any) -> Any:
    """Row j of ``out`` += value times (c, m), for the entries from first to last."""

    def build(context, builder, signature, args):
        def entry(e, _):
            row, share = row_of(e), both
            if value is not None:
                v = value(e)
                share = builder.fmul(both, _vector(builder, PAIR, v, v), _FUSED)
            builder.store(builder.fadd(builder.load(row, align=8), share, _FUSED), row, align=8)
            return

        row_of, value = _rows(context, builder, signature, args, 6), _value(context, builder, signature, args)
        both = _vector(builder, PAIR, *args[4:6])
        _each(builder, args[2], args[3], entry, None)
        return context.get_dummy_value()

    return types.void(indices, data, types.uint64, types.uint64, types.float64, types.float64, out), build


def _add_fours(_context: object, indices: Any, data: Any, first: Any, last: Any, c: Any, m: Any, q: Any, p: Any, out: Any) -> Any:
    """Row j of ``out`` += (c v, m v, q v^2, p v^4) for the values v of the entries from first to last."""

    def build(context, builder, signature, args):
        def entry(e, _):
            row, share = row_of(e), all_four
            if value is not None:
                v = value(e)
                v2 = builder.fmul(v, v)
                share = builder.fmul(all_four, _vector(builder, FOUR, v, v, v2, builder.fmul(v2, v2)), _FUSED)
            builder.store(builder.fadd(builder.load(row, align=8), share, _FUSED), row, align=8)
            return

        row_of, value = _rows(context, builder, signature, args, 8, FOUR), _value(context, builder, signature, args)
        all_four = _vector(builder, FOUR, *args[4:8])
        _each(builder, args[2], args[3], entry, None)
        return context.get_dummy_value()

    return types.void(indices, data, types.uint64, types.uint64, *4 * (types.float64,), out), build


_FUSED = ("contract",)  # a product and a sum may be one instruction


def _vector(builder: Any, kind: Any, *numbers: Any) -> Any:
    """A vector of some numbers."""
    vector = kind(ir.Undefined)
    for k, number in enumerate(numbers):
        vector = builder.insert_element(vector, number, ir.IntType(32)(k))
    return vector


def _rows(context: Any, builder: Any, signature: Any, args: Any, k: int, kind: Any = PAIR) -> Callable[[Any], Any]:
    """The address of the row of argument k that an entry names."""
    indices, wide = _start(context, builder, signature, args, 0), PLACE
    rows = builder.bitcast(_start(context, builder, signature, args, k), kind.as_pointer())

    def row(e):
        j = builder.load(builder.gep(indices, [e]))
        return builder.gep(rows, [j if j.type == wide else builder.zext(j, wide)])

    return row


def _value(context: Any, builder: Any, signature: Any, args: Any) -> Callable[[Any], Any] | None:
    """The value of an entry; None if one value stands for all."""
    if signature.args[1].ndim == 0:
        return None
    data = _start(context, builder, signature, args, 1)

    def value(e):
        one = builder.load(builder.gep(data, [e]))
        return one if one.type == FLOAT64 else builder.fpext(one, FLOAT64)

    return value


def _each(builder: Any, first: Any, last: Any, entry: Callable[[Any, Any], Any], total: Any) -> Any:
    """A loop over the entries; return the last total."""
    before = builder.block
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    e, sums = builder.phi(PLACE), None if total is None else builder.phi(PAIR)
    builder.cbranch(builder.icmp_unsigned("<", e, last), body, end)
    builder.position_at_end(body)
    new = entry(e, sums)
    e.add_incoming(first, before)
    e.add_incoming(builder.add(e, PLACE(1)), builder.block)
    if sums is not None:
        sums.add_incoming(total, before)
        sums.add_incoming(new, builder.block)
    builder.branch(head)
    builder.position_at_end(end)
    return sums


# the same in Python, for debugging without compilation


def _no_prefetch(_array: object, _index: object) -> None:
    """Do nothing: without compilation there is no gain."""


def _plain_lowest(bits: Any) -> Any:
    bits = int(bits)
    return np.uint64((bits & -bits).bit_length() - 1 if bits else 64)


def _plain_dots(indices: Any, data: Any, first: Any, last: Any, X: Any) -> tuple[Any, ...]:
    values = data[first:last, None] if data.ndim else 1.0
    return tuple((values * X[indices[first:last]]).sum(axis=0))


def _plain_add(indices: Any, data: Any, first: Any, last: Any, c: Any, m: Any, out: Any) -> None:
    values = data[first:last] if data.ndim else 1.0
    out[indices[first:last], 0] += values * c
    out[indices[first:last], 1] += values * m


def _plain_fours(indices: Any, data: Any, first: Any, last: Any, c: Any, m: Any, q: Any, p: Any, out: Any) -> None:
    v = data[first:last] if data.ndim else np.ones(int(last) - int(first))
    out[indices[first:last]] += np.stack([c * v, m * v, q * v**2, p * v**4], axis=1)


PLAIN = config.DISABLE_JIT  # pyright: ignore[reportAttributeAccessIssue]
prefetch: Any = _no_prefetch if PLAIN else intrinsic(_prefetch)
lowest_bit: Any = _plain_lowest if PLAIN else intrinsic(_lowest_bit)
pair_dots: Any = _plain_dots if PLAIN else intrinsic(_pair_dots)
add_pairs: Any = _plain_add if PLAIN else intrinsic(_add_pairs)
add_fours: Any = _plain_fours if PLAIN else intrinsic(_add_fours)
