"""How far the work on an answer has come, for a text that says so if a time limit stops it.

Each level is a part of the one before: noting one forgets what was noted of its parts. Who runs the work in a process
of its own can have the notes sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum


class Level(IntEnum):
    """What a note is about, from the whole to its parts."""

    LAUNCH = 0
    NUMBER = 1
    """The value of a parameter that is any number."""
    CLUSTERS = 2
    LOOP = 3
    EXECUTIONS = 4


EVERY = 0.2
"""Seconds between two notes that are sent."""


class _Progress:
    def __init__(self) -> None:
        self.known: dict[Level, str] = {}
        self.send: Callable[[str], None] | None = None
        self.next = 0.0


_STATE = _Progress()


def begin() -> None:
    """Forget the notes about earlier work."""
    _STATE.known.clear()


def send_notes(send: Callable[[str], None] | None) -> None:
    """Send the notes of this process as text, now and then; with ``None`` no more."""
    _STATE.send = send


def pass_on(text: str) -> None:
    """Send what another process has noted, as a note of this one."""
    if _STATE.send is not None:
        _STATE.send(text)


def note(level: Level, text: str) -> None:
    """Note how far a level has come."""
    for part in [known for known in _STATE.known if known > level]:
        del _STATE.known[part]
    _STATE.known[level] = text
    if _STATE.send is not None and time.monotonic() >= _STATE.next:
        _STATE.next = time.monotonic() + EVERY
        _STATE.send(describe())


def describe() -> str:
    """The notes as text, the whole first; empty without notes."""
    return ", ".join(text for _, text in sorted(_STATE.known.items()) if text)
