"""Limits that start in a test count the time of the processor: what else the machine does must not end them.

A test whose limit is about sleeping, or about what others do, is marked ``wall_clock``. Processes that a test starts,
by ``fork`` too, count the time of the wall, as users do who ask for nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator

import pytest

from mcheck.base import budget


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if item.get_closest_marker("wall_clock") is not None:
        return (yield)
    with budget.processor_time():
        return (yield)


def _forked() -> None:
    """The clock of the parent shows another process's time."""
    budget._CLOCK.set(time.monotonic)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
