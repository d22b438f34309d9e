"""Time limits, and the reason that an engine gives when it stops at one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from mcheck.base.errors import Unsupported
from mcheck.base.reasons import Cause, Reason, error_reason, timeout_reason

LEAST = 0.001
"""The seconds that are left where none are."""


class TimeOut(Exception):
    """The time limit has expired; the text, if any, says during which work."""


_CLOCK: ContextVar[Callable[[], float]] = ContextVar("clock", default=time.monotonic)
"""The clock of limits that start."""


def read_clock() -> float:
    """The seconds of the clock that limits use."""
    return _CLOCK.get()()


class _ProcessorClock:
    """Processor time, read at most every ``STEP`` seconds: that is a system call, and limits are checked often."""

    STEP = 0.01

    def __init__(self) -> None:
        self.known = time.process_time()
        self.until = time.monotonic() + self.STEP

    def __call__(self) -> float:
        now = time.monotonic()
        if now > self.until:
            self.known, self.until = time.process_time(), now + self.STEP
        return self.known


@contextmanager
def use_clock(clock: Callable[[], float]) -> Iterator[None]:
    """Measure limits that start in this context by a clock."""
    before = _CLOCK.set(clock)
    try:
        yield
    finally:
        _CLOCK.reset(before)


def processor_time() -> AbstractContextManager[None]:
    """Measure limits that start in this context by processor time, independent of other load of the machine."""
    return use_clock(_ProcessorClock())


class Limit:
    """A time limit: a number of seconds from now, or none; and the limit that applies where it starts, if there is one.

    The user's limits count the time of the wall, or of the processor (``processor_time``). What is no limit of the
    user's is a share: it counts the time of the processor, so that answers do not depend on the load of the machine.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.clock = _CLOCK.get()
        self.until = None if seconds is None else self.clock() + seconds
        outer = _APPLIES.get()
        self.within: Limit | None = outer if outer is None or outer.until is not None else outer.within

    def check(self) -> None:
        """Raise ``TimeOut`` if the limit has expired."""
        if self.is_over():
            raise TimeOut

    def is_over(self) -> bool:
        """Whether the limit has expired."""
        if self.until is not None and self.clock() >= self.until:
            return True
        return self.within is not None and self.within.is_over()

    def remaining(self) -> float | None:
        """The seconds left, ``None`` without a limit; raises ``TimeOut`` if there are none."""
        self.check()
        return self.left()

    def left(self) -> float | None:
        """The seconds left, never zero, so that whatever runs next reports that they are too few."""
        own = None if self.until is None else max(self.until - self.clock(), LEAST)
        outer = None if self.within is None else self.within.left()
        return min((seconds for seconds in (own, outer) if seconds is not None), default=None)

    def part(self, seconds: float) -> Limit:
        """A shorter limit, from now on, within this one."""
        left = self.left()
        return Limit(seconds if left is None else min(seconds, left))

    def share(self, seconds: float) -> Limit:
        """At most so many seconds of the processor, from now on, within this limit."""
        with self.applies(), processor_time():
            return Limit(seconds)

    @contextmanager
    def applies(self) -> Iterator[None]:
        """Limits that start in this context end with this one, and use its clock."""
        before = _APPLIES.set(self)
        try:
            with use_clock(self.clock):
                yield
        finally:
            _APPLIES.reset(before)

    def attempt(self, work: Callable[[], None]) -> Reason | None:
        """Do the work; returns the reason why it was not finished, ``None`` if it was."""
        try:
            work()
        except TimeOut as over:
            return timeout_reason(self.seconds, str(over))
        except Unsupported as error:
            return error_reason(error)
        except RecursionError:
            return Reason(Cause.NESTING)
        return None


_APPLIES: ContextVar[Limit | None] = ContextVar("limit", default=None)
"""The limit within which others start."""
