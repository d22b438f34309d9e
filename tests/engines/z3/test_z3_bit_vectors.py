"""Operations as bit-vectors give what they give on integers."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import z3

from mcheck.engines.z3.bit_vectors import Vectors
from mcheck.engines.z3.clauses import Clauses
from mcheck.ir.alu import bounds, has_value, width
from mcheck.semantics.terms import Term, evaluate

TYPES = ("u16", "s16", "u32", "s32", "u64", "s64")
BINARY = (
    "add",
    "sub",
    "min",
    "max",
    "mul.lo",
    "mul.hi",
    "div",
    "rem",
    "shl",
    "shr",
    "setp.lt",
    "setp.ne",
    "setp.ge.and",
)
UNARY = ("mov", "neg", "abs", "not", "add.sat")


def value_of(term: Term) -> int:
    """What Z3 says that the term is."""
    clauses = Clauses()
    prepared: Any = SimpleNamespace(s=None, choices=[])
    vectors = Vectors(prepared, clauses, [])
    vector = vectors.vector_of(term)
    assert not vectors.guesses
    solver = z3.SolverFor("QF_FD")
    solver.from_string(
        clauses.text(vectors.take_lines())
        + f"\n(declare-const it (_ BitVec {vector.bits}))\n(assert (= it {vector.text}))"
    )
    assert solver.check() == z3.sat
    return int(solver.model().eval(z3.BitVec("it", vector.bits), model_completion=True).as_signed_long())


def interesting(random: Random, type_name: str) -> int:
    """A value of the type, often at an end of its range."""
    least, greatest = bounds(type_name)
    return random.choice((least, greatest, 0, 1, 2, random.randint(least, greatest)))


@pytest.mark.daily
@pytest.mark.parametrize("type_name", TYPES)
def test_instructions(type_name: str) -> None:
    """Local instructions of every integer type, on values at the ends of their ranges and at random ones."""
    random = Random(type_name)
    for op in BINARY + UNARY:
        for _ in range(6):
            count = 3 if op.endswith(".and") else 2 if op in BINARY or op == "add.sat" else 1
            arguments = tuple(interesting(random, type_name) for _ in range(count))
            if op in ("div", "rem") and type_name[0] == "s" and random.random() < 0.5:
                arguments = (bounds(type_name)[0], -1)
            if (op == "add.sat" and type_name != "s32") or not has_value(op, type_name, arguments):
                continue
            term = ("alu", op, type_name, None, arguments, 0)
            assert value_of(term) == evaluate(term, lambda _: 0), term


def test_conversions_and_products() -> None:
    """cvt between all types, saturating or not; wide products and mad."""
    random = Random(1)
    for target in TYPES:
        for source in TYPES:
            for op in ("cvt", "cvt.sat"):
                term = ("alu", op, target, source, (interesting(random, source),), 0)
                assert value_of(term) == evaluate(term, lambda _: 0), term
    for type_name in ("u32", "s32", "u16"):
        for op in ("mul.wide", "mad.lo", "mad.wide"):
            arguments = tuple(interesting(random, type_name) for _ in range(2 if op.startswith("mul") else 3))
            term = ("alu", op, type_name, None, arguments, 0)
            assert value_of(term) == evaluate(term, lambda _: 0), term


def test_expressions() -> None:
    """Operand expressions on unbounded integers, C's division included."""
    random = Random(2)
    for op in ("+", "-", "*", "/", "%", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "<<", ">>"):
        for _ in range(12):
            a, b = random.randint(-(1 << 40), 1 << 40), random.choice((1, 3, 7, 40, random.randint(-9, 9) or 1))
            b = abs(b) if op in ("<<", ">>") else b
            term = ("x", op, a, b)
            assert value_of(term) == evaluate(term, lambda _: 0), term
    for op in ("-", "~", "!", "+"):
        for a in (0, 1, -1, 255, -(1 << 31)):
            assert value_of(("u", op, a)) == evaluate(("u", op, a), lambda _: 0)


@pytest.mark.daily
@pytest.mark.parametrize("type_name", ["u32", "s32", "b64"])
def test_atomics(type_name: str) -> None:
    """What an atomic writes, as raw bits."""
    random = Random(type_name)
    for op in ("add", "min", "max", "and", "or", "xor", "cas"):
        for _ in range(8):
            old = random.choice((0, 1, (1 << width(type_name)) - 1, random.getrandbits(width(type_name))))
            operands = (
                (random.choice((old, 1, 3)), random.getrandbits(8)) if op == "cas" else (random.choice((0, 1, old, 5)),)
            )
            if op in ("min", "max") and type_name == "b64":
                continue
            term = ("rmw", op, type_name, old, operands)
            assert value_of(term) == evaluate(term, lambda _: 0), term
