"""What holds for a worker process: how much memory it may take, and that it does not outlive its parent."""

from __future__ import annotations

import os
from contextlib import suppress

UNITS = {"T": 1 << 40, "G": 1 << 30, "M": 1 << 20}


def format_size(count: int) -> str:
    """A number of bytes in words: ``1 GiB``, ``1.5 GiB``, ``600 MiB``."""
    unit = next((u for u in UNITS if count >= UNITS[u] and count * 10 % UNITS[u] == 0), "M")
    return f"{count / UNITS[unit]:.4g} {unit}iB"


def no_memory(limit: int) -> str:
    """Why there is no answer where the memory was used up."""
    return f"more than {format_size(limit)} of memory"


def limit_memory(limit: int) -> None:
    """From now on this process cannot get more than ``limit`` bytes of memory beyond those it was copied with.

    Mapped files are not counted; the parent looks at what is resident as well.
    """
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    bound = _statm(os.getpid(), _DATA) + limit
    if most != resource.RLIM_INFINITY:
        bound = min(bound, most)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))


def resident_memory(pid: int) -> int:
    """The bytes that process ``pid`` holds in memory; 0 where the system does not tell."""
    return _statm(pid, _RESIDENT)


def _statm(pid: int, field: int) -> int:
    """A count of ``/proc/PID/statm``, in bytes; 0 where there is none."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[field]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def exit_with_pipe(life: int) -> None:
    """This process ends when the other end of the pipe ``life`` does: with its holder, however that one ends.

    The system tells by SIGIO, whose default action is the end, even while the process is inside a solver. Where that is
    not so (outside Linux), a worker ends after its test, when its orders do.
    """
    if not hasattr(os, "O_ASYNC"):
        return
    import fcntl
    import select

    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    watch = select.poll()
    watch.register(life)
    if watch.poll(0):  # it was over before the system was asked to tell
        os._exit(1)


_RESIDENT, _DATA = 1, 5
"""Fields of ``statm``."""
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
