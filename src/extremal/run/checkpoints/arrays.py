"""Arrays of a checkpoint: their bytes, the order of their axes, and arrays that share memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.support.memory import room

STORED_KINDS = "biufcSU"  # kinds of dtypes whose bytes are their meaning
ArrayLayout = tuple[str, list[int], list[int]]  # dtype, shape of the bytes in the file, and the axes of the array among them


def owner_of(a: np.ndarray) -> np.ndarray:
    """The array whose memory ``a`` is a part of: ``a`` itself if its bytes can be stored alone."""
    alone = a.flags.forc and (not a.flags.writeable or not isinstance(a.base, np.ndarray))
    if alone or any(step == 0 and size > 1 for step, size in zip(a.strides, a.shape, strict=True)):
        return a
    owner = a
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner


def layout_of(a: np.ndarray) -> tuple[np.ndarray, ArrayLayout]:
    """The bytes of an array in C order, and what is needed to make it again with the same order of its axes."""
    if a.dtype.kind not in STORED_KINDS:
        raise InputError(f"an array of dtype {a.dtype} cannot be stored")
    axes = list(range(a.ndim)) if a.flags.c_contiguous else sorted(range(a.ndim), key=lambda i: -abs(a.strides[i]))
    turned = a.transpose(axes)
    turned, axes = (turned, axes) if turned.flags.c_contiguous else (np.ascontiguousarray(a), list(range(a.ndim)))
    return turned.reshape(-1).view(np.uint8), (a.dtype.str, list(turned.shape), axes)


def empty_of(layout: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """An array of this layout, and its bytes to be filled; one of another size than the file has is refused."""
    word, shape, axes = layout
    dtype = np.dtype(str(word))
    whole = all(type(n) is int and n >= 0 for n in shape) and sorted(axes) == list(range(len(shape)))
    if dtype.kind not in STORED_KINDS or not whole or math.prod(shape) * dtype.itemsize != size:
        raise ValueError("a layout that no array has")
    if list(axes) == list(range(len(shape)))[::-1] and len(shape) > 1:  # Fortran order
        a = np.empty(tuple(shape[::-1]), dtype, order="F")
        return a, a.T.reshape(-1).view(np.uint8)
    a = room(tuple(shape), dtype)
    return a.transpose(np.argsort(axes)) if list(axes) != list(range(len(shape))) else a, a.reshape(-1).view(np.uint8)


def place_of(a: np.ndarray, owner: np.ndarray) -> list[Any]:
    """Where a part lies in the memory of its owner."""
    first = a.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return [a.dtype.str, list(a.shape), list(a.strides), first]


def view_of(owner: np.ndarray, place: Any) -> np.ndarray:
    """The part of an array at a place; numpy refuses places outside."""
    word, shape, strides, first = place
    dtype = np.dtype(str(word))
    if (
        dtype.kind not in STORED_KINDS
        or not owner.flags.forc
        or any(step == 0 and n > 1 for step, n in zip(strides, shape, strict=True))
    ):
        raise ValueError("a part that no array has")
    flat = owner.T if owner.flags.f_contiguous and not owner.flags.c_contiguous else owner
    return np.ndarray(tuple(shape), dtype, flat.reshape(-1).view(np.uint8), first, tuple(strides))
