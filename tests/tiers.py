"""Which tests run: all of them, or the quick tier, which is what ``make test`` has time for.

The quick tier leaves out the ``slow`` tests. Of the ``daily`` ones it takes a share, another one each day: a 24th of
a function's cases but at least one, with ``daily(days=4)`` a quarter, with ``daily(least=0)`` none on a day when it is
no case's turn, or one test of each group of a file (``daily(one_of="group")``). So every case runs in as many days in a
row as there are shares. ``--day`` takes the share of another day, as a failure of that day wants it.
"""

from __future__ import annotations

import datetime as dt
import time
import zlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.processes import spent

SHARES = 24
"""Days in which all cases of a daily function run, unless it says another number."""

left_out = pytest.StashKey[int]()
started = pytest.StashKey[float]()


def date(text: str) -> str:
    """The date, as it is written."""
    return dt.date.fromisoformat(text).isoformat()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=("quick", "all"), default="all", help="which tests to run (%(default)s)")
    parser.addoption("--day", type=date, metavar="YYYY-MM-DD", help="whose daily tests the quick tier runs (today's)")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[left_out], config.stash[started] = 0, time.monotonic()
    if config.option.day is None:  # xdist hands the options on: its workers have the same day, at midnight as well
        config.option.day = dt.datetime.now(tz=dt.UTC).date().isoformat()


@pytest.fixture(scope="session")
def all_tests(request: pytest.FixtureRequest) -> bool:
    """Whether this run has time for everything: comparisons with a time limit or a size have the longer one then."""
    return bool(request.config.option.tier == "all")


def of_the_day(items: Sequence[pytest.Item], day: str) -> list[pytest.Item]:
    """The tests that are in the quick tier on a day, in their order."""
    number = dt.date.fromisoformat(day).toordinal()
    chosen: set[pytest.Item] = set()
    groups: defaultdict[tuple[str, str | None, int, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        daily = item.get_closest_marker("daily")
        if item.get_closest_marker("slow") is not None:
            continue
        if daily is None:
            chosen.add(item)
        else:
            days, least = daily.kwargs.get("days", SHARES), daily.kwargs.get("least", 1)
            group = daily.kwargs.get("one_of")
            where = item.nodeid.partition("[" if group is None else "::")[0]
            groups[where, group, days, least].append(item)
    for (where, group, days, least), cases in groups.items():
        shares = len(cases) if group is not None else min(days, len(cases)) if least else days
        first = number if least else number + zlib.crc32(where.encode())  # not all of those that rest on one day
        cases.sort(key=lambda item: (zlib.crc32(item.nodeid.encode()), item.nodeid))  # neighbours resemble each other
        chosen.update(cases[first % shares :: shares])
    return [item for item in items if item in chosen]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.tier != "quick":
        return
    quick = of_the_day(items, config.option.day)
    others = set(items).difference(quick)
    config.stash[left_out] = len(others)
    config.hook.pytest_deselected(items=[item for item in items if item in others])
    items[:] = quick


def pytest_report_header(config: pytest.Config) -> str:
    return f"tier: {_name(config)}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a worker of xdist, the only one that knows
        session.config.workeroutput["left_out"] = session.config.stash[left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[left_out] = getattr(node, "workeroutput", {}).get("left_out", 0)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left = f", {config.stash[left_out]} tests left out" if config.option.tier == "quick" else ""
    wall = time.monotonic() - config.stash[started]
    terminalreporter.write_line(f"tier {_name(config)}{left}: {spent():.0f} s of the processor in {wall:.0f} s")


def _name(config: pytest.Config) -> str:
    return f"quick --day {config.option.day}" if config.option.tier == "quick" else "all"
