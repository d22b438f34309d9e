"""Conditions as lists, for a machine that has no mcheck: written by the planner, evaluated by the runner."""

from __future__ import annotations

import operator
from typing import Any

from mcheck.ir import condition as c

_OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def encode(formula: c.Formula) -> Any:
    """The formula as lists, terms by their labels."""
    match formula:
        case c.Truth(value):
            return value
        case c.Not(part):
            return ["not", encode(part)]
        case c.And(parts):
            return ["and", *map(encode, parts)]
        case c.Or(parts):
            return ["or", *map(encode, parts)]
        case c.Compare(op, left, right):
            return [op, _term(left), _term(right)]
    raise TypeError(formula)


def _term(term: c.Term) -> str | int:
    return term.value if isinstance(term, c.ConstTerm) else term.label


def holds(formula: Any, state: dict[str, int], sizes: dict[str, int]) -> bool:
    """Whether a state satisfies the formula; constants are taken modulo the size of what they are compared with."""
    if isinstance(formula, bool):
        return formula
    head, *rest = formula
    if head == "not":
        return not holds(rest[0], state, sizes)
    if head == "and":
        return all(holds(part, state, sizes) for part in rest)
    if head == "or":
        return any(holds(part, state, sizes) for part in rest)
    bits = 8 * max(sizes.get(str(t), 0) for t in rest) or 64
    left, right = ((state[t] if isinstance(t, str) else t) % (1 << bits) for t in rest)
    return bool(_OPERATORS[head](left, right))
