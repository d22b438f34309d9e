"""Failed attempts: reads of loop iterations, or of tries of a wait, that are not the last.

In the last iteration a read may be ordered after a write, by what it observes or by what earlier iterations have
observed, and in the first one not. That is a race if the two are not morally strong (PTX ISA 8.7), which takes a write
of another thread, or of an asynchronous operation, to the same bytes: if no path has one, failed attempts need not be
explored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.cat.tags import PROXY_TAG, Tag
from mcheck.events.event import Event, Path
from mcheck.ir.memory import MBARRIER_BYTES
from mcheck.ir.program import Program
from mcheck.ir.scopes import scope_instance

PROXIES = frozenset(PROXY_TAG.values())


@dataclass(frozen=True, slots=True)
class Access:
    """The properties of an access that decide whether it conflicts and is morally strong with another one.

    ``scope`` is ``None`` of a weak access; ``apart`` says that it is not in program order.
    """

    thread: int
    address: int
    size: int
    virtual: int
    scope: str | None
    proxies: frozenset[Tag]
    apart: bool


@dataclass(slots=True)
class FailedAttempts:
    """The writes of all paths found so far, and whether a failed attempt can race with them."""

    program: Program
    writes: dict[Access, None] = field(default_factory=dict)
    asked: dict[Access, bool] = field(default_factory=dict)
    """The reads asked for, and whether they may race as far as the writes are known."""

    def can_race(self, events: Sequence[Event]) -> bool:
        """Whether a failed attempt may have an error that the last one has not: a read that may race, or a test of an
        mbarrier that may not exist yet. If it has only one test, the last one may come as early.
        """
        reads = [e for e in events if Tag.R in e.tags]
        looks = [e for e in events if Tag.WAIT in e.tags]
        return (len(reads) + len(looks) > 1 and bool(looks)) or any(map(self._may_race, reads))

    def grow(self, found: Iterable[Iterable[Path]]) -> bool:
        """Adds what the paths write; whether the paths must be found again."""
        if not self.asked:
            return False
        for paths in found:
            for path in paths:
                for event in path.events:
                    if Tag.W in event.tags:
                        self.writes[_access(event)] = None
                    elif event.mbarrier is not None and event.mbarrier.kind == "init":  # nobody may touch its bytes
                        address, thread = event.mbarrier.address, event.uid[0]
                        made = Access(thread, address, MBARRIER_BYTES, address, None, event.tags & PROXIES, apart=False)
                        self.writes[made] = None
        before = self.asked
        self.asked = {read: self._races(read) for read in before}
        return before != self.asked

    def _may_race(self, event: Event) -> bool:
        read = _access(event)
        known = self.asked.get(read)
        if known is None:
            known = self.asked[read] = self._races(read)
        return known

    def _races(self, read: Access) -> bool:
        return any(
            (write.thread != read.thread or write.apart)
            and write.address < read.address + read.size
            and read.address < write.address + write.size
            and not self._morally_strong(read, write)
            for write in self.writes
        )

    def _morally_strong(self, a: Access, b: Access) -> bool:
        """Whether two accesses of different threads to common bytes are morally strong."""
        if a.scope is None or b.scope is None or a.proxies != b.proxies:
            return False
        one, other = (self.program.threads[x.thread].place.cta for x in (a, b))
        seen = all(scope_instance(one, scope) == scope_instance(other, scope) for scope in (a.scope, b.scope))
        return seen and (a.address, a.size, a.virtual) == (b.address, b.size, b.virtual)


def _access(event: Event) -> Access:
    scope = None if Tag.WEAK in event.tags else event.scope
    proxies, apart = event.tags & PROXIES, event.order is None
    return Access(event.uid[0], event.address, event.size, event.virtual, scope, proxies, apart)
