"""The tensor memory of a cluster: allocations of columns, and the bytes of rectangles (PTX ISA 9.7.16.1).

An address names a lane in its upper and a column in its lower 16 bits. Columns that are not allocated lie in no object:
an access to them is out of bounds.
"""

from __future__ import annotations

from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.module import Statement
from mcheck.ir.memory import (
    CELL,
    SHARED_BASE,
    SHARED_WINDOW,
    TENSOR_COLUMNS,
    TENSOR_LANES,
    TENSOR_OFFSET,
    TENSOR_ROW,
)
from mcheck.ir.missing_cells import MissingCells, missing_cells
from mcheck.semantics.collectors import Collector, are_overlapping
from mcheck.semantics.tensor_rules import AllocationPermit, Fault, use_of_freed

RESULT_SIZE = 4
"""Bytes of the address that ``alloc`` writes to shared memory."""
COLUMN_BITS = 16
COLUMN = (1 << COLUMN_BITS) - 1
"""The column in an address."""
Range = tuple[int, int]
"""An address and a number of bytes."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """``lanes`` (half-open ranges, counted from the lane of an address) and so many columns from its column on."""

    lanes: tuple[tuple[int, int], ...]
    columns: int

    def within(self, first: int) -> Rectangle:
        """The part of it that is in tensor memory, counted from a lane."""
        most = TENSOR_LANES - first
        return Rectangle(tuple((low, min(high, most)) for low, high in self.lanes if low < most), self.columns)


WHOLE = ((0, TENSOR_LANES),)


@dataclass(frozen=True, slots=True)
class Allocation:
    """``columns`` columns from ``first`` on, allocated by a lane of the cluster with a statement."""

    first: int
    columns: int
    lane: int
    statement: Statement


@dataclass(slots=True)
class TensorMemory:
    """The allocated columns of each CTA."""

    ever_allocated: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    """Columns that have ever been allocated: whether they still are depends on the order of the accesses."""

    allocated: dict[int, list[Allocation]] = field(default_factory=dict)
    permits: dict[int, AllocationPermit] = field(default_factory=dict)
    """By CTA, what it may still allocate."""
    cta_group: Statement | None = None
    """The first instruction with a ``.cta_group``: all others have to name the same (9.7.16.7.1)."""
    collectors: dict[tuple[int, str], Collector] = field(default_factory=dict)
    """By CTA, or by the first CTA of a pair, and by name (9.7.16.10)."""
    result_words: set[int] = field(default_factory=set)
    """Addresses in shared memory to which ``alloc`` has written."""

    def permit(self, cta: int) -> AllocationPermit:
        """What a CTA may still allocate."""
        return self.permits.setdefault(cta, AllocationPermit())

    def allocate(self, cta: int, columns: int, lane: int, statement: Statement) -> int | None:
        """The first column of a new allocation, aligned to its size; ``None`` if there is no room."""
        taken = self.allocated.setdefault(cta, [])
        for first in range(0, TENSOR_COLUMNS - columns + 1, columns):
            if all(first + columns <= a.first or a.first + a.columns <= first for a in taken):
                taken.append(Allocation(first, columns, lane, statement))
                self.ever_allocated.setdefault(cta, set()).add((first, columns))
                self.permit(cta).last_columns = columns
                return first
        return None

    def deallocate(self, cta: int, first: int, columns: int) -> bool:
        """End an allocation; returns whether there was one."""
        taken = self.allocated.get(cta, [])
        kept = [a for a in taken if (a.first, a.columns) != (first, columns)]
        self.allocated[cta] = kept
        return len(kept) < len(taken)

    def use_fault(self, cta: int, column: int, columns: int) -> Fault | None:
        """Why a CTA may not access these columns: they were allocated and are, in part, no longer."""
        held = self.allocated.get(cta, [])
        inside = any(a.first <= column and column + columns <= a.first + a.columns for a in held)
        known = self.ever_allocated.get(cta, ())
        if inside or not any(at <= column and column + columns <= at + size for at, size in known):
            return None
        return use_of_freed(columns, column)

    def live_allocations(self) -> list[Allocation]:
        """The live allocations."""
        return [a for taken in self.allocated.values() for a in taken]

    def holds_results(self, places: Word) -> bool:
        """Whether a load reads the result of an ``alloc``: it needs no proxy fence (open question Q28)."""
        return bool(self.result_words) and self.result_words.issuperset(places.tolist())

    def record_result(self, place: Word) -> None:
        """Record that an ``alloc`` writes its result to a place in shared memory."""
        self.record_stores(place, RESULT_SIZE)
        self.result_words.update(place.tolist())

    def record_stores(self, places: Word, size: int) -> None:
        """Record that any other instruction writes so many bytes of shared memory at each place."""
        for collector in self.collectors.values():
            collector.record_writes(places, size)
        if self.result_words:
            self.result_words = {
                word for word in self.result_words if not are_overlapping(places, size, word, RESULT_SIZE)
            }

    def lane_cells(self, cta: int, lane: int, column: int, columns: int, *, barred: bool = False) -> Range:
        """The cells of one lane; an address that stands for them where they are not allocated, or ``barred``."""
        inside = lane < TENSOR_LANES and any(
            at <= column and column + columns <= at + size for at, size in self.ever_allocated.get(cta, ())
        )
        if barred or not inside:
            return MissingCells(lane, column, barred).address(cta), columns * CELL
        return SHARED_BASE + cta * SHARED_WINDOW + TENSOR_OFFSET + lane * TENSOR_ROW + column * CELL, columns * CELL

    def rectangle_cells(self, cta: int, address: int, rectangle: Rectangle) -> list[Range]:
        """The cells of a rectangle at an address, a range for each lane; where they are not all allocated, only those
        of the first lane that lacks them.
        """
        first, column = address >> COLUMN_BITS, address & COLUMN
        lanes = [first + k for low, high in rectangle.lanes for k in range(low, high)]
        found = [self.lane_cells(cta, lane, column, rectangle.columns) for lane in lanes]
        lacking = next((one for one in found if missing_cells(one[0]) is not None), None)
        return found if lacking is None else [lacking]
