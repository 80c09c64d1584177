"""LIBSVM text: the kernel and the Python parser give the same bits or the same error, however the text is cut into blocks."""

import io
import os
import struct
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import extremal as ex
from extremal.files import libsvm
from extremal.kernels import libsvm as kernel

compiled = pytest.mark.skipif(not kernel.COMPILED, reason="NUMBA_DISABLE_JIT is set, and the kernel is not in use")
WHOLE = 2**30
BLOCKS = st.sampled_from([1, 5, 30, 200, WHOLE])


def outcome(text, block=WHOLE):
    """What reading gives, to the bit: arrays with their types, or the message."""
    try:
        A, y = libsvm.read(Path("d"), io.BytesIO(text), block)
    except ex.InputError as error:
        return str(error)
    return A.shape, [(a.dtype, a.tobytes()) for a in (A.data, A.indices, A.indptr, y)]


def reference(text):
    """What the Python parser alone makes of the whole text."""
    with mock.patch.object(libsvm, "_fast", return_value=0):
        return outcome(text)


def by_kernel(text, block=WHOLE):
    """What the kernel alone makes of it; it must not ask the parser."""
    with mock.patch.object(libsvm, "_plain", side_effect=AssertionError("the kernel has refused a block")):
        return outcome(text, block)


# ---- what the kernel reads

SIGNS, DIGITS = st.sampled_from(["", "+", "-"]), st.text("0123456789", min_size=1, max_size=25)
EXPONENTS = st.one_of(st.just(""), st.builds("{}{}{}".format, st.sampled_from("eE"), SIGNS, st.integers(0, 400)))
MANTISSAS = st.one_of(DIGITS, DIGITS.map(".{}".format), DIGITS.map("{}.".format), st.builds("{}.{}".format, DIGITS, DIGITS))
FORMATS = st.sampled_from(["{!r}", "{:.6g}", "{:.16g}", "{:.17g}", "{:.18g}", "{:.18e}", "{:.10f}"])
FLOATS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e4, 1e4))
NUMBERS = st.one_of(st.builds("{}{}{}".format, SIGNS, MANTISSAS, EXPONENTS), st.builds(str.format, FORMATS, FLOATS))
GAPS = st.sampled_from([" ", "\t", "  ", " \t "])
TAILS = st.sampled_from(["", " ", "\t ", "# a comment: 1:2", " # ünïcode \x00\x0b#"])
ENDS = st.sampled_from(["\n", "\r\n"])


@st.composite
def rows(draw):
    indices = sorted(draw(st.sets(st.one_of(st.integers(1, 40), st.integers(1, 2**31 - 1)), max_size=6)))
    fields = [draw(NUMBERS), *(f"{index:0{draw(st.integers(0, 10))}d}:{draw(NUMBERS)}" for index in indices)]
    return draw(st.sampled_from(["", " ", "\t"])) + draw(GAPS).join(fields)


@st.composite
def texts(draw, line):
    lines = draw(st.lists(st.one_of(line, st.just("")), min_size=1, max_size=6))
    text = "".join(line + draw(TAILS) + draw(ENDS) for line in lines)
    return (text if draw(st.booleans()) else text.removesuffix("\n")).encode()


@compiled
@given(texts(rows()), BLOCKS)
@settings(max_examples=400)
def test_the_kernel_agrees_with_the_parser(text, block):
    assert by_kernel(text, block) == reference(text)


