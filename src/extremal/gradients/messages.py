"""The contract of compressors, their messages, and messages of whole vectors.

A compressor is unbiased, E C(v) = v with E|C(v) - v|^2 <= omega |v|^2, or contractive, E|C(v) - v|^2 <= (1 - alpha) |v|^2. An
unbiased one divided by 1 + omega is contractive with alpha = 1 / (1 + omega).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

INDEX, VALUE = np.dtype("<i4"), np.dtype("<f8")  # an index and a value as they are sent


@dataclass(frozen=True)
class Message:
    """What is sent in place of a vector."""

    payload: bytes  # all that is sent
    numbers: int  # how many entries of the vector it has


class Compressor(Protocol):
    """The contract of a compressor: a plain value that makes messages of vectors, and vectors of messages."""

    def compress(self, v: np.ndarray, rng: np.random.Generator) -> Message:
        """The message for v, an array of float64 of any shape."""
        ...

    def expand(self, message: Message, shape: tuple[int, ...]) -> np.ndarray:
        """C(v), which the receiver computes from the message and the shape of v."""
        ...

    def size(self, d: int) -> int:
        """The bytes of a message about d entries."""
        ...

    def omega(self, d: int) -> float | None:
        """The variance constant of an unbiased compressor; None for others."""
        ...

    def alpha(self, d: int) -> float:
        """The contraction of C, or of C / (1 + omega) if C is unbiased."""
        ...


def whole_message(v: np.ndarray) -> Message:
    """All entries as float64."""
    return Message(np.ascontiguousarray(v, VALUE).tobytes(), v.size)


def whole_vector(message: Message, shape: tuple[int, ...]) -> np.ndarray:
    """The vector of such a message.

    Examples
    --------
    >>> import numpy as np
    >>> whole_vector(whole_message(np.array([1.0, 2.0])), (2,))
    array([1., 2.])
    """
    return np.frombuffer(message.payload, VALUE).reshape(shape)


def contracted(compressor: Compressor, message: Message, shape: tuple[int, ...]) -> np.ndarray:
    """C(v), divided by 1 + omega if C is unbiased, so that it is contractive.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> v = np.array([1.0, -4.0, 0.5, 3.0])
    >>> contracted(ex.gradients.RandomK(2), ex.gradients.RandomK(2).compress(v, np.random.default_rng(0)), (4,))
    array([0. , 0. , 0.5, 3. ])
    """
    found = compressor.expand(message, shape)
    return found if compressor.omega(1) is None else found * compressor.alpha(math.prod(shape))
