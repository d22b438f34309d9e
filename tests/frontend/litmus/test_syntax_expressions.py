"""Expressions: C's operators and precedence against an evaluation that shares no code with the parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.frontend.litmus.expressions import parse_expression
from mcheck.frontend.litmus.lexer import Tokens, integer
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.source import Source
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary
from tests.samples import examples

# loosest first, as in C
LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
UNARY = ("-", "+", "~", "!")


def parsed(text: str) -> Expr:
    tokens = Tokens(Source(text, "e"), 0, len(text))
    found = parse_expression(tokens, Scope())
    assert tokens.text == "", f"left over: {tokens.text}"
    return found


def operation(op: str, a: int, b: int) -> int:
    if op in ("/", "%"):
        quotient = int(a / b) if abs(a) < 1 << 50 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if op == "/" else a - b * quotient
    if op in ("&&", "||"):
        return int(bool(a) and bool(b)) if op == "&&" else int(bool(a) or bool(b))
    return int(eval(f"({a}) {op} ({b})"))  # Python agrees with C on the rest


def operator(op: str, a: int) -> int:
    return int(not a) if op == "!" else int(eval(f"{op}({a})"))


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> tuple[str, int, int]:
    """A text with the least parentheses that C needs, its value, and the level of its operator."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        value = draw(st.integers(0, 40))
        return (hex(value) if draw(st.booleans()) else str(value)), value, len(LEVELS) + 1
    if draw(st.integers(0, 4)) == 0:
        op = draw(st.sampled_from(UNARY))
        text, value, level = draw(trees(depth - 1))
        inner = f"({text})" if level < len(LEVELS) else text
        return f"{op} {inner}", operator(op, value), len(LEVELS)
    level = draw(st.integers(0, len(LEVELS) - 1))
    op = draw(st.sampled_from(LEVELS[level]))
    left, a, left_level = draw(trees(depth - 1))
    right, b, right_level = draw(trees(depth - 1))
    if op in ("/", "%") and b == 0:
        op = "*"
    if op in ("<<", ">>") and not 0 <= b <= 20:
        op = "+"
        level = LEVELS.index(("+", "-"))
    left = f"({left})" if left_level < level else left
    right = f"({right})" if right_level <= level else right
    return f"{left} {op} {right}", operation(op, a, b), level


@examples(200)
@given(trees())
def test_values(tree: tuple[str, int, int]) -> None:
    text, value, _ = tree
    assert parsed(text) == Const(value)


def test_registers_stay() -> None:
    assert parsed("%rd1 + 4*2") == Binary("+", Reg("rd1"), Const(8))
    assert parsed("r0 - 1 - 2") == Binary("-", Binary("-", Reg("r0"), Const(1)), Const(2))
    assert parsed("!%p1") == Unary("!", Reg("p1"))
    assert parsed("r1%r2") == Binary("%", Reg("r1"), Reg("r2"))
    assert parsed("r1 % %r2") == Binary("%", Reg("r1"), Reg("r2"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("007", 7), ("0x1F", 31), ("0Xff", 255), ("12U", 12), ("0b101", 5), ("0f3F800000", 0x3F800000),
        ("0d3FF0000000000000", 0x3FF0000000000000), ("128B", None), ("0x", None), ("1_000", None), ("0f12", None),
        ("1.5", None), ("0xg", None), ("\u0663", None),
    ],
)  # fmt: skip
def test_numbers(text: str, value: int | None) -> None:
    assert integer(text) == value