HALVES = [  # next to, or half-way between two float64 numbers, where a rounding too many shows
    "9007199254740993", "9007199254740993.0", "9007199254740992", "-9007199254740995", "900719925474099.3", "9007199254.740993",
    "4503599627370497.5", "4503599627370497.50000", "4503599627370497.51", "4503599627370497.499", "1125899906842624.125",
    "0.500000000000000166533453693773481063544750213623046875", "1.00000000000000011102230246251565", "8.5e22", "9e22", "1e23",
    "9007199254740993e22", "9007199254740993e-22", "9007199254740992e22", "9007199254740991e-22", "9007199254740993e-23",
]  # fmt: skip
EDGES = [
    "1", "-0", "+0", "0", "-0.0e-5", "1e5", "1E+5", "1e-5", "1e05", ".5", "5.", "-.5e1", "+1", "007", "1e22", "1e-22", "1e-23",
    "1e-320", "4.9e-324", "2e-324", "1e-400", "0e999", "0e-99999999999999999999", "1e-99999999999999999999",
    "1.7976931348623157e308", "0.1234567890123456", "0.12345678901234567", "0.123456789012345678", "1.234567890123456789e-01",
    "9" * 17, "9" * 18, "9" * 19, "9" * 20, "9" * 30, "9.0000000000000000009e18", "900000000000000000", "9000000000000000009",
    "900000000000000001.5", "9" * 300, "0." + "0" * 30 + "1", "1" + "0" * 25, "1" + "0" * 25 + "e-25", "0" * 40 + "1",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "1.0000000000000000000000", "123456789e-30", "0.1e1",
    "12.5e-1", "2.5e+1", "1e0", "3.e2", "1e00000000000000000003",
]  # fmt: skip


@compiled
@pytest.mark.parametrize("spelling", EDGES + HALVES, ids=lambda spelling: spelling[:30])
def test_numbers_are_correctly_rounded(spelling):
    for text, start in ((f"{spelling} 1:0 2:1\n", 0), (f"3 1:{spelling} 2:1\n", 1), (f"3 1:0 2:{spelling}\n", 2)):
        _, _, labels, _, _, values = kernel.read_lines(text.encode())
        assert struct.pack("d", [*labels, *values][start]) == struct.pack("d", float(spelling))
    assert by_kernel(f"1 1:{spelling} 2:1\n".encode()) == reference(f"1 1:{spelling} 2:1\n".encode())


