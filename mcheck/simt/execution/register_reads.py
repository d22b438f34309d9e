"""Where control may go in a function, and which statements read, or write, a register on the way."""

from __future__ import annotations

from mcheck.frontend.ptx import module as ptx
from mcheck.isa.kinds import JUMPS, Kind

LEAVING_JUMPS = JUMPS - {Kind.TRAP}


def may_change(function: ptx.Function, register: ptx.Register, since: int, place: int) -> bool:
    """Whether an instruction on a way from one place to another may write a register."""
    todo, known = [since], {place}
    while todo:
        k = todo.pop()
        if k in known or k >= len(function.body):
            continue
        known.add(k)
        statement = function.body[k]
        if register in statement.defs or statement.kind in (Kind.INDEXED_BRANCH, Kind.CALL):
            return True
        todo += places_after(function, k)
    return False


def places_after(function: ptx.Function, k: int) -> list[int]:
    """The places that may come after ``k``, which is no indexed branch."""
    statement = function.body[k]
    places = []
    if statement.kind is Kind.BRANCH:
        label = statement.operands[0]
        assert isinstance(label, ptx.Label)
        places.append(function.labels[label.name])
    if statement.guard is not None or statement.kind not in LEAVING_JUMPS:
        places.append(k + 1)
    return places


def reads_only_at(function: ptx.Function, register: ptx.Register, place: int, start: int) -> bool:
    """Whether only the test at ``place`` reads what a register holds after ``start``, before it is overwritten."""
    todo, known = [start + 1, place + 1], {place}
    while todo:
        k = todo.pop()
        if k in known or k >= len(function.body):
            continue
        known.add(k)
        statement = function.body[k]
        if register in statement.uses:
            return False
        if statement.kind in (Kind.INDEXED_BRANCH, Kind.CALL) and any(
            register in s.uses for j, s in enumerate(function.body) if j != place
        ):
            return False  # its targets and arguments are not analysed
        if statement.guard is not None or register not in statement.defs:
            todo += places_after(function, k)
    return True
