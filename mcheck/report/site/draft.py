"""A folder that is written piece by piece: removed if this process ends before it is whole, however it ends."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def kept_if_whole(folder: Path) -> Iterator[None]:
    """Makes ``folder``. What happens inside completes it and moves it away; if that fails, or is killed, it is removed.

    It is watched before it is there: no moment is left in which a killed process leaves it behind.
    """
    watcher = _watch(folder) if hasattr(os, "fork") else None
    try:
        folder.mkdir(mode=0o700)
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if watcher is not None:
            pid, life = watcher
            os.write(life, b"done")
            os.close(life)
            os.waitpid(pid, 0)


def _watch(folder: Path) -> tuple[int, int]:
    """A process that waits for the end of this one, and the end of a pipe by which it is told that all is well.

    The workers that write to the folder hold that end too, so it is at rest when the watcher sees the pipe end.
    """
    place = folder.resolve()
    watched, life = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(life)
            os.setsid()  # what is sent to the group of this process is not for the one that tidies up
            if not os.read(watched, 1):
                shutil.rmtree(place, ignore_errors=True)
        finally:
            os._exit(0)
    os.close(watched)
    return pid, life