def nearly_half_way(rng, k, e):
    """Integers m, such that m / 10^k is as near as can be to the middle of two float64 numbers that are 2^-e apart.

    m / 10^k - (2 j + 1) / 2^(e + 1) = t / (5^k 2^(e + 1))  for t = m 2^s - (2 j + 1) 5^k and s = e + 1 - k: here t = -1, 1.
    """
    low, high = max(2**53, 2**52 * 10**k // 2**e), min(9 * 10**18, 2**53 * 10**k // 2**e)
    for t in (-1, 1):
        first = t * pow(2, k - e - 1, 5**k)
        for m in rng.integers(low, high, 5).tolist() if low + 5**k < high else []:
            yield m - (m - first) % 5**k


@compiled
def test_numbers_of_17_digits_are_correctly_rounded():
    """The quotient of integers above 2^53: thousands of them, also the hardest."""
    rng = np.random.default_rng(0)
    some = [repr(float(v)) for v in rng.standard_normal(20_000)] + [f"{v:.17g}" for v in rng.uniform(-1000, 1000, 20_000)]
    some += [f"{m}e{k}" for m, k in zip(rng.integers(2**53, 9 * 10**18, 20_000), rng.integers(-22, 1, 20_000), strict=True)]
    some += [f"{m}e-{k}" for k in range(15, 23) for e in range(k, 120) for m in nearly_half_way(rng, k, e)]
    text = "1" + "".join(f" {i}:{spelling}" for i, spelling in enumerate(some, 1)) + "\n"
    _, _, _, _, _, values = kernel.read_lines(text.encode())
    assert values.tobytes() == np.array([float(spelling) for spelling in some]).tobytes()


@compiled
def test_17_digits_are_not_left_to_python():
    """Files that hold what repr writes are many: few of its numbers may take the slow way."""
    some = np.random.default_rng(0).standard_normal(1000).tolist()
    text = ("1" + "".join(f" {i}:{v!r}" for i, v in enumerate(some, 1)) + "\n").encode()
    arrays = np.empty(1, np.int64), np.empty(1, np.int64), np.empty(1000, np.int32), np.empty(1001), np.empty((3, 1001), np.int64)
    lines, rows, entries, rough = kernel.parse_lines(np.frombuffer(text, np.uint8), *arrays)
    assert (lines, rows, entries) == (1, 1, 1000)
    assert rough < 10


# ---- what it leaves to the parser

ODD = [  # all this is read by the parser, or explained by it
    "nan 1:1", "1 1:inf", "1 1:-Infinity", "1 1:1e999", "-1e400 1:1", "1 qid:3 1:1", "1 0:1", "1 -1:1", "1 +1:1", "1 2:1 1:1",
    "1 2:1 2:1", "1 2147483648:1", "1 99999999999:1", "1 18446744073709551617:1", "1 00000000001:1", "1 1_0:1", "1 1:1_0",
    "1_0 1:1", "1 1:", "1 :1", "1 1", "1 1 1", "1 1:1:1", "1 1:1e", "1 1:1e+", "1 1:e5", "1 1:.", "1 1:+", "1 1:+-1", "1 1:-",
    "1 1:.e1", "1 1:0x10", "1 1:1.2.3", "1 1: 1", "1 1 :1", "1:1", "1,2 1:1", "x", "+", "1 1:1,2:1", "1\x0b1:1", "1\x0c",
    "\x0c", "1\xa01:1", "1 \u0661:1", "1 1:\u0661", "\u0661 1:1", "1 1:1\x00", "1\r1 1:1", "\r", "1 1:1\r# a comment\r2 2:2",
    "1 1:1 # a comment\r2 2:2\r", "\ufeff1 1:1", "\x1c1 1:1", "1 1:1e5.0", "1 1:1f", "1 1.0:1", "1 1:1\r\r", "1 1:1 \r ", "1 a",
    "1 1:infinity", "1e", "1 1:1d5", "1\u20281:1", "1 " + "1" * 5000 + ":1", "1 " + "0" * 5000 + "1:1",
]  # fmt: skip


@given(texts(st.one_of(rows(), rows(), st.sampled_from(ODD))), BLOCKS)
@settings(max_examples=400)
def test_odd_lines_make_no_difference(text, block):
    assert outcome(text, block) == reference(text)


@pytest.mark.parametrize("line", ODD, ids=lambda line: ascii(line)[:30])
@pytest.mark.parametrize("before", ["", "1 1:1\n", "\r\n\n# a comment\n1 3:1 \r\n\n"])
def test_an_odd_line_makes_no_difference(line, before):
    text = f"{before}{line}\n1 2:3\n".encode()
    for block in (1, WHOLE):
        assert outcome(text, block) == reference(text)
        assert outcome(text[:-7], block) == reference(text[:-7])
    if isinstance(reference(text), str):
        assert reference(text).startswith(f"d:{1 + before.count(chr(10))}: ")


@given(
    st.lists(st.sampled_from(list(b"0123456789+-.eE: \t\r\n#_ni\xff\xc3\xa0\x00\x0b::::1111    \n\n\n\r")), max_size=25), BLOCKS
)
@settings(max_examples=1000)
@example(list(b"\xef\xbb"), 1)
@example(list(b"\xef\xbb\xbf1 1:1\n\xef\xbb\xbf2 1:1\n"), 1)
@example(list(b"\xef\xbb\xbf"), WHOLE)
@example(list(b"1 1:1 \xc3\n\xa0 1:1\n"), 1)
@example(list(b"1 1:1\r"), WHOLE)
def test_any_bytes_make_no_difference(some, block):
    for text in (bytes(some), b"1 1:1\n2 2:" + bytes(some)):
        assert outcome(text, block) == reference(text)


def test_line_ends_and_byte_order_mark():
    for text in (b"1 1:2\n\n3 2:4", b"1 1:2\r\n\r\n3 2:4\r\n", b"1 1:2\r\r3 2:4\r", b"\xef\xbb\xbf1 1:2\n\r3 2:4\n"):
        A, y = libsvm.read(Path("d"), io.BytesIO(text))
        assert (A.toarray().tolist(), y.tolist()) == ([[2, 0], [0, 4]], [1, 3])
        assert outcome(text.replace(b"3", b"x")) == "d:3: expected a number as the label, got 'x'"


def test_an_index_of_very_many_digits_is_refused():
    """Python's int() has a limit of its own."""
    for index in ("1" * 5000, "0" * 5000 + "1"):
        assert outcome(f"1 1:1\n1 {index}:1\n".encode()).startswith("d:2: expected an index from 1 to 2147483647, got '")


# ---- lines and blocks


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 1:2 3;1", "expected index:value after the label, got '3;1'"),
        ("1 3:1 2:5", "expected ascending indices, got '2:5' after index 3"),
        ("1 0:1", "expected an index from 1 to 2147483647, got '0:1'"),
        ("cat 1:2", "expected a number as the label, got 'cat'"),
        ("1 4:1e400", "expected finite numbers, got inf"),
        ("-1e400 4:1", "expected finite numbers, got -inf"),
        ("nan 4:1", "expected finite numbers, got nan"),
    ],
)
def test_a_mistake_in_a_later_block_is_named_by_its_line(end, line, words):
    before = ["1 1:0.5", "", "# a comment", "2 2:0.1 # another", "3", "4 1:1 7:0.123456789012345678901"] * 20
    text = end.join([*before, line, "5 1:1", ""]).encode()
    for block in (1, 100, 300, WHOLE):
        assert outcome(text, block) == f"d:{len(before) + 1}: {words}"
    odd = end.join([*before, "6 +1:7", *before, line, "x"]).encode()  # the parser reads one of the blocks
    for block in (1, 100, 300):
        assert outcome(odd.removesuffix(b"x"), block) == f"d:{2 * len(before) + 2}: {words}"


