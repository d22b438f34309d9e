"""What work costs: for tests that tell a cost that grows with the length from one that grows with its square.

They are no measurements: a limit is a multiple of what the work takes, and a small part of what the square would.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def effort(work: Callable[[], object], enough: float, tries: int = 3) -> float:
    """The least seconds of the processor in some tries, which end with the first that takes less than ``enough``.

    Only this thread's time counts, without the collector's, which grows with what the tests before have left in memory.
    """
    least, collects = float("inf"), gc.isenabled()
    for _ in range(tries):
        gc.disable()
        started = time.thread_time()
        try:
            work()
        finally:
            least = min(least, time.thread_time() - started)
            if collects:
                gc.enable()
        if least < enough:
            break
    return least
