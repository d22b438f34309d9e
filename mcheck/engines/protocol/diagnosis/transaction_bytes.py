"""The bytes of an mbarrier's latest phases: which statements announce them, which complete them, what does not fit."""

from __future__ import annotations

from collections import Counter

from mcheck.answers.advice.graph import site_of
from mcheck.base.phrase import Phrase, Site, Sites, join, say
from mcheck.engines.protocol.state.sync_objects import Mbarrier, SyncOperation
from mcheck.findings.fix import Change, Fix, Property


def describe_bytes(bar: Mbarrier) -> Phrase:
    """How many bytes are announced and completed at a time, and where; empty if nothing was announced, or nothing came.
    Statements for as many bytes are told together: a compiler makes several of a loop.
    """
    announced: dict[int, dict[Site, None]] = {}
    completed: dict[int, dict[Site, None]] = {}
    for done in (*bar.previous_operations, *bar.current_operations):
        if size := _bytes(done):
            (completed if _completes(done) else announced).setdefault(size, {})[site_of(done.event.op)] = None
    if not announced or not completed:
        return ()
    told = [
        say("{} bytes are announced at {}", str(size), Sites((*sites,), " and ")) for size, sites in announced.items()
    ]
    told += [say("{} complete at {}", str(size), Sites((*sites,), " and ")) for size, sites in completed.items()]
    return join(told, ", ", " and ")


def suggest_byte_count(bar: Mbarrier) -> Fix | None:
    """The number of bytes to announce in the current phase, all of whose copies are complete; ``None`` unless one
    operation announces them, and each copy is issued once: otherwise one of another phase may be among them.
    """
    announced: Counter[Site] = Counter()
    completed: Counter[Site] = Counter()
    times: Counter[Site] = Counter()
    for done in bar.current_operations:
        if size := _bytes(done):
            site = site_of(done.event.op)
            (completed if _completes(done) else announced)[site] += size
            times[site] += 1
    if len(announced) != 1 or not completed or max(times.values()) > 1:
        return None
    ((at, expected),) = announced.items()
    by_line = sorted(completed.items(), key=lambda one: (one[0].line, one[0].column))
    came = join([say("{} completes {}", site, str(size)) for site, size in by_line], ", ", " and ")
    new = str(sum(completed.values()))
    return Fix((Change(what=Property.BYTES, sites=(at,), new=new, old=str(expected)),), why=came)


def _completes(done: SyncOperation) -> bool:
    return done.kind == "complete"


def _bytes(done: SyncOperation) -> int:
    """How many bytes an operation announces or completes."""
    return abs(done.effect[1])
