"""Passes over checked statements: monotone recursion, size, removal of unused definitions."""

from __future__ import annotations

from mcheck.cat.ast import Base, Check, Let, Node, Op1, Op2, Statement, Var
from mcheck.cat.messages import error


def check_monotone(node: Node, uids: frozenset[int], negative: str | None) -> bool:
    """Does ``node`` use one of ``uids``? An error if it does where growing them shrinks it."""
    if isinstance(node, Var):
        if node.uid not in uids:
            return False
        if negative is not None:
            raise error("CAT024", node.span, what=node.name, where=negative)
        return True
    if isinstance(node, Op1):
        if node.op == "~":
            negative = "~" if negative is None else None
        return check_monotone(node.arg, uids, negative)
    if isinstance(node, Op2):
        left = check_monotone(node.left, uids, negative)
        if node.op == "\\":
            negative = "\\" if negative is None else None
        return check_monotone(node.right, uids, negative) or left
    return False


def uses(node: Node, uids: frozenset[int]) -> bool:
    """Does ``node`` use one of these variables?"""
    if not uids:
        return False
    used: set[int] = set()
    _collect(node, used)
    return not used.isdisjoint(uids)


def size_of(node: Node) -> int:
    """The number of operators of the tree, each shared part counted as often as it occurs."""
    sizes: dict[int, int] = {}

    def size(part: Node) -> int:
        if not isinstance(part, (Op1, Op2)):
            return 0
        known = sizes.get(id(part))
        if known is None:
            known = 1 + (size(part.arg) if isinstance(part, Op1) else size(part.left) + size(part.right))
            sizes[id(part)] = known
        return known

    return size(node)


def without_unused(
    statements: list[Statement], shows: tuple[Var | Base, ...], library: set[int]
) -> tuple[Statement, ...]:
    """The statements without definitions of ``library`` that nothing needs."""
    used = {shown.uid for shown in shows if isinstance(shown, Var)}
    kept: list[Statement] = []
    for statement in reversed(statements):
        if isinstance(statement, Check):
            _collect(statement.body, used)
        else:
            lets = (statement,) if isinstance(statement, Let) else statement.bindings
            if not any(let.var.uid not in library or let.var.uid in used for let in lets):
                continue
            for let in lets:
                _collect(let.body, used)
        kept.append(statement)
    return tuple(reversed(kept))


def _collect(node: Node, used: set[int]) -> None:
    """Adds the variables of ``node``."""
    if isinstance(node, Var):
        used.add(node.uid)
    elif isinstance(node, Op1):
        _collect(node.arg, used)
    elif isinstance(node, Op2):
        _collect(node.left, used)
        _collect(node.right, used)
