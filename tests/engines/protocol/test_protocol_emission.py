"""What it costs to make an event does not grow with the events that the thread has made before."""

from __future__ import annotations

from cProfile import Profile

from mcheck.cat import load_model
from mcheck.engines.protocol.exploration import Search
from mcheck.events.event import Event, ends_pending_waits
from mcheck.frontend.litmus import parse
from tests.engines.protocol.sketches import ring


def test_no_event_is_looked_at_again_when_later_ones_are_made() -> None:
    search = Search(parse(ring(32), "ring.litmus"), load_model("ptx-9.0"), "ptx", 2)
    profile = Profile(builtins=False)
    profile.runcall(search.run)
    calls = {entry.code: entry.callcount for entry in profile.getstats()}
    assert calls[ends_pending_waits.__code__] <= calls[Event.__init__.__code__]
