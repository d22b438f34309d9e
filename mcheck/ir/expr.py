"""Expressions over registers, constants and addresses, in operands and conditions.

An expression is parsed with names in it (``Name``, ``Special``); when a role is instantiated for
one thread these are folded away and only ``Const``, ``Reg``, ``Unary`` and ``Binary`` remain.
Arithmetic is C's on unbounded integers; an instruction wraps to its own width.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Const:
    """An integer; an address is an integer too (see ``mcheck.ir.memory``)."""

    value: int


@dataclass(frozen=True, slots=True)
class Reg:
    """A register, by its name without ``%`` (``r0``, ``p1``, ``rd2``)."""

    name: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as ``laneid``, ``tid.x``, ``cluster_ctarank`` (without ``%``)."""

    name: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """``name[i][j]@rank``: a constant, a loop variable, or the address of (a part of) an object."""

    name: str
    indices: tuple[Expr, ...] = ()
    rank: Expr | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """``op`` is one of ``- ~ ! +``."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary:
    """``op`` is one of ``+ - * / % << >> & | ^ == != < <= > >= && ||``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Lanes:
    """A constant with a value per lane of a warp: ``values`` has 32."""

    values: tuple[int, ...]


Expr = Const | Reg | Special | Name | Unary | Binary | Lanes


def apply_unary(op: str, a: int) -> int:
    """The value of ``op a``; raises ``KeyError`` for an unknown operator."""
    match op:
        case "-":
            return -a
        case "+":
            return a
        case "~":
            return ~a
        case "!":
            return int(not a)
    raise KeyError(op)


def _quotient(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a >= 0) == (b >= 0) else -q


BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "||": lambda a, b: int(bool(a) or bool(b)),
}


def apply_binary(op: str, a: int, b: int) -> int:
    """The value of ``a op b``, division and remainder truncating as C's do; may raise ``ZeroDivisionError``, and
    ``KeyError`` for an unknown operator.
    """
    return BINARY[op](a, b)