def test_rows_of_both_readers_make_one_matrix():
    lines = [b"%d %d:0.1 %d:%d\n" % (i, 1 + i % 3, 5 + i % 7, i) for i in range(200)]
    lines[80], lines[140] = b"80 +3:1 4:2\n", b"140 \xef\xbc\x91:1\n"  # two lines for the parser
    text = b"".join(lines)
    assert not isinstance(reference(text), str)
    for block in (1, 64, 500, WHOLE):
        assert outcome(text, block) == reference(text)


@compiled
def test_a_long_line_goes_over_many_blocks():
    text = ("1 " + " ".join(f"{i}:{i / 7!r}" for i in range(1, 3000)) + "\n").encode()
    for data in (text, text * 3, text * 3 + b"2 1:1", text[:-1]):
        assert by_kernel(data, 100) == by_kernel(data, 70_000) == reference(data)


@given(st.lists(st.sampled_from([b"", b"1 1:1", b"#" * 30, b"\r"]), max_size=20), st.booleans(), st.integers(1, 60))
def test_blocks_are_whole_lines_of_bounded_size(lines, ended, size):
    text = b"\n".join(lines) + b"\n" * ended
    blocks = list(libsvm._blocks(io.BytesIO(text), size))
    assert b"".join(blocks) == text
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert all(0 < len(block) < size + 31 for block in blocks)


# ---- when numba is asked


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_small_file_is_read_without_numba(tmp_path):
    path = tmp_path / "d"
    path.write_bytes(b"1 1:0.5\n" * 1000)
    code = "import sys; from extremal.files.tables import load_table\n"
    code += f"A, y = load_table({str(path)!r}); print(A.nnz, 'numba' in sys.modules)"
    assert run(code) == ["1000", "False"]
    path.write_bytes(b"1 1:0.5\n" * (libsvm.SMALL_FILE // 8))
    assert run(code) == [str(libsvm.SMALL_FILE // 8), "True"]


def test_without_the_compiler_the_parser_reads_alone(tmp_path):
    path = tmp_path / "d"
    path.write_bytes(b"1 1:0.5\n" * (libsvm.SMALL_FILE // 8))
    code = f"""
from extremal.files.tables import load_table
from extremal.kernels import libsvm
libsvm.read_lines = None
A, y = load_table({str(path)!r})
print(A.nnz, libsvm.COMPILED)"""
    assert run(code, NUMBA_DISABLE_JIT="1") == [str(libsvm.SMALL_FILE // 8), "False"]
