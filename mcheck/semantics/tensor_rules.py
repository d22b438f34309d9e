"""What the PTX ISA forbids of tensor memory, in the words that sketches and modules share (PTX ISA 9.7.16)."""

from __future__ import annotations

from mcheck.base.phrase import Phrase, Site, say
from mcheck.base.records import dataclass
from mcheck.ir.memory import TENSOR_COLUMNS

MIN_COLUMNS = 32
"""The fewest columns that can be allocated (9.7.16.7.1)."""

Fault = tuple[str, str | Phrase]
"""The code of a finding, and what is wrong."""


@dataclass(slots=True)
class AllocationPermit:
    """What a CTA may still allocate (9.7.16.7.1): ``relinquished`` is the line that gives up the right to."""

    last_columns: int | None = None
    relinquished: int | None = None

    def relinquish(self, line: int | None) -> None:
        """Allocate no more from this line on."""
        if self.relinquished is None:
            self.relinquished = line

    def fault(self, columns: int) -> Fault | None:
        """Why so many columns may not be allocated; ``None`` if they may."""
        if columns < MIN_COLUMNS or columns > TENSOR_COLUMNS or columns & columns - 1:
            allowed = f"a power of two from {MIN_COLUMNS} to {TENSOR_COLUMNS}"
            return "UB602", f"allocates {columns} columns of tensor memory, not {allowed}"
        if self.relinquished is not None:
            return (
                "UB602",
                say("allocates tensor memory after {}, which relinquishes the right to", Site(self.relinquished)),
            )
        if self.last_columns is not None and columns > self.last_columns:
            after = f"after an allocation of {self.last_columns}"
            return "UB602", f"allocates {columns} columns of tensor memory {after}"
        return None


def still_allocated(columns: int) -> Fault:
    """Columns that are not freed when the kernel ends (9.7.16.1.2)."""
    return "UB601", f"ends with {columns} columns of tensor memory still allocated"


def no_allocation(columns: int, first: int | None = None) -> Fault:
    """Columns that are freed, but are not an allocation."""
    place = "" if first is None else f" from column {first} on"
    return "UB603", f"frees {columns} columns of tensor memory{place}, which is not an allocation"


def use_of_freed(columns: int | None = None, first: int = 0) -> Fault:
    """Columns that are accessed, but were freed."""
    if columns is None:
        return "UB604", "accesses tensor memory that has been freed"
    if columns == 1:
        return "UB604", f"accesses column {first} of tensor memory, which has been freed"
    return "UB604", f"accesses {columns} columns of tensor memory from column {first} on, which have been freed"


def other_group(mine: str, first: str, line: int | None) -> Fault:
    """An instruction of another group of CTAs than the first one of the kernel (9.7.16.5)."""
    there = Site(line) if line is not None else "another instruction"
    return "UB605", say("has .{}, but {} has .{}: a kernel uses one of them", mine, there, first)


def no_pair(rank: int) -> Fault:
    """An instruction of a pair in a CTA of this rank, which has no peer."""
    return "UB605", f"is about a pair of CTAs, but the cluster has no CTA of rank {rank ^ 1}"


def missing_peer(what: str) -> Fault:
    """``alloc``, ``dealloc`` or ``relinquish_alloc_permit`` of a pair that the peer CTA does not execute (9.7.16.5)."""
    return "DEAD008", f"waits forever: no warp of the peer CTA comes to a tcgen05.{what} of the pair"


def other_columns(what: str, ours: int | None, theirs: int | None) -> str:
    """Why an operation of a pair is not followed: the CTAs call it for different numbers of columns."""
    return f"the CTAs of the pair call tcgen05.{what} for {theirs} and for {ours} columns"


def wrong_collector(name: str, problem: str) -> Fault:
    """A product that may take another matrix than its own (9.7.16.10)."""
    return "UB606", f"may take its matrix from collector {name}, {problem}"
