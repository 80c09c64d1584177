"""Compressed vectors: what a worker sends in place of a vector, in real bytes, and the constants of theorems about it.

References: Beznosikov, Horvath, Richtarik, Safaryan (2020), On biased compression for distributed learning, arXiv:2002.12410;
Horvath et al. (2019), Natural compression for distributed deep learning, arXiv:1905.10988.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.messages import INDEX, VALUE, Compressor, Message, whole_message, whole_vector

MANTISSA, EXPONENT, SIGN = 52, 0x7FF, 63  # of a float64: bits of the mantissa, mask of the exponent, place of the sign
LARGEST_EXPONENT = EXPONENT - 1  # the exponent of the largest finite numbers


class _Unbiased(Compressor):
    """Shared part: unbiased compressors, which are contractive after a division."""

    def alpha(self, d: int) -> float:
        """1 / (1 + omega)."""
        omega = self.omega(d)
        assert omega is not None
        return 1.0 / (1.0 + omega)


class _Some(Compressor):
    """Shared part: a message has k entries, their indices as int32 and their values as float64, 12 k bytes."""

    k: int

    def expand(self, message: Message, shape: tuple[int, ...]) -> np.ndarray:
        """The entries of the message, and zeros elsewhere."""
        out, at = np.zeros(math.prod(shape)), message.numbers * INDEX.itemsize
        out[np.frombuffer(message.payload[:at], INDEX)] = np.frombuffer(message.payload[at:], VALUE)
        return out.reshape(shape)

    def size(self, d: int) -> int:
        """12 bytes for each of min(k, d) entries."""
        return min(self.k, d) * (INDEX.itemsize + VALUE.itemsize)

    def _message(self, at: np.ndarray, values: np.ndarray) -> Message:
        return Message(at.astype(INDEX).tobytes() + values.astype(VALUE).tobytes(), len(at))


@dataclass(frozen=True)
class TopK(_Some):
    """The k entries of largest absolute value: C(v) = v there, and 0 elsewhere.

        |C(v) - v|^2 <= (1 - k/d) |v|^2,   biased

    Among equal entries the first are sent. A message has 12 k bytes: indices as int32, values as float64.

    Parameters
    ----------
    k : int
        Number of entries, from 1; a vector with fewer is sent whole.

    References
    ----------
    Beznosikov, Horvath, Richtarik, Safaryan (2020), arXiv:2002.12410.

    Examples
    --------
    >>> import numpy as np
    >>> message = TopK(2).compress(np.array([1.0, -4.0, 0.5, 3.0]), np.random.default_rng(0))
    >>> TopK(2).expand(message, (4,)), len(message.payload)
    (array([ 0., -4.,  0.,  3.]), 24)
    """

    k: int

    def __post_init__(self):
        checks.fix(self, k=checks.whole("TopK", "k", self.k, 1))

    def compress(self, v: np.ndarray, rng: np.random.Generator) -> Message:
        """The largest entries, in the order of their indices."""
        v = v.reshape(-1)
        size = np.nan_to_num(np.abs(v), nan=np.inf, posinf=np.inf)  # a NaN has to arrive
        at = np.sort(np.argsort(-size, kind="stable")[: self.k])  # stable: ties are the same on all machines
        return self._message(at, v[at])

    def omega(self, d: int) -> float | None:
        """None: C is biased."""
        return None

    def alpha(self, d: int) -> float:
        """k/d."""
        return min(1.0, self.k / d)


@dataclass(frozen=True)
class RandomK(_Some, _Unbiased):
    """k entries at random, times d/k, and 0 elsewhere.

        E C(v) = v,   E|C(v) - v|^2 = (d/k - 1) |v|^2

    A message has 12 k bytes: indices as int32, values as float64.

    Parameters
    ----------
    k : int
        Number of entries, from 1; a vector with fewer is sent whole.

    References
    ----------
    Beznosikov, Horvath, Richtarik, Safaryan (2020), arXiv:2002.12410.

    Examples
    --------
    >>> import numpy as np
    >>> message = RandomK(2).compress(np.array([1.0, -4.0, 0.5, 3.0]), np.random.default_rng(0))
    >>> RandomK(2).expand(message, (4,)), RandomK(2).omega(4)
    (array([0., 0., 1., 6.]), 1.0)
    """

    k: int

    def __post_init__(self):
        checks.fix(self, k=checks.whole("RandomK", "k", self.k, 1))

    def compress(self, v: np.ndarray, rng: np.random.Generator) -> Message:
        """Distinct entries, all sets of k equally likely."""
        v = v.reshape(-1)
        k = min(self.k, v.size)
        at = np.sort(rng.choice(v.size, k, replace=False))
        return self._message(at, v[at] * (v.size / k))

    def omega(self, d: int) -> float | None:
        """d/k - 1."""
        return max(d / self.k - 1.0, 0.0)


@dataclass(frozen=True)
class Natural(_Unbiased):
    """Each entry rounded at random to one of the two powers of two next to it: sign and exponent, 12 bits.

        C(v)_j = sign(v_j) 2^e (1 + xi),   |v_j| = 2^e (1 + p),   xi = 1 with probability p, else 0
        E C(v) = v,   E|C(v) - v|^2 <= |v|^2 / 8

    Two entries are packed in three bytes. Numbers above 2^1023 are rounded down, and the bound holds from 2^-1022 on.

    References
    ----------
    Horvath, Ho, Horvath, Sahu, Canini, Richtarik (2019), arXiv:1905.10988.

    Examples
    --------
    >>> import numpy as np
    >>> message = Natural().compress(np.array([1.0, -3.0, 0.0, 0.375]), np.random.default_rng(1))
    >>> Natural().expand(message, (4,)), len(message.payload)
    (array([ 1.  , -2.  ,  0.  ,  0.25]), 6)
    """

    def compress(self, v: np.ndarray, rng: np.random.Generator) -> Message:
        """Sign and exponent of each entry; the mantissa is the probability of the next exponent."""
        bits = np.ascontiguousarray(v, np.float64).reshape(-1).view(np.uint64)
        exponent = ((bits >> np.uint64(MANTISSA)) & np.uint64(EXPONENT)).astype(np.uint16)
        p = (bits & np.uint64(2**MANTISSA - 1)) / 2.0**MANTISSA  # |v_j| = 2^e (1 + p)
        up = (rng.random(bits.size) < p) & (exponent < LARGEST_EXPONENT)
        sign = (bits >> np.uint64(SIGN)).astype(np.uint16)
        return Message(_packed(sign << np.uint16(11) | exponent + up), bits.size)

    def expand(self, message: Message, shape: tuple[int, ...]) -> np.ndarray:
        """The signed powers of two; exponent 0 is the number 0."""
        codes = _unpacked(message.payload, math.prod(shape)).astype(np.uint64)
        sign, exponent = codes >> np.uint64(11), codes & np.uint64(EXPONENT)
        return (sign << np.uint64(SIGN) | exponent << np.uint64(MANTISSA)).view(np.float64).reshape(shape)

    def size(self, d: int) -> int:
        """12 bits for each entry, in whole bytes."""
        return -(-3 * d // 2)

    def omega(self, d: int) -> float | None:
        """1/8."""
        return 0.125


@dataclass(frozen=True)
class NoCompression(_Unbiased):
    """The whole vector: C(v) = v, 8 d bytes.

    Examples
    --------
    >>> import numpy as np
    >>> message = NoCompression().compress(np.array([1.0, 2.0]), np.random.default_rng(0))
    >>> NoCompression().expand(message, (2,)), len(message.payload)
    (array([1., 2.]), 16)
    """

    def compress(self, v: np.ndarray, rng: np.random.Generator) -> Message:
        """All entries as float64."""
        return whole_message(v)

    def expand(self, message: Message, shape: tuple[int, ...]) -> np.ndarray:
        """The vector itself."""
        return whole_vector(message, shape)

    def size(self, d: int) -> int:
        """8 d."""
        return d * VALUE.itemsize

    def omega(self, d: int) -> float | None:
        """0."""
        return 0.0


def _packed(codes: np.ndarray) -> bytes:
    """Numbers of 12 bits, two in three bytes."""
    a, b = np.append(codes, np.zeros(codes.size % 2, np.uint16)).reshape(-1, 2).T
    three = np.stack([a >> 4, (a & 15) << 4 | b >> 8, b & 255], axis=1).astype(np.uint8)
    return three.tobytes()[: -(-3 * codes.size // 2)]


def _unpacked(payload: bytes, d: int) -> np.ndarray:
    """The inverse of the packing."""
    three = np.frombuffer(payload.ljust(-(-d // 2) * 3, b"\0"), np.uint8).reshape(-1, 3).astype(np.uint16)
    a, b = three[:, 0] << 4 | three[:, 1] >> 4, (three[:, 1] & 15) << 8 | three[:, 2]
    return np.stack([a, b], axis=1).reshape(-1)[:d]


def as_compressor(call: str, given: object) -> Compressor:
    """A compressor, or the one that a text such as "top-10", "random-10", "natural" or "none" names.

    Examples
    --------
    >>> as_compressor("EF21", "top-10"), as_compressor("EF21", Natural())
    (TopK(k=10), Natural())
    """
    if isinstance(given, str):
        name, _, k = given.partition("-")
        plain, counted = {"natural": Natural, "none": NoCompression}, {"top": TopK, "random": RandomK}
        if given in plain:
            return plain[given]()
        if name in counted and k.isdecimal():
            return counted[name](int(k))
        raise InputError(f'`{call}(compressor=...)` must be "top-10", "random-10", "natural" or "none", got {given!r}')
    members = ("compress", "expand", "size", "omega", "alpha")
    checks.contract(call, "compressor", given, "compressor", "TopK(10)", members)
    return given  # type: ignore[return-value]
