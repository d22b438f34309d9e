"""A small reader of instructions as the tests write them; the real parser lives in ``mcheck.frontend.litmus``."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from mcheck.base.errors import Span
from mcheck.ir.expr import Binary, Const, Expr, Name, Reg, Special
from mcheck.ir.ops import Guard
from mcheck.isa.instruction import Address, Instruction, Operand, Pair, Sink, Value, Vector

_TOKEN = re.compile(r"\s*(%?[A-Za-z_$][\w$.]*|-?0[xX][0-9a-fA-F]+|-?\d+|[\[\]{}|,!+@])")
_REGISTER = re.compile(r"%\w+|(r|rd|rs|p|ff|fd|rq|ru)\d+|pol")
_SPECIALS = {"laneid", "tid.x", "ctaid.x", "cluster_ctarank", "warpid"}


class _Reader:
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.tokens = [(m[1], m.start(1)) for m in _TOKEN.finditer(text, start)]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        assert token, self.text
        assert wanted is None or token == wanted, (self.text, token, wanted)
        self.at += 1
        return token

    def span(self) -> Span:
        column = self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)
        return Span("test", 1, column + 1, max(1, len(self.peek())))

    def operand(self) -> Operand:
        span = self.span()
        token = self.peek()
        made: Operand
        if token == "[":
            address, *rest = self.items("[", "]")
            made = Address(address, rest=tuple(rest), span=span)
        elif token == "{":
            made = Vector(self.items("{", "}"), span)
        elif token == "_":
            self.take()
            made = Sink(span)
        else:
            negated = token == "!" and bool(self.take())
            made = Value(self.expr(), negated, span)
        if self.peek() == "|":
            self.take()
            return Pair(made, self.operand(), span)
        return made

    def items(self, opening: str, closing: str) -> tuple[Operand, ...]:
        self.take(opening)
        made = []
        while self.peek() != closing:
            made.append(self.operand())
            if self.peek() == ",":
                self.take()
        self.take(closing)
        return tuple(made)

    def expr(self) -> Expr:
        left = self.atom()
        while self.peek() == "+":
            self.take()
            left = Binary("+", left, self.atom())
        return left

    def atom(self) -> Expr:
        token = self.take()
        if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)", token):
            return Const(int(token, 0))
        name = token.removeprefix("%")
        if name in _SPECIALS:
            return Special(name)
        return Reg(name) if _REGISTER.fullmatch(token) else Name(token)


def _read(text: str) -> Instruction:
    """The instruction that ``text`` spells, perhaps guarded, perhaps ended by ``;``."""
    text = text.strip().rstrip(";").rstrip()
    guard = re.match(r"@(!?)%?(\w+)\s+", text)
    start = guard.end() if guard else 0
    opcode = re.compile(r"[\w.:]+").match(text, start)
    assert opcode is not None, text
    parts, spans, column = opcode[0].split("."), [], opcode.start()
    for part in parts:
        spans.append(Span("test", 1, column + 1, max(1, len(part))))
        column += len(part) + 1
    reader = _Reader(text, opcode.end())
    operands: list[Operand] = []
    while reader.peek():
        operands.append(reader.operand())
        if reader.peek():
            reader.take(",")
    return Instruction(
        opcode=tuple(parts),
        operands=tuple(operands),
        guard=Guard(Reg(guard[2]), bool(guard[1])) if guard else None,
        text=text,
        span=Span("test", 1, 1, len(text)),
        spans=tuple(spans),
    )


@pytest.fixture(scope="session")
def read() -> Callable[[str], Instruction]:
    """The reader: text to ``Instruction``."""
    return _read


_TYPES = {"p": "pred", "rs": "b16", "r": "b32", "rd": "b64", "rq": "b128", "ff": "f32", "fd": "f64", "pol": "b64"}


@pytest.fixture(scope="session")
def register_type() -> Callable[[str], str | None]:
    """The types of the registers that the tests name."""
    return lambda name: _TYPES.get(name.rstrip("0123456789"))
