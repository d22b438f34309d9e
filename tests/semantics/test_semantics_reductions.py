"""Reductions against tables, against numpy's and ml_dtypes' arithmetic, and against each other."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterable, Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.isa.families.atomics import OPERATIONS
from mcheck.isa.families.bulk import CLUSTER_REDUCTIONS, GLOBAL_REDUCTIONS
from mcheck.semantics import floats
from mcheck.semantics.reductions import TENSOR_REDUCTIONS, atomic, element_size, reduce

M32, M64 = 2**32 - 1, 2**64 - 1

CASES = [
    ("add", "u32", M32, 1, 0),
    ("add", "s32", 0x7FFFFFFF, 1, 0x80000000),
    ("add", "u64", M64, 2, 1),
    ("min", "u32", M32, 1, 1),
    ("min", "s32", M32, 1, M32),
    ("max", "s32", M32, 1, 1),
    ("max", "u32", M32, 1, M32),
    ("min", "s64", M64, 1, M64),
    ("max", "u64", M64, 1, M64),
    ("and", "b32", 0b1100, 0b1010, 0b1000),
    ("or", "b64", 0b1100, 0b1010, 0b1110),
    ("xor", "b64", 0b1100, 0b1010, 0b0110),
    ("inc", "u32", 3, 4, 4),
    ("inc", "u32", 4, 4, 0),
    ("inc", "u32", 9, 4, 0),
    ("inc", "u32", M32, M32, 0),
    ("dec", "u32", 3, 4, 2),
    ("dec", "u32", 0, 4, 4),
    ("dec", "u32", 5, 4, 4),
    ("dec", "u32", 4, 4, 3),
    ("exch", "b32", 1, 2, 2),
    ("sub", "u32", 0, 1, M32),
    ("mul", "u32", 1 << 31, 2, 0),
    ("div", "s32", 2**32 - 7, 2, 2**32 - 3),
    ("add", "f32", 0x3F800000, 0x3F800000, 0x40000000),
    ("add", "f32", 0x7F800000, 0xFF800000, 0x7FFFFFFF),
    ("add", "f32", 0x3F800000, 0xBF800000, 0),
    ("add", "f32", 0x80000000, 0x80000000, 0x80000000),
    ("add", "f32", 0x80000001, 0x80000001, 0x80000000),  # subnormals count as zeros of their sign
    ("add", "f32", 0x00800001, 0x80800000, 0),  # and a subnormal sum becomes one
    ("add", "f16", 0x0001, 0x0001, 0x0002),
    ("add", "f16", 0x7BFF, 0x7BFF, 0x7C00),
    ("add", "f16", 0x3C00, 0x1000, 0x3C00),  # a tie goes to the even mantissa
    ("add", "f16", 0x3C01, 0x1000, 0x3C02),
    ("add", "bf16", 0x3F80, 0x3F80, 0x4000),
    ("min", "f16", 0x8000, 0x0000, 0x8000),
    ("max", "f16", 0x8000, 0x0000, 0x0000),
    ("min", "f16", 0x7E01, 0x3C00, 0x3C00),
    ("max", "bf16", 0x3F80, 0x7FC1, 0x3F80),
    ("min", "bf16", 0x7FC1, 0x7FC1, 0x7FFF),
    ("add", "f16x2", 0x3C003C00, 0x3C004000, 0x40004200),
]


@pytest.mark.parametrize(("op", "type_", "old", "operand", "new"), CASES)
def test_reduce(op: str, type_: str, old: int, operand: int, new: int) -> None:
    assert reduce(op, type_, old, operand) == new


def test_preserved_subnormals() -> None:
    assert reduce("add", "f32", 1, 1, flush_subnormals=False) == 2


def test_cas() -> None:
    assert atomic("cas", "b32", 5, (5, 7)) == 7
    assert atomic("cas", "b32", 6, (5, 7)) == 6
    assert atomic("cas", "b32", M32, (-1, 7)) == 7
    assert atomic("add", "u32", 5, (7,)) == 12


def test_division_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        reduce("div", "s32", 1, 0)


def test_unknown_operation() -> None:
    with pytest.raises(KeyError):
        reduce("nand", "b32", 1, 1)
    with pytest.raises(KeyError):
        reduce("inc", "f32", 1, 1)


@pytest.mark.parametrize("table", [OPERATIONS, CLUSTER_REDUCTIONS, GLOBAL_REDUCTIONS, TENSOR_REDUCTIONS])
def test_what_the_instructions_have_computes(table: Mapping[str, Iterable[str]]) -> None:
    for op, types in table.items():
        for type_ in types:
            assert element_size(type_) in (2, 4, 8)
            atomic(op, type_, 1, (1,))


def test_a_tensor_reduces_what_bulk_copies_do_but_doubles() -> None:
    tensor = {op: set(types) for op, types in TENSOR_REDUCTIONS.items()}
    assert tensor == {op: set(types) - {"f64"} for op, types in GLOBAL_REDUCTIONS.items()}


FINITE = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}


def patterns(type_: str) -> st.SearchStrategy[tuple[int, int]]:
    """Pairs of bit patterns, every other pair near each other so that sums cancel and ties occur."""
    bits = floats.FORMATS[type_].bits
    whole = st.integers(0, 2**bits - 1)
    near = st.tuples(whole, st.integers(-3, 3), st.integers(0, 12)).map(
        lambda t: (t[0], (t[0] ^ 1 << bits - 1) + t[1] + (t[2] << bits // 2) & 2**bits - 1)
    )
    return st.one_of(st.tuples(whole, whole), near)


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
def test_addition_is_numpys(type_: str) -> None:
    import ml_dtypes
    import numpy as np

    dtype = np.dtype({"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}[type_])
    form = floats.FORMATS[type_]
    unsigned = np.dtype(f"u{form.bits // 8}")

    @given(patterns(type_))
    def check(pair: tuple[int, int]) -> None:
        a, b = np.array(pair, unsigned).view(dtype)
        with np.errstate(all="ignore"):
            expected = int((a + b).reshape(1).view(unsigned)[0])
            told_apart = not (np.isnan(a) or np.isnan(b)) and a != b  # NumPy warns of signalling ones
        ours = floats.add(form, *pair)
        assert ours == expected or (floats.is_nan(form, ours) and floats.is_nan(form, expected))
        if told_apart:
            low, high = (pair[0], pair[1]) if a < b else (pair[1], pair[0])
            assert floats.smallest(form, *pair) == low
            assert floats.largest(form, *pair) == high

    check()


@given(patterns("f32"))
def test_f32_addition_is_exact_then_rounded(pair: tuple[int, int]) -> None:
    """Against fractions: no neighbour of the result is nearer to the exact sum."""

    def value(bits: int) -> Fraction:
        return Fraction(struct.unpack("<f", struct.pack("<I", bits))[0])

    form = floats.FORMATS["f32"]
    total = floats.add(form, *pair)
    if any(x & 0x7F800000 == 0x7F800000 for x in (*pair, total)):
        return
    exact = value(pair[0]) + value(pair[1])
    for neighbour in (total - 1, total + 1):
        if 0 <= neighbour <= M32 and neighbour & 0x7F800000 != 0x7F800000:
            assert abs(value(total) - exact) <= abs(value(neighbour) - exact)


def test_integers_import_no_numpy() -> None:
    code = (
        "import sys; from mcheck.semantics.reductions import reduce; reduce('add', 'u32', 1, 2); "
        "reduce('add', 'f16', 1, 2); sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
