"""What a worker hands over before its answer: the result so far, which counts if the process has to be stopped."""

from __future__ import annotations

from collections.abc import Callable

_CHANNEL: list[Callable[[object], None]] = []


def open_channel(send: Callable[[object], None]) -> None:
    """Make ``send`` the way to the parent process."""
    _CHANNEL[:] = [send]


def is_open() -> bool:
    """Whether somebody would get a partial result."""
    return bool(_CHANNEL)


def hand_over(result: object) -> None:
    """Send a result with all that is known now; it has a method ``ended_by``."""
    for send in _CHANNEL:
        send(result)
