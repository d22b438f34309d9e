"""Time limits: what the user's count, what shares count, and limits within limits."""

from __future__ import annotations

import time
from threading import Thread

import pytest

from mcheck.base.budget import Limit, TimeOut, processor_time, use_clock
from mcheck.base.reasons import Cause, Reason, format_reasons, name_share, share_reason


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def work(seconds: float) -> None:
    """Use the processor for so long."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_a_share_counts_the_time_of_the_processor() -> None:
    clock = Clock()
    with use_clock(clock):
        user = Limit()
        share = user.share(0.05)
    clock.now = 1000.0
    assert not share.is_over()
    work(0.1)
    assert share.is_over()
    assert not user.is_over()


def test_a_share_ends_with_the_limit_that_it_is_a_share_of() -> None:
    clock = Clock()
    with use_clock(clock):
        share = Limit(10.0).share(60.0)
    assert share.left() == pytest.approx(10.0, abs=0.5)
    clock.now = 11.0
    assert share.is_over()
    with pytest.raises(TimeOut):
        share.remaining()


def test_limits_that_start_where_another_applies_end_with_it() -> None:
    clock = Clock()
    with use_clock(clock):
        user = Limit(10.0)
        with user.share(60.0).applies():
            engine, unlimited = Limit(50.0), Limit()
    later = Limit()
    clock.now = 11.0
    assert (engine.is_over(), unlimited.is_over(), later.is_over()) == (True, True, False)


def test_limits_that_start_in_a_share_count_as_it_does() -> None:
    clock = Clock()
    with use_clock(clock), Limit().share(60.0).applies():
        engine = Limit(5.0)
    clock.now = 1000.0
    assert not engine.is_over()


def test_a_limit_does_not_apply_in_other_threads() -> None:
    started: list[Limit] = []
    with Limit(0.0).applies():
        thread = Thread(target=lambda: started.append(Limit()))
        thread.start()
        thread.join()
    assert started[0].left() is None


def test_users_limits_count_the_time_of_the_processor_where_it_is_asked_for() -> None:
    with processor_time():
        limit = Limit(0.05)
    work(0.1)
    assert limit.is_over()


def test_a_share_that_was_over_is_named() -> None:
    late = Reason(Cause.TIME, seconds=3.0, during="on the way")
    other = Reason(Cause.GAP, "a branch"), Reason(Cause.TIME, "another share")
    assert name_share((late, *other), "looking", 20.0) == (share_reason("looking", 20.0), *other)
    assert format_reasons([share_reason("looking", 20.0)]) == "looking takes more than 20 s"
