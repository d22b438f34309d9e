"""Time limits, and the reason that an engine gives when it stops at one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mcheck.base.errors import Unsupported
from mcheck.base.reasons import Cause, Reason, error_reason, timeout_reason


class TimeOut(Exception):
    """The time limit has expired; the text, if any, says during which work."""


CLOCK: list[Callable[[], float]] = [time.monotonic]
"""The clock that limits use."""


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
def processor_time() -> Iterator[None]:
    """Measure limits that start in this context by processor time, independent of other load of the machine."""
    before, CLOCK[0] = CLOCK[0], _ProcessorClock()
    try:
        yield
    finally:
        CLOCK[0] = before


class Limit:
    """A time limit: a number of seconds from now, or none."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.clock = CLOCK[0]
        self.until = None if seconds is None else self.clock() + seconds

    def check(self) -> None:
        """Raise ``TimeOut`` if the limit has expired."""
        if self.is_over():
            raise TimeOut

    def is_over(self) -> bool:
        """Whether the limit has expired."""
        return self.until is not None and self.clock() > self.until

    def remaining(self) -> float | None:
        """The seconds left, ``None`` without a limit; raises ``TimeOut`` if there are none."""
        self.check()
        return None if self.until is None else self.until - self.clock()

    def part(self, seconds: float) -> Limit:
        """A shorter limit, from now on, within this one."""
        left = self.left()
        return Limit(seconds if left is None else min(seconds, left))

    def left(self) -> float | None:
        """The seconds left, never zero, so that whatever runs next reports that they are too few."""
        return None if self.until is None else max(self.until - self.clock(), 0.001)

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
