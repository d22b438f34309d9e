"""Memo keys of statements: ``buf[k % S]`` is the same location in every S-th iteration.

So the resolved forms of a statement are not distinguished by ``k``, but by the values of the largest parts of its
expressions that consist of names and constants only. Equal iterations then share their operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from mcheck.ir.expr import Binary, Const, Expr, Name, Special, Unary
from mcheck.ir.resolve import compile_expression

Values = Mapping[str, Expr]
Reader = Callable[[Values], int | None]
"""The value of a part; raises ``ArithmeticError`` where it has none, and ``KeyError`` for a name that has none."""


def find_readers(exprs: Iterable[Expr], is_object: Callable[[str], bool]) -> tuple[Reader, ...]:
    """The functions whose values distinguish the resolved forms of a statement, apart from its thread."""
    parts = dict.fromkeys(part for expr in exprs for part in _parts(expr, is_object))
    return tuple(_bare(x.name) if isinstance(x, Name) else compile_expression(x, _value_of) for x in parts)


def _parts(expr: Expr, is_object: Callable[[str], bool]) -> Iterator[Expr]:
    match expr:
        case Name():
            yield Name(expr.name)
            for index in expr.indices:
                yield from _parts(index, is_object)
            if expr.rank is not None:
                yield from _parts(expr.rank, is_object)
        case Unary() | Binary() if _of_names(expr, is_object):
            yield expr
        case Unary():
            yield from _parts(expr.operand, is_object)
        case Binary():
            yield from _parts(expr.left, is_object)
            yield from _parts(expr.right, is_object)


def _of_names(expr: Expr, is_object: Callable[[str], bool]) -> bool:
    """Whether an expression consists of constants and names with values only."""
    match expr:
        case Const():
            return True
        case Name():
            return not expr.indices and expr.rank is None and not is_object(expr.name)
        case Unary():
            return _of_names(expr.operand, is_object)
        case Binary():
            return _of_names(expr.left, is_object) and _of_names(expr.right, is_object)
    return False


def _bare(name: str) -> Reader:
    """The value of a bare name, which may be that of an object."""

    def read(values: Values) -> int | None:
        value = values.get(name)
        return value.value if isinstance(value, Const) else None

    return read


def _value_of(name: Name | Special) -> Callable[[Values], int]:
    return lambda values: _number(values[name.name])


def _number(value: Expr) -> int:
    if not isinstance(value, Const):
        raise KeyError(value)
    return value.value
