"""Constructors of checked nodes that simplify on the way: what no execution can change is computed here, once.

Every rule is an equality of sets or relations over any universe of events, where ``_`` is the universe and ``id`` its
identity; ``tests/cat`` checks them against the reference evaluator. The results keep no trace of ``0`` except
where a whole expression is empty.
"""

from __future__ import annotations

from typing import Final

from mcheck.base.errors import Span
from mcheck.cat.ast import Base, Empty, Kind, Node, Op1, Op2

SET: Final = Kind.SET
REL: Final = Kind.REL
NO_SET: Final = Empty(SET)
NO_REL: Final = Empty(REL)
UNIVERSE: Final = Base("_", SET)

# closure operators: applying the second to the first gives …
_CLOSURES: Final = {
    ("+", "+"): "+",
    ("+", "*"): "*",
    ("+", "?"): "*",
    ("*", "+"): "*",
    ("*", "*"): "*",
    ("*", "?"): "*",
    ("?", "+"): "*",
    ("?", "*"): "*",
    ("?", "?"): "?",
}


def is_universe(node: Node) -> bool:
    """``_``, or the full relation ``_ * _``."""
    if isinstance(node, Op2):
        return node.op == "*" and is_universe(node.left) and is_universe(node.right)
    return isinstance(node, Base) and node.name == "_"


def unary(op: str, arg: Node, span: Span | None = None) -> Node:
    """``op`` applied to ``arg``, whose kind is right."""
    if op == "~":
        return _complement(arg, span)
    if op == "[]":
        if isinstance(arg, Empty):
            return NO_REL
        return Base("id", REL, span) if is_universe(arg) else Op1("[]", arg, REL, span)
    if op == "domain" or op == "range":
        return _end(op, arg, span)
    if op == "^-1":
        return _inverse(arg, span)
    if isinstance(arg, Empty):
        return NO_REL if op == "+" else Base("id", REL, span)
    if is_universe(arg):
        return arg
    if is_identity(arg):
        return arg if op == "+" else Base("id", REL, span)
    if isinstance(arg, Op1):
        merged = _CLOSURES.get((arg.op, op))
        if merged is not None:
            return arg if merged == arg.op else Op1(merged, arg.arg, REL, span)
    return Op1(op, arg, REL, span)


def binary(op: str, left: Node, right: Node, span: Span | None = None) -> Node:
    """``left op right``, whose kinds are right."""
    if op == "|":
        return _union(left, right, span)
    if op == "&":
        return _intersection(left, right, span)
    if op == "\\":
        return _difference(left, right, span)
    if op == ";":
        return _composition(left, right, span)
    if isinstance(left, Empty) or isinstance(right, Empty):
        return NO_REL
    return Op2("*", left, right, REL, span)


def is_identity(node: Node) -> bool:
    """A part of ``id``."""
    return (isinstance(node, Op1) and node.op == "[]") or _is_full_identity(node)


def _is_full_identity(node: Node) -> bool:
    return isinstance(node, Base) and node.name == "id"


def _complement(arg: Node, span: Span | None) -> Node:
    if isinstance(arg, Op1) and arg.op == "~":
        return arg.arg
    if isinstance(arg, Empty):
        return UNIVERSE if arg.kind is SET else Op2("*", UNIVERSE, UNIVERSE, REL, span)
    if is_universe(arg):
        return NO_SET if arg.kind is SET else NO_REL
    return Op1("~", arg, arg.kind, span)


def _inverse(arg: Node, span: Span | None) -> Node:
    if isinstance(arg, Empty) or is_identity(arg):
        return arg
    if isinstance(arg, Op1) and arg.op == "^-1":
        return arg.arg
    if isinstance(arg, Op2) and arg.op == "*":
        return Op2("*", arg.right, arg.left, REL, span)
    return Op1("^-1", arg, REL, span)


def _end(op: str, arg: Node, span: Span | None) -> Node:
    if isinstance(arg, Empty):
        return NO_SET
    if _is_full_identity(arg):
        return UNIVERSE
    if isinstance(arg, Op1):
        if arg.op == "[]":
            return arg.arg
        if arg.op == "^-1":
            return _end("range" if op == "domain" else "domain", arg.arg, span)
        if arg.op == "+":
            return _end(op, arg.arg, span)
        if arg.op == "*" or arg.op == "?":
            return UNIVERSE
    return Op1(op, arg, SET, span)


def _union(left: Node, right: Node, span: Span | None) -> Node:
    if isinstance(left, Empty) or is_universe(right):
        return right
    if isinstance(right, Empty) or is_universe(left) or left == right:
        return left
    return Op2("|", left, right, left.kind, span)


def _intersection(left: Node, right: Node, span: Span | None) -> Node:
    if isinstance(left, Empty) or is_universe(right):
        return left
    if isinstance(right, Empty) or is_universe(left) or left == right:
        return right
    return Op2("&", left, right, left.kind, span)


def _difference(left: Node, right: Node, span: Span | None) -> Node:
    if isinstance(left, Empty) or isinstance(right, Empty):
        return left
    if left == right or is_universe(right):
        return NO_SET if left.kind is SET else NO_REL
    if is_universe(left):
        return _complement(right, span)
    return Op2("\\", left, right, left.kind, span)


def _composition(left: Node, right: Node, span: Span | None) -> Node:
    if isinstance(left, Empty) or isinstance(right, Empty):
        return NO_REL
    if _is_full_identity(left):
        return right
    if _is_full_identity(right):
        return left
    if isinstance(left, Op1) and isinstance(right, Op1) and left.op == "[]" and right.op == "[]":
        return unary("[]", _intersection(left.arg, right.arg, span), span)
    return Op2(";", left, right, REL, span)
