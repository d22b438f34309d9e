"""Registers that an asynchronous instruction may still be writing: the accumulators of ``wgmma.mma_async`` until a
``wgmma.wait_group`` that covers its group (PTX ISA 9.0 sections 9.7.15.5.2 and 9.7.15.7.3), the results of
``tcgen05.ld`` until a ``tcgen05.wait::ld`` (9.7.16.8).

A move of such a value between registers is not a use: compilers carry accumulators around loops like that. A use counts
only when an instruction that no compiler moves it over comes before the wait: a compiler may move arithmetic over a
wait that has no operands, and Triton's do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.phrase import Phrase, Site, say
from mcheck.base.records import dataclass
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.module import Register, Statement, operand_registers
from mcheck.isa.kinds import (
    BARRIERS,
    COPIES,
    FENCES,
    MBARRIERS,
    PREFETCHED_COPIES,
    REDUCTIONS,
    STORES,
    TMEM,
    WARPGROUP,
    Kind,
)
from mcheck.simt.execution.lanes import Mask

Numbers = NDArray[np.int64]
"""By lane, the number of a group, from 1 on; 0 is none."""

PRODUCERS = {Kind.WGMMA: "wgmma", Kind.TMEM_LOAD: "tcgen05.ld"}
AWAITED = {Kind.WGMMA_WAIT: "wgmma", Kind.TMEM_LOAD_WAIT: "tcgen05.ld"}
WAITS = {"wgmma": "wgmma.wait_group", "tcgen05.ld": "tcgen05.wait::ld"}
"""The instruction that waits for each kind."""
CODES = {"wgmma": "UB701", "tcgen05.ld": "UB702"}
"""The finding where nothing has waited."""
SPILL_SPACES = frozenset(("local", "param"))
"""Spaces of a thread's own memory, where compilers spill values."""
SYNCHRONISING = BARRIERS | MBARRIERS | FENCES | COPIES | PREFETCHED_COPIES | {Kind.EXIT, Kind.TRAP} | WARPGROUP | TMEM
"""Instructions over which no compiler moves a use or a wait."""
STORING = STORES | REDUCTIONS | {Kind.ATOMIC}
"""Over these no compiler moves a ``wgmma.wait_group``, which clobbers memory; a ``tcgen05.wait::ld`` is moved over
stores.
"""
MOVABLE = frozenset((Kind.TMEM_LOAD, Kind.TMEM_STORE, Kind.TMEM_LOAD_WAIT, Kind.TMEM_STORE_WAIT))
"""The ``tcgen05`` instructions that compilers do move."""


def produced_kind(statement: Statement) -> str | None:
    """The kind of asynchronous write that a statement makes to registers, ``None`` if it makes none."""
    return PRODUCERS.get(statement.kind)


def awaited_kind(statement: Statement) -> str | None:
    """The kind of asynchronous write that a statement waits for."""
    return AWAITED.get(statement.kind)


def checked_kinds(statement: Statement) -> frozenset[str]:
    """The kinds whose uses before this statement were too early, unless a wait came first."""
    kind = statement.kind
    if awaited_kind(statement) is not None or kind in MOVABLE:
        return frozenset()
    if kind in SYNCHRONISING:
        return frozenset(WAITS)
    return frozenset(("wgmma",)) if kind in STORING and statement.opcode.space not in SPILL_SPACES else frozenset()


def used_registers(statement: Statement) -> tuple[Register, ...]:
    """The registers whose values a statement uses."""
    spills = statement.kind in STORES and statement.opcode.space in SPILL_SPACES
    if is_move(statement) or statement.kind is Kind.CALL or spills:
        return ()
    if produced_kind(statement) == "wgmma":  # its accumulators are those of the ones before it
        return tuple(r for operand in statement.operands[1:] for r in operand_registers(operand))
    return statement.uses


def is_move(statement: Statement) -> bool:
    """Whether a statement only moves values between registers."""
    return statement.kind is Kind.MOVE


def in_flight_rows(units: Iterable[Unit]) -> frozenset[int]:
    """The rows of the registers that asynchronous writes may target."""
    statements = [(unit, statement) for unit in units for statement in unit.function.body]
    found = {unit.frame + r.index for unit, s in statements if produced_kind(s) for r in s.defs}
    size = -1
    while found and size < len(found):
        size = len(found)
        for unit, s in statements:
            if is_move(s) and any(unit.frame + r.index in found for r in s.uses):
                found |= {unit.frame + r.index for r in s.defs}
    return frozenset(found)


