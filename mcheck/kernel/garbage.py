"""Cyclic garbage is looked for seldom while an execution grows.

Nearly everything that is made stays until the execution is over. Looking through it every few hundred objects, as
Python does otherwise, takes up to a fifth of the time and finds nothing. What was there before, the program above all,
is not looked through at all.

What an execution leaves behind Python would hardly ever look through either: what was set aside comes back as old, and
old objects are looked at only once a quarter as many have grown old since. So it is collected here, before the next
execution, where there is twice as much as after the last time.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

OBJECTS = 400_000
"""So many objects more than before, and it is time to look."""
OF_PYTHON = 1_000
"""So many objects an interpreter may have set aside itself when it began, as Python 3.12 does."""
BLOCKS = 1_000_000
"""So many blocks of memory, some 100 MB, may always be left behind."""


@dataclass(slots=True)
class Heap:
    """``kept``: the blocks of memory that were in use before the first execution, or after what had been left behind
    was collected last.
    """

    kept: int = 0

    def collect(self) -> None:
        """Collects what earlier executions left behind, if it is much."""
        blocks = sys.getallocatedblocks()
        if not self.kept:
            self.kept = blocks
        elif blocks > 2 * self.kept + BLOCKS:
            gc.collect()
            self.kept = sys.getallocatedblocks()


HEAP = Heap()
"""That of this process."""


@contextmanager
def seldom() -> Iterator[None]:
    """Collects no more often than that in here, and as before afterwards; where nothing is collected, that stays so.

    What somebody else has set aside stays aside.
    """
    before = gc.get_threshold()
    if 0 < before[0] < OBJECTS:
        gc.set_threshold(OBJECTS, *before[1:])
    aside = before[0] > 0 and gc.get_freeze_count() <= OF_PYTHON
    if aside:
        HEAP.collect()
        gc.freeze()
    try:
        yield
    finally:
        if aside:
            gc.freeze()  # all is old at once: Python would look through what has just been left behind, and free it
            gc.unfreeze()
        gc.set_threshold(*before)
