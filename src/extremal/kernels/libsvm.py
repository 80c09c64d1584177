"""LIBSVM text to numbers, for plain lines; the parser in extremal.files.libsvm defines the text, and reads the rest."""

from __future__ import annotations

import numba.core.config as config
import numpy as np

from extremal.kernels.jit import jit

COMPILED = not config.DISABLE_JIT  # pyright: ignore[reportAttributeAccessIssue]

SPACE, TAB, NEWLINE, RETURN, HASH, COLON = ord(" "), ord("\t"), ord("\n"), ord("\r"), ord("#"), ord(":")
PLUS, MINUS, DOT, SMALL_E, LARGE_E, ZERO, NINE = ord("+"), ord("-"), ord("."), ord("e"), ord("E"), ord("0"), ord("9")
LAST_INDEX = 2**31 - 1
WHOLE_FLOATS = 2**53  # every integer up to here is exact in float64
MOST_DIGITS = 9 * 10**17  # an integer up to here can take one more digit: 9 10^18 + 9 < 2^63
POWERS = np.array([float(10**k) for k in range(23)])  # the powers of ten that are exact in float64
REFUSED = (0, 0, 0, 0)
TOO_LONG = -1


def read_lines(text: bytes) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Read whole lines; return (lines, where, labels, stops, columns, values), or None if a part is not understood.

    Row i comes from line where[i], counted from 0, and has the entries from stops[i - 1] to stops[i] - 1.
    """
    text = text if text.endswith(b"\n") else text + b"\n"
    most_rows, most_entries = text.count(b"\n"), text.count(b":")
    where, stops, columns = np.empty(most_rows, np.int64), np.empty(most_rows, np.int64), np.empty(most_entries, np.int32)
    numbers, rough = np.empty(most_rows + most_entries), np.empty((3, most_rows + most_entries), np.int64)
    lines, rows, entries, hard = parse_lines(np.frombuffer(text, np.uint8), where, stops, columns, numbers, rough)
    if not lines:
        return None
    which, first, end = rough[:, :hard].tolist()
    numbers[which] = [float(text[i:j]) for i, j in zip(first, end, strict=True)]
    return lines, where[:rows], numbers[:rows], stops[:rows], columns[:entries], numbers[most_rows : most_rows + entries]


@jit
def parse_lines(text, where, stops, columns, numbers, rough):
    """Fill the arrays from the bytes of whole lines; return the counts (lines, rows, entries, rough), or REFUSED.

    Labels are numbers[0], numbers[1], ..., and values numbers[where.size], numbers[where.size + 1], ... A column (t, start, stop)
    of rough marks a number that is not correctly rounded here: numbers[t] = float(text[start:stop]).
    """
    at = lines = rows = entries = hard = 0
    while at < text.size:
        at = blanks(text, at)
        if not ends(text, at):
            start, t, last = at, rows, 0
            while True:  # the label, then every value
                numbers[t], exact, stop = decimal(text, start)
                if stop == start:
                    return REFUSED
                if not exact:
                    rough[0, hard], rough[1, hard], rough[2, hard] = t, start, stop
                    hard += 1
                at = blanks(text, stop)
                if ends(text, at):
                    break
                index, start = digits(text, at, 0)  # after a blank, since no number stops at a digit
                if start - at > 10 or not last < index <= LAST_INDEX or text[start] != COLON:
                    return REFUSED
                start, t, last = start + 1, where.size + entries, index
                columns[entries] = index
                entries += 1
            where[rows], stops[rows] = lines, entries
            rows += 1
        at = next_line(text, at)
        if at == 0:
            return REFUSED
        lines += 1
    return lines, rows, entries, hard


@jit
def blanks(text, at):
    """The position where the blanks at text[at] stop."""
    while text[at] == SPACE or text[at] == TAB:
        at += 1
    return at


@jit
def ends(text, at):
    """Whether the fields of a line end at text[at]."""
    return text[at] == NEWLINE or text[at] == HASH or text[at] == RETURN


@jit
def next_line(text, at):
    """The start of the line after a comment or a line's end; 0 if it follows a lone carriage return."""
    while text[at] != NEWLINE and text[at] != RETURN:
        at += 1
    if text[at] == RETURN:
        at += 1
    return at + 1 if text[at] == NEWLINE else 0


@jit
def decimal(text, start):
    """Read [+-]digits[.digits][e[+-]digits]; return (value, whether it is correctly rounded, where it stops).

    It stops at its start if there is no number. Up to its sign, the value is m 10^k for integers m >= 0 and k.
    """
    at = start + (text[start] == PLUS or text[start] == MINUS)
    m, stop = digits(text, at, 0)
    many, k = stop - at, 0
    if text[stop] == DOT:
        at = stop + 1
        m, stop = digits(text, at, m)
        many, k = many + stop - at, at - stop
    if many == 0:
        return 0.0, False, start
    if text[stop] == SMALL_E or text[stop] == LARGE_E:
        power, at, stop = exponent(text, stop + 1)
        if stop == at:
            return 0.0, False, start
        k += power
    value, exact = power_of_ten(m, k)
    return -value if text[start] == MINUS else value, exact, stop


@jit
def power_of_ten(m, k):
    """m 10^k, and whether it is correctly rounded."""
    if m == TOO_LONG or abs(k) > 22:
        return 0.0, False
    if m <= WHOLE_FLOATS:  # m and 10^|k| are exact in float64, so there is only one rounding
        return m * POWERS[k] if k >= 0 else m / POWERS[-k], True
    return quotient(m, POWERS[-k]) if k <= 0 else (0.0, False)


@jit
def quotient(m, p):
    """m / p for an integer m < 2^63 and a power of ten, and whether it is correctly rounded.

    With h = fl(m), l = m - h and q = fl(h / p),  m / p = q + c  for c = (h - q p + l) / p. The numbers l and h - q p are exact,
    so c has a relative error below 2^-50. If q + c rounds to the same number at both ends of c, that number is m / p rounded.
    """
    h = float(m)
    l = float(m - np.int64(h))
    q = h / p
    c = (remainder(h, q, p) + l) / p
    low, high = q + c * (1 - 2.0**-50), q + c * (1 + 2.0**-50)
    return low, low == high


@jit
def remainder(h, q, p):
    """h - q p for q = fl(h / p), by Dekker's product: q p = product + error exactly."""
    product = q * p
    q1, p1 = upper(q), upper(p)
    q2, p2 = q - q1, p - p1
    error = ((q1 * p1 - product) + q1 * p2 + q2 * p1) + q2 * p2
    return (h - product) - error


@jit
def upper(a):
    """The upper 26 bits of a number, by Veltkamp."""
    c = (2.0**27 + 1) * a
    return c - (c - a)


@jit
def exponent(text, start):
    """Read [+-]digits; return (the integer, or another large one, where its digits start, where they stop)."""
    at = start + (text[start] == PLUS or text[start] == MINUS)
    power, stop = digits(text, at, 0)
    if power == TOO_LONG:
        power = MOST_DIGITS
    return -power if text[start] == MINUS else power, at, stop


@jit
def digits(text, at, m):
    """Append the digits at text[at] to the integer m; return (m, where they stop), with m = TOO_LONG if it gets too large."""
    while ZERO <= text[at] <= NINE:
        m = 10 * m + (text[at] - ZERO) if 0 <= m <= MOST_DIGITS else TOO_LONG
        at += 1
    return m, at
