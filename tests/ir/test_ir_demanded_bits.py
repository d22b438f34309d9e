"""Which bits of registers decide: what differs in others makes no difference to those, whatever is computed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.ir import ops
from mcheck.ir.alu import wrap
from mcheck.ir.constant_propagation import evaluate_constant, propagate
from mcheck.ir.demanded_bits import ALL, SIGN, demanded_bits
from mcheck.ir.expr import Binary, Const, Expr, Reg
from tests.samples import examples

NAMES = ("a", "b", "c", "d")
TYPES = ("u16", "s16", "u32", "s32", "b32", "u64", "s64")
ONE = ("mov", "neg", "not", "cvt", "abs")
TWO = (
    "add", "sub", "mul.lo", "mul.wide", "mul.hi", "and", "or", "xor", "shl", "shr", "div", "rem", "min", "add.sat",
)  # fmt: skip
BINARY = ("+", "-", "*", "&", "|", "^", "<<", ">>", "%", "/")
SMALL = st.one_of(st.sampled_from((0, 1, 2, 3, 4, 7, 8, 12, 16, 31, 64, -1, -4)), st.integers(-70, 300))

registers = st.sampled_from(NAMES).map(Reg)
operands = st.recursive(
    st.one_of(registers, SMALL.map(Const)),
    lambda inner: st.builds(Binary, st.sampled_from(("+", "&")), inner, inner), max_leaves=3,
)  # fmt: skip


@st.composite
def computations(draw: st.DrawFn) -> ops.Alu:
    kind, target = draw(st.sampled_from(TYPES)), Reg(draw(st.sampled_from(NAMES)))
    name = draw(st.sampled_from((*ONE, *TWO, "mad.lo", "selp", "setp.lt")))
    if name == "mul.wide" and kind[1:] not in ("16", "32"):
        name = "mul.lo"
    if kind[0] == "b" and name not in ("mov", "not", "and", "or", "xor", "shl", "shr", "selp"):
        kind = "u32"
    count = 1 if name in ONE else 3 if name in ("mad.lo", "selp") else 2
    sources = tuple(draw(operands) for _ in range(count))
    return ops.Alu(
        op=name, type=kind, dsts=(target,), srcs=sources,
        src_type=draw(st.sampled_from(TYPES[:4])) if name == "cvt" else None,
    )  # fmt: skip


@st.composite
def questions(draw: st.DrawFn) -> Expr:
    """What an operand asks for."""
    left: Expr = draw(registers)
    for _ in range(draw(st.integers(0, 3))):
        left = Binary(draw(st.sampled_from(BINARY)), left, Const(draw(st.sampled_from((1, 2, 3, 4, 5, 8)))))
    return Binary("&", left, Const(draw(st.integers(1, 15)))) if draw(st.booleans()) else left


@pytest.mark.daily(days=4, least=0)
@examples(400)
@given(st.lists(computations(), max_size=5), questions(), st.data())
def test_other_bits_make_no_difference(code: list[ops.Alu], question: Expr, data: st.DataObject) -> None:
    asked = demanded_bits([*code, ops.Store(address=question, srcs=(), type="u32", sem="weak")], stores=True)
    values = [data.draw(st.tuples(st.sampled_from(TYPES), st.integers(-(2**63), 2**64))) for _ in NAMES]
    one = {name: wrap(kind, number) for name, (kind, number) in zip(NAMES, values, strict=True)}
    other = {}
    for name, (kind, _) in zip(NAMES, values, strict=True):
        noise = wrap(kind, data.draw(st.integers(0, 2**64 - 1)))
        bits = asked.get(name, 0)
        mixed = (one[name] & bits) | (noise & ~bits)
        other[name] = mixed if wrap(kind, mixed) == mixed else one[name]
    assert evaluate_constant(question, one) == evaluate_constant(question, other)
    for op in [*code, *code]:
        propagate(op, one)
        propagate(op, other)
        for name, bits in asked.items():
            if name in one and name in other:
                assert one[name] & bits == other[name] & bits, (op, name)
            else:
                assert bits == 0 or (name in one) == (name in other)
        assert evaluate_constant(question, one) == evaluate_constant(question, other)


C = Reg("c")


@pytest.mark.parametrize(
    ("code", "bits"),
    [
        ([ops.Alu(op="and", type="b32", dsts=(Reg("i"),), srcs=(C, Const(3)))], 3),
        ([ops.Alu(op="rem", type="u32", dsts=(Reg("i"),), srcs=(C, Const(4)))], 3),
        ([ops.Alu(op="rem", type="s32", dsts=(Reg("i"),), srcs=(C, Const(4)))], 3 | 1 << 31),
        ([ops.Alu(op="rem", type="u32", dsts=(Reg("i"),), srcs=(C, Const(3)))], ALL),
        (
            [
                ops.Alu(op="shr", type="u32", dsts=(Reg("q"),), srcs=(C, Const(2))),
                ops.Alu(op="and", type="b32", dsts=(Reg("i"),), srcs=(Reg("q"), Const(1))),
                ops.Alu(op="add", type="u32", dsts=(C,), srcs=(C, Const(1))),
            ],
            0b111,
        ),
    ],
)
def test_what_counters_are_asked_for(code: list[ops.Alu], bits: int) -> None:
    assert (
        demanded_bits([*code, ops.Store(address=Reg("i"), srcs=(), type="u32", sem="weak")], stores=True)["c"] == bits
    )


def test_expressions_are_asked_for_parts_too() -> None:
    wait = ops.Store(address=Binary("+", Const(64), Binary("*", Binary("%", C, Const(4)), Const(8))), srcs=(C,),
                     type="u32", sem="weak")  # fmt: skip
    assert demanded_bits([wait], stores=False)["c"] == 3 | SIGN
    assert demanded_bits([wait], stores=True)["c"] == ALL
