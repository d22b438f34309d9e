"""wgmma as one operation of its warp (PTX ISA 9.0 section 9.7.15).

The lanes execute it together, so the n-th of one lane is the n-th of every other.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.graph.structure import Structure
from mcheck.graph.terms import Uid

Warp = tuple[int, int]


def warp_of(s: Structure, thread: int) -> Warp:
    """The CTA and the warp of a thread."""
    return s.program.threads[thread].place.own_warp


def completions(s: Structure) -> Iterator[tuple[Uid, Uid]]:
    """Accesses of asynchronous operations with the waits for their groups: the wait of any lane is one for the warp's
    wgmma.
    """
    reads: dict[tuple[Warp, int], list[Uid]] = {}
    for path in s.paths:
        for event in path.events:
            if "WGMMA" in event.tags:
                reads.setdefault((warp_of(s, path.thread), s.turns[event.uid]), []).append(event.uid)
    for path in s.paths:
        seen: set[tuple[Uid, Uid]] = set()
        for memory, wait in path.completes:
            turn = s.turns.get(memory)
            for of_warp in [memory] if turn is None else reads[warp_of(s, path.thread), turn]:
                if (of_warp, wait) not in seen:
                    seen.add((of_warp, wait))
                    yield of_warp, wait