@dataclass(slots=True)
class Use:
    """A statement that has used registers of a producer: by lane, the latest group."""

    statement: Statement
    producer: Statement
    kind: str
    numbers: Numbers


@dataclass(slots=True)
class AsyncWrites:
    """The asynchronous writes in flight, lane by lane."""

    lanes: int
    started_groups: dict[str, Numbers] = field(default_factory=dict)
    """By kind, the number of groups so far."""
    completed_groups: dict[str, Numbers] = field(default_factory=dict)
    """By kind, the latest group that was waited for."""
    pending: dict[int, tuple[str, Statement, Numbers]] = field(default_factory=dict)
    """By row, the kind, the producer and its group."""
    uses: dict[int, Use] = field(default_factory=dict)
    """Uses without a wait so far, by statement."""
    early_uses: dict[int, tuple[Use, int]] = field(default_factory=dict)
    """By producer, the first use that is too early, with a lane."""

    def __post_init__(self) -> None:
        for kind in WAITS:
            self.started_groups[kind], self.completed_groups[kind] = self._none(), self._none()

    def _none(self) -> Numbers:
        return np.zeros(self.lanes, np.int64)

    def record_use(self, mask: Mask, statement: Statement, rows: Iterable[int]) -> None:
        """Record that a statement uses registers."""
        for row in rows:
            found = self.pending.get(row)
            if found is None:
                continue
            kind, producer, numbers = found
            live = mask & (numbers > self.completed_groups[kind])
            if live.any():
                entry = self.uses.setdefault(id(statement), Use(statement, producer, kind, self._none()))
                entry.numbers[live] = np.maximum(entry.numbers[live], numbers[live])

    def start_write(self, mask: Mask, statement: Statement, kind: str, rows: Iterable[int]) -> None:
        """Record that an asynchronous instruction of the open group begins to write registers."""
        for row in rows:
            numbers = self.pending[row][2] if row in self.pending else self._none()
            numbers[mask] = self.started_groups[kind][mask] + 1
            self.pending[row] = kind, statement, numbers

    def move_values(self, mask: Mask, sources: Iterable[int], targets: Iterable[int]) -> None:
        """Record that values, possibly still in flight, move to other registers."""
        found = [self.pending[row] for row in sources if row in self.pending]
        for row in targets:
            if not found and row not in self.pending:
                continue
            kind, producer, _ = found[-1] if found else self.pending[row]
            numbers = self.pending[row][2].copy() if row in self.pending else self._none()
            numbers[mask] = np.maximum.reduce([n for _, _, n in found])[mask] if found else 0
            self.pending[row] = kind, producer, numbers

    def record_write(self, mask: Mask, rows: Iterable[int]) -> None:
        """Record a synchronous write of registers."""
        for row in rows:
            if row in self.pending:
                self.pending[row][2][mask] = 0

    def close_group(self, mask: Mask, kind: str) -> None:
        """Close the open group."""
        self.started_groups[kind][mask] += 1

    def complete_groups(self, mask: Mask, kind: str, but: int) -> None:
        """Complete all groups except the latest ``but``."""
        over = self.completed_groups[kind]
        over[mask] = np.maximum(over[mask], self.started_groups[kind][mask] - but)
        for key, entry in list(self.uses.items()):
            if entry.kind == kind:
                entry.numbers[entry.numbers <= over] = 0
                if not entry.numbers.any():
                    del self.uses[key]

    def check_uses(self, mask: Mask, kinds: Collection[str]) -> None:
        """Keep the first early use of these kinds: the lanes execute something that no compiler moves a use over."""
        for key, entry in list(self.uses.items()):
            late = np.flatnonzero(mask & (entry.numbers > 0) & (entry.kind in kinds))
            if len(late):
                self.early_uses.setdefault(id(entry.producer), (entry, int(late[0])))
                del self.uses[key]

    def early_findings(self) -> Iterator[tuple[Statement, str, Phrase, int]]:
        """The uses that were too early: statement, finding code, text, lane."""
        for entry, lane in self.early_uses.values():
            at, wait = entry.producer.span, WAITS[entry.kind]
            name, site = ".".join(entry.producer.opcode.parts[:2]), Site(at.line, at.column)
            text = say("uses what {} of {} may still be writing: no {} comes between", name, site, wait)
            yield entry.statement, CODES[entry.kind], text, lane
