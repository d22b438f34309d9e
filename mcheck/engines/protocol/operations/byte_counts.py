"""Which expect-tx of a phase announces another number of bytes than the copies complete, as far as counting tells."""

from __future__ import annotations

from collections import Counter

from mcheck.answers.advice.graph import site_of
from mcheck.base.phrase import Site, join, say
from mcheck.engines.protocol.state.sync_objects import Mbarrier, SyncOperation
from mcheck.findings.fix import Change, Fix, Property


def suggest_byte_count(bar: Mbarrier) -> Fix | None:
    """The number of bytes to announce in the current phase, all of whose copies are complete; ``None`` unless one
    operation announces them, and each copy is issued once: otherwise one of another phase may be among them.
    """
    announced = _bytes_by_site(bar, completed=False)
    completed = _bytes_by_site(bar, completed=True)
    counts = Counter(site_of(d.event.op) for d in bar.current_operations if _bytes(d))
    if len(announced) != 1 or not completed or max(counts.values()) > 1:
        return None
    ((at, expected),) = announced.items()
    total = sum(completed.values())
    by_line = sorted(completed.items(), key=lambda one: (one[0].line, one[0].column))
    came = join([say("{} completes {}", site, str(size)) for site, size in by_line], ", ", " and ")
    return Fix((Change(what=Property.BYTES, sites=(at,), new=str(total), old=str(expected)),), why=came)


def _bytes_by_site(bar: Mbarrier, *, completed: bool) -> dict[Site, int]:
    found: dict[Site, int] = {}
    for done in bar.current_operations:
        size = _bytes(done)
        if size and (done.kind == "complete") == completed:
            site = site_of(done.event.op)
            found[site] = found.get(site, 0) + size
    return found


def _bytes(done: SyncOperation) -> int:
    """How many bytes an operation announces or completes."""
    return abs(done.effect[1])
