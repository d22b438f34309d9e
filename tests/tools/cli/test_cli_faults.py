"""Faults: what is left behind, and what is said. ``python -m benchmarks.faults`` has every combination."""

from __future__ import annotations

import signal
import sys

import pytest

from benchmarks.faults import REFUSALS, Refusal, interrupted, refused, sound

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full and /proc are Linux's")

STATUSES = {
    "a reader that leaves": (0, 141),
    "closed standard output, with -o": (0,),
    "a file that nobody writes": (3,),
    "no time": (3,),
    "no memory": (3,),
}
"""Where it is not 2, an error; a reader may leave after everything has been written."""


@pytest.mark.daily
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda r: f"{r.fault}, {r.command}")
def test_what_the_system_refuses_is_said_as_such(refusal: Refusal) -> None:
    row = refused(refusal)
    assert sound(row), row
    assert row.status in STATUSES.get(refusal.fault, (2,))


@pytest.mark.daily
@pytest.mark.parametrize("moment", ["reading", "at work"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("name", ["run", "outcomes", "doc"])
def test_a_signal_leaves_nothing_behind(name: str, number: signal.Signals, moment: str) -> None:
    row = interrupted(name, moment, number)
    assert sound(row), row
    # An interpreter that is interrupted inside exec ends itself by the signal, which a shell calls 130 as well.
    assert row.status in ((130, -number) if number == signal.SIGINT else (-number,))
