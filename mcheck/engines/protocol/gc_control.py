"""Cyclic garbage is looked for seldom while an execution grows.

Nearly everything that is made stays until the execution is over. Looking through it every few hundred objects, as
Python does otherwise, takes up to a fifth of the time and finds nothing. What was there before, the program above all,
is not looked through at all. An execution has no cycles, so that what it leaves behind is gone with it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECTION_THRESHOLD = 400_000
"""So many objects more than before, and it is time to look."""
FROZEN_BY_PYTHON = 1_000
"""So many objects an interpreter may have set aside itself when it began, as Python 3.12 does."""


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Collects no more often than that in here, and as before afterwards; where nothing is collected, that stays so.

    What somebody else has set aside stays aside.
    """
    before = gc.get_threshold()
    if 0 < before[0] < COLLECTION_THRESHOLD:
        gc.set_threshold(COLLECTION_THRESHOLD, *before[1:])
    aside = before[0] > 0 and gc.get_freeze_count() <= FROZEN_BY_PYTHON
    if aside:
        gc.freeze()
    try:
        yield
    finally:
        if aside:
            gc.freeze()  # what is new counts as old, and is not looked through right away
            gc.unfreeze()
        gc.set_threshold(*before)
