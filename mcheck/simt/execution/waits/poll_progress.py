"""Polls: whether lanes that load a word again and again make progress."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.simt.execution.lanes import Mask

MAX_FAILED_POLLS = 4_000
"""Maximum number of polls without progress of any lane."""
MAX_POLLS_OF_ALL = 256
"""The same where no lane is left that does anything but poll."""
MAX_IDLE_POLLS = 256
"""Maximum number of polls of a lane that bring an unchanged value while other lanes run first."""


@dataclass(slots=True)
class PollProgress:
    """The polls of so many lanes since one of them has made progress."""

    lanes: int
    idle: NDArray[np.int64] = field(init=False)
    """How often in a row each lane has loaded an unchanged value: lanes with other work run first."""
    failed: int = 0
    """The number of polls for a value that is not there yet."""
    _effects: int = 0
    """The number of observable operations when they began."""
    _polling: Mask = field(init=False)
    """The lanes that have polled since then."""
    _last_loads: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By lane and place of a load that others may change, the address and the value that it returned last."""

    def __post_init__(self) -> None:
        self.idle = np.zeros(self.lanes, np.int64)
        self._polling = np.zeros(self.lanes, np.bool_)

    def note_loads(self, lanes: NDArray[np.int64], place: int, address: Word, value: Word) -> None:
        """Record loads of values that other threads may change, which may be polls around barriers, which are
        effects.
        """
        for lane, where, brought in zip(lanes.tolist(), address.tolist(), value.tolist(), strict=True):
            key, now = (lane, place), (where, brought)
            self.idle[lane] = self.idle[lane] + 1 if self._last_loads.get(key) == now else 0
            self._last_loads[key] = now

    def note_failed(self, lanes: NDArray[np.int64], effects: int, runnable: Mask) -> bool:
        """Record polls for a value that is not there yet, after so many observable operations; whether there was no
        other progress for long. ``runnable`` are the lanes that can run.
        """
        if effects != self._effects:
            self.restart(effects)
            self._polling[:] = False
        self.failed += 1
        self._polling[lanes] = True
        others_run = (runnable & ~self._polling).any()
        return self.failed > (MAX_FAILED_POLLS if others_run else MAX_POLLS_OF_ALL)

    def restart(self, effects: int) -> None:
        """Count failed polls from now on."""
        self._effects, self.failed = effects, 0
