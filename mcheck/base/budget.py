"""The time given to an answer, and how an engine that has none says why."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mcheck.base.errors import Unsupported
from mcheck.base.reasons import Cause, Reason, reason_for_error, timeout_reason


class TimeOut(Exception):
    """The time given is over; with a text, in the middle of what."""


CLOCK: list[Callable[[], float]] = [time.monotonic]
"""What limits are measured by."""


class _ProcessorClock:
    """Seconds of the processor, looked up every ``STEP`` seconds: that is a call of the system, and checks are many."""

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
    """Limits that begin in here are of the processor's time, which does not depend on what else the machine does."""
    before, CLOCK[0] = CLOCK[0], _ProcessorClock()
    try:
        yield
    finally:
        CLOCK[0] = before


class Limit:
    """A number of seconds from now on, or no limit."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.clock = CLOCK[0]
        self.until = None if seconds is None else self.clock() + seconds

    def check(self) -> None:
        """Raises ``TimeOut`` when the time is up."""
        if self.over():
            raise TimeOut

    def over(self) -> bool:
        """Whether the time is up."""
        return self.until is not None and self.clock() > self.until

    def remaining(self) -> float | None:
        """The seconds that are left, ``None`` if there is no limit; raises ``TimeOut`` when there are none."""
        self.check()
        return None if self.until is None else self.until - self.clock()

    def part(self, seconds: float) -> Limit:
        """A limit from now on within this one."""
        left = self.left()
        return Limit(seconds if left is None else min(seconds, left))

    def left(self) -> float | None:
        """The seconds that are left, never none, so that whoever goes on says that there is too little."""
        return None if self.until is None else max(self.until - self.clock(), 0.001)

    def attempt(self, work: Callable[[], None]) -> Reason | None:
        """Does the work; why it was not finished, if it was not."""
        try:
            work()
        except TimeOut as over:
            return timeout_reason(self.seconds, str(over))
        except Unsupported as error:
            return reason_for_error(error)
        except RecursionError:
            return Reason(Cause.NESTING)
        return None
