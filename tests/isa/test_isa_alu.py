"""Integer semantics: laws that hold for all values, and the corners worth writing down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.base.errors import InternalError
from mcheck.ir.alu import bounds, compute, has_value, saturate, width, wrap

TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")
types = st.sampled_from(TYPES)
integers = st.integers(-(2**70), 2**70)


@given(types, integers)
def test_wrap_lands_in_range_and_keeps_the_bits(type_name: str, value: int) -> None:
    least, greatest = bounds(type_name)
    wrapped = wrap(type_name, value)
    assert least <= wrapped <= greatest
    assert (wrapped - value) % (1 << width(type_name)) == 0
    assert wrap(type_name, wrapped) == wrapped


@given(types, integers, integers)
def test_results_do_not_depend_on_how_sources_are_represented(type_name: str, a: int, b: int) -> None:
    for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem", "setp.lt", "setp.eq"):
        shifted = (a + (3 << width(type_name)), b - (5 << width(type_name)))
        assert has_value(op, type_name, (a, b)) == has_value(op, type_name, shifted)
        if not has_value(op, type_name, (a, b)):
            continue
        assert compute(op, type_name, None, (a, b)) == compute(op, type_name, None, shifted)


@given(types, integers, integers)
def test_high_and_low_halves_make_the_product(type_name: str, a: int, b: int) -> None:
    (low,), (high,) = (compute(f"mul.{half}", type_name, None, (a, b)) for half in ("lo", "hi"))
    product = wrap(type_name, a) * wrap(type_name, b)
    bits = width(type_name)
    assert (high << bits) + (low % (1 << bits)) == product
    if bits < 64:
        assert compute("mul.wide", type_name, None, (a, b)) == (product,)


@given(types, integers, integers)
def test_quotient_and_remainder_make_the_dividend(type_name: str, a: int, b: int) -> None:
    if not has_value("div", type_name, (a, b)):
        assert not wrap(type_name, b)
        return
    (quotient,), (remainder,) = (compute(op, type_name, None, (a, b)) for op in ("div", "rem"))
    a, b = wrap(type_name, a), wrap(type_name, b)
    assert wrap(type_name, quotient * b + remainder) == a
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder < 0) == (a < 0)


@given(st.sampled_from(("b16", "b32", "b64", "b128")), st.sampled_from((2, 4)), integers)
def test_what_is_taken_apart_is_whole_when_packed_again(type_name: str, count: int, value: int) -> None:
    parts = compute("unpack", type_name, None, (value,), count)
    assert all(0 <= part < 1 << width(type_name) // count for part in parts)
    assert compute("pack", type_name, None, parts) == (wrap(type_name, value),)
    assert parts[0] == value % (1 << width(type_name) // count)


@given(types, integers, integers, integers)
def test_mad_is_mul_and_add(type_name: str, a: int, b: int, c: int) -> None:
    for half in ("lo", "hi"):
        (product,) = compute(f"mul.{half}", type_name, None, (a, b))
        assert compute(f"mad.{half}", type_name, None, (a, b, c)) == compute("add", type_name, None, (product, c))


@given(st.sampled_from(("b16", "b32", "b64")), integers, integers)
def test_bits_obey_de_morgan(type_name: str, a: int, b: int) -> None:
    def of(op: str, *values: int) -> int:
        return compute(op, type_name, None, values)[0]

    assert of("not", of("and", a, b)) == of("or", of("not", a), of("not", b))
    assert of("xor", a, b) == of("and", of("or", a, b), of("not", of("and", a, b)))


@given(st.sampled_from(TYPES), st.sampled_from(TYPES), integers)
def test_cvt_extends_then_truncates_or_clamps(target: str, source: str, value: int) -> None:
    held = wrap(source, value)
    assert compute("cvt", target, source, (value,)) == (wrap(target, held),)
    assert compute("cvt.sat", target, source, (value,)) == (saturate(target, held),)


@given(st.sampled_from(("eq", "ne", "lt", "le", "gt", "ge")), types, integers, integers, st.booleans())
def test_setp_gives_the_comparison_and_its_negation(name: str, type_name: str, a: int, b: int, c: bool) -> None:
    p, q = compute(f"setp.{name}", type_name, None, (a, b))
    assert {p, q} == {0, 1}
    for combine, expected in (("and", (p & c, q & c)), ("or", (p | c, q | c)), ("xor", (p ^ c, q ^ c))):
        assert compute(f"setp.{name}.{combine}", type_name, None, (a, b, int(c))) == expected


@pytest.mark.parametrize(
    ("op", "type_name", "src_type", "values", "result"),
    [
        ("add", "u32", None, (0xFFFFFFFF, 1), (0,)),
        ("add", "s32", None, (0x7FFFFFFF, 1), (-0x80000000,)),
        ("add.sat", "s32", None, (0x7FFFFFFF, 1), (0x7FFFFFFF,)),
        ("sub.sat", "s32", None, (-0x80000000, 1), (-0x80000000,)),
        ("sub", "u16", None, (0, 1), (0xFFFF,)),
        ("mad.hi.sat", "s32", None, (0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF), (0x7FFFFFFF,)),
        ("mad.wide", "u32", None, (0xFFFFFFFF, 0xFFFFFFFF, 1), (0xFFFFFFFE00000002,)),
        ("mul.wide", "s16", None, (-2, 3), (-6,)),
        ("div", "s32", None, (-7, 2), (-3,)),
        ("rem", "s32", None, (-7, 2), (-1,)),
        ("div", "s32", None, (-0x80000000, -1), (-0x80000000,)),
        ("abs", "s32", None, (-0x80000000,), (-0x80000000,)),
        ("neg", "s16", None, (5,), (-5,)),
        ("min", "s32", None, (-1, 0), (-1,)),
        ("min", "u32", None, (-1, 0), (0,)),
        ("shl", "b32", None, (1, 31), (0x80000000,)),
        ("shl", "b32", None, (1, 32), (0,)),
        ("shl", "b32", None, (1, -1), (0,)),
        ("shr", "s32", None, (-8, 1), (-4,)),
        ("shr", "s32", None, (-8, 99), (-1,)),
        ("shr", "u32", None, (-8, 1), (0x7FFFFFFC,)),
        ("shr", "b16", None, (0x8000, 15), (1,)),
        ("setp.lo", "u32", None, (-1, 0), (0, 1)),
        ("setp.lt", "s32", None, (-1, 0), (1, 0)),
        ("selp", "u32", None, (1, 2, 1), (1,)),
        ("selp", "u32", None, (1, 2, 0), (2,)),
        ("cvt", "u64", "s32", (-1,), (0xFFFFFFFFFFFFFFFF,)),
        ("cvt", "s64", "s8", (0xFF,), (-1,)),
        ("cvt", "u8", "u32", (0x1FF,), (0xFF,)),
        ("cvt.sat", "u8", "s32", (-5,), (0,)),
        ("cvt.sat", "s8", "u32", (300,), (127,)),
        ("mov", "u64", None, (2**64 + 5,), (5,)),
        ("mov", "f32", None, (0x3F800000,), (0x3F800000,)),
        ("mov", "pred", None, (1,), (1,)),
        ("not", "pred", None, (1,), (0,)),
        ("not", "pred", None, (0,), (1,)),
        ("and", "pred", None, (1, 0), (0,)),
        ("cvta", "u64", None, (0x100_0000_0010,), (0x100_0000_0010,)),
        ("nop", "b32", None, (), ()),
    ],
)
def test_corner(
    op: str, type_name: str, src_type: str | None, values: tuple[int, ...], result: tuple[int, ...]
) -> None:
    assert compute(op, type_name, src_type, values) == result


@pytest.mark.parametrize(("op", "type_name"), [("div", "u32"), ("div", "s32"), ("rem", "u32"), ("rem", "s16")])
def test_what_a_division_by_zero_gives_is_unspecified(op: str, type_name: str) -> None:
    assert not has_value(op, type_name, (5, 1 << width(type_name)))
    with pytest.raises(ZeroDivisionError):
        compute(op, type_name, None, (5, 0))


@pytest.mark.parametrize("op", ["mapa", "activemask", "frobnicate"])
def test_what_depends_on_the_place_is_not_computed_here(op: str) -> None:
    with pytest.raises(InternalError):
        compute(op, "u32", None, (0, 0))
