"""Reads that could return a write of their own future (load buffering), which no order of the steps shows.

PTX forbids it where the later write depends on the value read (8.10.4, address, data or control). What is left are two
threads that each read a shared word into a register that decides something later, and write another shared word first.
"""

from __future__ import annotations

from mcheck.explore.liveness_of_registers import effects
from mcheck.program import ops
from mcheck.program.program import Program, Thread

REASON = "two threads read shared words and write others before they use what they read (load buffering)"


def may_buffer(program: Program, needed: list[frozenset[str]]) -> bool:
    """Whether at least two threads have such a read."""
    found = 0
    for thread, names in zip(program.threads, needed, strict=True):
        if names and _reads_ahead(thread, names):
            found += 1
            if found > 1:
                return True
    return False


def _reads_ahead(thread: Thread, needed: frozenset[str]) -> bool:
    open_reads: set[str] = set()
    for op in thread.code:
        if isinstance(op, ops.Store | ops.Atomic) and not (isinstance(op, ops.Store) and op.sem == "weak"):
            used = effects(op)[1]
            if open_reads - used:
                return True
        if isinstance(op, ops.Load) and op.sem == "relaxed":
            open_reads |= {r.name for r in op.dsts if r is not None and r.name in needed}
        elif isinstance(op, ops.Branch) or op.guard is not None:
            open_reads -= effects(op)[1]  # what follows depends on it
    return False
