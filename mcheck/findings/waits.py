"""What threads wait for in a deadlock: values that the message and the report make words of."""

from __future__ import annotations

from mcheck.base.records import dataclass
from mcheck.findings.phrase import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class OfMbarrier:
    """A wait for the phase ``meant`` of an mbarrier, of which a parity is asked; the mbarrier is in phase ``now``."""

    label: str
    parity: int | None
    meant: int | None
    now: int
    pending: int
    expected: int
    announced: int
    received: int

    def __str__(self) -> str:
        which = f"parity {self.parity} (phase {self.meant}) of " if self.parity is not None else ""
        return (
            f"waits for {which}{self.label}, which is in phase {self.now} with {self.pending} of {self.expected} "
            f"arrivals pending, expected {self.announced} bytes, got {self.received}"
        )


@dataclass(frozen=True, slots=True)
class OfBarrier:
    """A wait at a barrier that counts threads."""

    number: str
    arrived: int
    count: int

    def __str__(self) -> str:
        return f"waits at barrier {self.number}, which has {self.arrived} of {self.count} threads"


@dataclass(frozen=True, slots=True)
class ForThreads:
    """``what`` is waited for, or where, until ``threads`` come."""

    what: str
    threads: str

    def __str__(self) -> str:
        return f"{self.what} for {self.threads}"


@dataclass(frozen=True, slots=True)
class OfWord:
    """A wait for a value of an object; ``why`` it does not come."""

    label: str
    value: int | None
    why: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"reads {self.label}, whose value is unknown"
        return f"reads {self.label}, which keeps the value {self.value}{self.why}"


@dataclass(frozen=True, slots=True)
class Other:
    """Another wait, in words; ``more`` after a colon."""

    what: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.more}" if self.more else self.what


Goal = OfMbarrier | OfBarrier | ForThreads | OfWord | Other


@dataclass(frozen=True, slots=True)
class Wait:
    """Threads that wait at a statement for something."""

    threads: str
    site: Site
    goal: Goal
