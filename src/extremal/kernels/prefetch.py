"""A word to the processor about what will be read soon: rows drawn at random arrive while others are worked on."""

from __future__ import annotations

from typing import Any

import numba.core.config as config
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def _typed(_context: object, array: Any, _index: object) -> Any:
    """The processor's own instruction: no effect but on its cache, no fault at any address."""

    def build(context, builder, signature, args):
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        start = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(start, [args[1]]), pointer)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        call = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        builder.call(call, [place, number(0), number(3), number(1)])  # to be read, kept in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.uint64), build


def _nothing(array: object, index: object) -> None:
    """Without compilation there is nothing to gain."""


prefetch: Any = _nothing if config.DISABLE_JIT else intrinsic(_typed)  # pyright: ignore[reportAttributeAccessIssue]
