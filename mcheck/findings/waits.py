"""What threads wait for in a deadlock: values that the message and the report make words of."""

from __future__ import annotations

from mcheck.base.phrase import Phrase, Site, Thing, say
from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OfMbarrier:
    """A wait for the phase ``meant`` of an mbarrier, of which a parity is asked; the mbarrier is in phase ``now``."""

    bar: Thing
    parity: int | None
    meant: int | None
    now: int
    pending: int
    expected: int
    announced: int
    received: int

    @property
    def said(self) -> Phrase:
        """The wait in words."""
        which = f"parity {self.parity} (phase {self.meant}) of " if self.parity is not None else ""
        now = f"in phase {self.now} with {self.pending} of {self.expected} arrivals pending"
        bytes_ = f"expected {self.announced} bytes, got {self.received}"
        return say("waits for {}{}, which is {}, {}", which, self.bar, now, bytes_)


@dataclass(frozen=True, slots=True)
class OfBarrier:
    """A wait at a barrier that counts threads."""

    number: str
    arrived: int
    count: int

    @property
    def said(self) -> Phrase:
        """The wait in words."""
        return (f"waits at barrier {self.number}, which has {self.arrived} of {self.count} threads",)


@dataclass(frozen=True, slots=True)
class ForThreads:
    """``what`` is waited for, or where, until ``threads`` come."""

    what: str
    threads: str

    @property
    def said(self) -> Phrase:
        """The wait in words."""
        return (f"{self.what} for {self.threads}",)


@dataclass(frozen=True, slots=True)
class OfWord:
    """A wait for a value of an object; ``why`` it does not come."""

    word: Thing
    value: int | None
    why: Phrase = ()

    @property
    def said(self) -> Phrase:
        """The wait in words."""
        keeps = "whose value is unknown" if self.value is None else f"which keeps the value {self.value}"
        return say("reads {}, {}{}", self.word, keeps, self.why)


@dataclass(frozen=True, slots=True)
class Other:
    """Another wait, in words; ``more`` after a colon."""

    what: str
    more: str = ""

    @property
    def said(self) -> Phrase:
        """The wait in words."""
        return (f"{self.what}: {self.more}" if self.more else self.what,)


Goal = OfMbarrier | OfBarrier | ForThreads | OfWord | Other


@dataclass(frozen=True, slots=True)
class Wait:
    """Threads that wait at a statement for something."""

    threads: str
    site: Site
    goal: Goal
