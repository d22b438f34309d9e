"""A folder under construction, which is removed if the process ends before it is complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def build_folder(folder: Path) -> Iterator[None]:
    """Create ``folder`` for the body of the context, which completes and renames it; remove it on failure.

    A watcher process starts before the folder exists, so that a killed process never leaves it behind.
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
    """Start a process that waits for the end of this one; return its id and the pipe end that reports success.

    The workers that write to the folder hold that end too, so nobody writes any more when the watcher sees it close.
    """
    place = folder.resolve()
    watched, life = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(life)
            os.setsid()  # signals to the process group must not reach the watcher
            if not os.read(watched, 1):
                shutil.rmtree(place, ignore_errors=True)
        finally:
            os._exit(0)
    os.close(watched)
    return pid, life
