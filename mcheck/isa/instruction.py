"""The syntax of an instruction: opcode with modifiers, operands, guard."""

from __future__ import annotations

from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.ir.expr import Expr
from mcheck.ir.ops import Guard


@dataclass(frozen=True, slots=True)
class Value:
    """A register, a constant expression, a name (its address, or a label) or an immediate. ``negated`` for ``!p``."""

    expr: Expr
    negated: bool = False
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Memory:
    """``[items]``: ``[address]``, ``[map, {c0, c1}]`` or ``[address, bytes]``."""

    items: tuple[Operand, ...]
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b}``."""

    items: tuple[Operand, ...]
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """``p|q``: two destinations."""

    first: Operand
    second: Operand
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Sink:
    """``_``."""

    span: Span | None = field(default=None, compare=False)


Operand = Value | Memory | Vector | Pair | Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """``text`` is the source, ``opcode`` the dotted name split at its dots (``cp.async`` is ``("cp", "async")``).

    ``spans`` has the place of every part of the opcode.
    """

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None = None
    text: str = ""
    span: Span | None = field(default=None, compare=False)
    spans: tuple[Span, ...] = field(default=(), compare=False)
