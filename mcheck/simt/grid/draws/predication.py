"""Branches around a few weak accesses of global memory as guards of these accesses: of some tiles only a part is there.

Guarded instructions do what they do behind the branch. But a round that omits some of them does the same as one that
does not, and needs no class of its own.
"""

from __future__ import annotations

from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.isa.kinds import BRANCHES, Kind

MAX_BODY = 64
"""The most instructions around which a branch leads."""
NEXT = "%behind_{}"
"""The label behind a branch that leads nowhere else."""


def with_guards(function: ptx.Function) -> ptx.Function:
    """The function with guards in the places of branches around straight code that only computes, and makes weak
    accesses of global memory; what it computes for itself alone needs none. The branches lead to the next instruction.
    All instructions keep their indices.
    """
    body, labels = list(function.body), dict(function.labels)
    for k, statement in enumerate(function.body):
        guard = statement.guard
        skipped = None if guard is None else _skipped(function, k, guard.register)
        if guard is None or not skipped:
            continue
        opposite = replace(guard, negated=not guard.negated)
        own = _own_registers(function, skipped)
        for at in skipped:
            if not (body[at].only_computes and own.issuperset(body[at].defs)):
                body[at] = replace(body[at], guard=opposite)
        labels[NEXT.format(k)] = k + 1
        body[k] = replace(statement, guard=None, operands=(ptx.Label(NEXT.format(k)),))
    return replace(function, body=tuple(body), labels=labels)


def _own_registers(function: ptx.Function, skipped: list[int]) -> set[ptx.Register]:
    """The registers that matter to these instructions alone, each time anew: no other one reads or writes them, and of
    these the first one writes.
    """
    own, read = set[ptx.Register](), set[ptx.Register]()
    for at in skipped:
        read.update(set(function.body[at].uses) - own)
        own.update(function.body[at].defs)
    others = (s for at, s in enumerate(function.body) if at not in skipped)
    return own - read - {r for s in others for r in (*s.uses, *s.defs)}


def _skipped(function: ptx.Function, branch: int, guard: ptx.Register) -> list[int] | None:
    """The instructions around which a branch leads, if all may have its guard, and are reached past it only."""
    target = _target(function, branch)
    if target is None:
        return None
    way, skipped, at = [branch], list[int](), branch + 1
    while at != target:
        if at >= len(function.body) or at in way or len(skipped) > MAX_BODY:
            return None
        statement = function.body[at]
        way.append(at)
        beyond = _target(function, at) if statement.guard is None else None
        if beyond is None and not _may_be_guarded(statement, guard):
            return None
        if beyond is None:
            skipped.append(at)
        at = at + 1 if beyond is None else beyond
    return skipped if all(_only_reached_from(function, k, way) for k in way[1:]) else None


def _target(function: ptx.Function, at: int) -> int | None:
    """Where a branch leads to."""
    statement = function.body[at]
    label = statement.operands[0] if statement.kind is Kind.BRANCH else None
    return function.labels.get(label.name) if isinstance(label, ptx.Label) else None


def _may_be_guarded(statement: ptx.Statement, guard: ptx.Register) -> bool:
    """Whether an instruction without a guard only computes, or makes a weak access of global memory."""
    if statement.guard is not None or guard in statement.defs or statement.kind in BRANCHES:
        return False
    opcode = statement.opcode
    accesses = statement.kind in (Kind.LOAD, Kind.STORE) and opcode.space == "global" and not opcode.is_strong
    return accesses or statement.only_computes


def _only_reached_from(function: ptx.Function, at: int, way: list[int]) -> bool:
    """Whether an instruction is reached from these alone."""
    named = {name for name, place in function.labels.items() if place == at}
    if any(name in targets for targets in function.branch_targets.values() for name in named):
        return False
    if any(_target(function, k) == at for k in range(len(function.body)) if k not in way):
        return False
    before = function.body[at - 1]
    leaves = before.guard is None and before.kind in (Kind.BRANCH, Kind.INDEXED_BRANCH, Kind.EXIT, Kind.RETURN)
    return at - 1 in way or leaves
