"""Resolution of operations for one thread: names and special registers are folded.

One walk over the fields of any operation serves all of them: whatever field may hold an expression is folded, so a new
operation needs nothing here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from mcheck.base.errors import Span
from mcheck.base.records import replace
from mcheck.ir.expr import Binary, Const, Expr, Lanes, Name, Reg, Special, Unary, apply_binary, apply_unary
from mcheck.ir.ops import Op

T = TypeVar("T", bound=Op)
Given = TypeVar("Given")
Fold = Callable[[Expr], Expr]

_EXPR_FIELDS: dict[type, tuple[str, ...]] = {}


def expr_fields(kind: type) -> tuple[str, ...]:
    """The fields of operation class ``kind`` that may hold expressions or further operations."""
    names = _EXPR_FIELDS.get(kind)
    if names is None:
        names = tuple(
            field.name for field in dataclasses.fields(kind) if "Expr" in str(field.type) or str(field.type) == "Op"
        )
        _EXPR_FIELDS[kind] = names
    return names


def resolve(op: T, fold: Fold, span: Span | None = None) -> T:
    """``op`` with every expression replaced by ``fold`` of it, moved to ``span``; ``op`` itself if nothing changes."""
    changes: dict[str, Any] | None = None if span is None else {"span": span}
    for name in expr_fields(type(op)):
        value = getattr(op, name)
        if value is None:
            continue
        new = _map(value, fold)
        if new is not value:
            if changes is None:
                changes = {}
            changes[name] = new
    return op if changes is None else replace(op, **changes)


def _map(value: object, fold: Fold) -> object:
    kind = type(value)
    if kind is Const or kind is str:
        return value
    if kind is Reg or kind is Name or kind is Special or kind is Unary or kind is Binary:
        return fold(value)  # type: ignore[arg-type]
    if isinstance(value, tuple):
        items = tuple([_map(item, fold) for item in value])
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if isinstance(value, Op):
        return resolve(value, fold)
    return value


def expressions(op: Op) -> list[tuple[str, Expr]]:
    """Every expression of ``op`` with the name of its field, those of an awaited operation included."""
    found: list[tuple[str, Expr]] = []
    for name in expr_fields(type(op)):
        _collect(name, getattr(op, name), found)
    return found


def _collect(name: str, value: object, found: list[tuple[str, Expr]]) -> None:
    if isinstance(value, Const | Reg | Name | Special | Unary | Binary | Lanes):
        found.append((name, value))
    elif isinstance(value, tuple):
        for item in value:
            _collect(name, item, found)
    elif isinstance(value, Op):
        found.extend(expressions(value))


def collect_free_names(expr: Expr, names: set[str]) -> None:
    """Add the names in ``expr``, and its special registers with a ``%``, to ``names``."""
    match expr:
        case Name():
            names.add(expr.name)
            for index in expr.indices:
                collect_free_names(index, names)
            if expr.rank is not None:
                collect_free_names(expr.rank, names)
        case Special():
            names.add("%" + expr.name)
        case Unary():
            collect_free_names(expr.operand, names)
        case Binary():
            collect_free_names(expr.left, names)
            collect_free_names(expr.right, names)
        case Const() | Reg() | Lanes():
            pass


def fold_expression(expr: Expr, lookup: Callable[[Name | Special], Expr]) -> Expr:
    """Fold an expression, with the values that ``lookup`` gives to names and special registers."""
    match expr:
        case Const() | Reg() | Lanes():
            return expr
        case Name() | Special():
            return lookup(expr)
        case Unary():
            operand = fold_expression(expr.operand, lookup)
            if isinstance(operand, Const):
                return Const(apply_unary(expr.op, operand.value))
            return Unary(expr.op, operand)
        case Binary():
            left, right = fold_expression(expr.left, lookup), fold_expression(expr.right, lookup)
            if isinstance(left, Const) and isinstance(right, Const):
                return Const(checked_binary(expr.op, left.value, right.value))
            return Binary(expr.op, left, right)


def compile_expression(
    expr: Expr, lookup: Callable[[Name | Special], Callable[[Given], int]]
) -> Callable[[Given], int]:  # fmt: skip
    """An expression as a function of what ``lookup`` reads names and special registers from. It raises ``Undefined``
    where it has no value, and so does this for an expression that depends on registers or lanes.
    """
    match expr:
        case Const(value):
            return lambda _: value
        case Name() | Special():
            return lookup(expr)
        case Unary(op, operand):
            inner = compile_expression(operand, lookup)
            return lambda given: apply_unary(op, inner(given))
        case Binary(op, left, right):
            one, other = compile_expression(left, lookup), compile_expression(right, lookup)
            return lambda given: checked_binary(op, one(given), other(given))
    raise Undefined(f"{expr} depends on more than names")


class Undefined(ArithmeticError):
    """Raised for a constant expression without a value; the message says why."""


MAX_MAGNITUDE = 1 << 128


def checked_binary(operator: str, a: int, b: int) -> int:
    """The value of ``a operator b``; raises ``Undefined`` if there is none or it is absurdly large."""
    if operator in ("/", "%") and b == 0:
        raise Undefined("division by zero")
    if operator in ("<<", ">>") and not 0 <= b <= 128:
        raise Undefined(f"shift by {b}")
    value = apply_binary(operator, a, b)
    if abs(value) >= MAX_MAGNITUDE:
        raise Undefined("overflow")
    return value
