"""The bytes of an mbarrier's latest phases: which statements announce them, and which complete them."""

from __future__ import annotations

from mcheck.answers.advice.graph import site_of
from mcheck.base.phrase import Phrase, Site, join, say
from mcheck.engines.protocol.state.sync_objects import Mbarrier


def describe_bytes(bar: Mbarrier) -> Phrase:
    """What each statement announces or completes at a time; empty if nothing was announced, or nothing came."""
    announced: dict[Site, int] = {}
    completed: dict[Site, int] = {}
    for done in (*bar.previous_operations, *bar.current_operations):
        bytes_ = done.effect[1]
        if bytes_:
            (announced if bytes_ > 0 else completed)[site_of(done.event.op)] = abs(bytes_)
    if not announced or not completed:
        return ()
    told = [say("{} announces {} bytes", site, str(size)) for site, size in announced.items()]
    told += [say("{} completes {}", site, str(size)) for site, size in completed.items()]
    return join(told, ", ", " and ")
