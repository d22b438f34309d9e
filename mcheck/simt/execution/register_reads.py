"""Where control may go in a function, and which statements read, or write, a register on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcheck.frontend.ptx import module as ptx
from mcheck.isa.kinds import JUMPS, Kind

LEAVING_JUMPS = JUMPS - {Kind.TRAP}


def may_change(function: ptx.Function, register: ptx.Register, since: int, place: int) -> bool:
    """Whether an instruction on a way from one place to another may write a register."""
    return any(
        register in statement.defs or statement.kind in (Kind.INDEXED_BRANCH, Kind.CALL)
        for statement in _on_the_way(function, [since], place)
    )


def reads_only_at(function: ptx.Function, register: ptx.Register, place: int, start: int) -> bool:
    """Whether only the test at ``place`` reads what a register holds after ``start``, before it is overwritten."""
    for statement in _on_the_way(function, [start + 1, place + 1], place, overwritten=register):
        if register in statement.uses:
            return False
        if statement.kind in (Kind.INDEXED_BRANCH, Kind.CALL) and any(
            register in s.uses for k, s in enumerate(function.body) if k != place
        ):
            return False  # its targets and arguments are not analysed
    return True


def is_read_from(function: ptx.Function, register: ptx.Register, place: int) -> bool:
    """Whether something from a place on may read what a register holds there."""
    return any(
        register in statement.uses or statement.kind in (Kind.INDEXED_BRANCH, Kind.CALL)
        for statement in _on_the_way(function, [place], len(function.body), overwritten=register)
    )


def _on_the_way(
    function: ptx.Function, starts: Iterable[int], stop: int, *, overwritten: ptx.Register | None = None
) -> Iterator[ptx.Statement]:
    """The statements on ways from some places up to ``stop``, or to where a register is ``overwritten``, each once."""
    todo, known = [*starts], {stop}
    while todo:
        k = todo.pop()
        if k in known or k >= len(function.body):
            continue
        known.add(k)
        statement = function.body[k]
        yield statement
        if statement.guard is not None or overwritten not in statement.defs:
            todo += places_after(function, k)


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
