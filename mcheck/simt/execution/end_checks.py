"""Instrumentation of steps for the checks at the end: aligned instructions, and registers that are still being
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.module import Immediate, Register, Statement
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.async_registers import awaited_kind, checked_kinds, is_move, produced_kind, used_registers
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.warp_convergence import is_aligned

Note = Callable[[Cluster, Mask], None]
"""Records what the lanes that execute a statement do."""


def with_end_checks(made: Step, unit: Unit, statement: Statement, at: int, flying: frozenset[int]) -> Step:
    """Instrument a step for the checks at the end; ``flying`` are the rows of ``in_flight_rows``."""
    notes = list(_notes(unit, statement, flying)) if flying else []
    if is_aligned(statement):
        notes.append(lambda c, mask: c.convergence.record(mask, at, statement))
    if not notes:
        return made

    def run(c: Cluster, mask: Mask) -> Mask | None:
        for note in notes:
            note(c, mask)
        return made(c, mask)

    return run


def _notes(unit: Unit, statement: Statement, flying: frozenset[int]) -> list[Note]:
    """The notes about registers: uses first, then whether they were too early, then writes."""

    def rows(registers: Iterable[Register]) -> list[int]:
        return [row for r in registers if (row := unit.frame + r.index) in flying]

    out: list[Note] = []
    sources, targets = rows(used_registers(statement)), rows(statement.defs)
    kind, over, kinds = produced_kind(statement), awaited_kind(statement), checked_kinds(statement)
    if sources:
        out.append(lambda c, mask: c.async_writes.record_use(mask, statement, sources))
    if kinds:
        out.append(lambda c, mask: c.async_writes.check_uses(mask, kinds))
    if kind is not None:
        out.append(lambda c, mask: c.async_writes.start_write(mask, statement, kind, targets))
        if kind == "tcgen05.ld":  # each is waited for by itself
            out.append(lambda c, mask: c.async_writes.close_group(mask, kind))
    elif is_move(statement):
        moved = rows(statement.uses)
        if targets:
            out.append(lambda c, mask: c.async_writes.move_values(mask, moved, targets))
    elif targets:
        out.append(lambda c, mask: c.async_writes.record_write(mask, targets))
    if statement.kind is Kind.WGMMA_COMMIT:
        out.append(lambda c, mask: c.async_writes.close_group(mask, "wgmma"))
    if over is not None:
        last = statement.operands[-1] if statement.operands else None
        but = last.value if isinstance(last, Immediate) else 0
        out.append(lambda c, mask: c.async_writes.complete_groups(mask, over, but))
    return out
