"""Limits of a worker process: its memory, and its life, which ends with its parent's."""

from __future__ import annotations

import os
from contextlib import suppress

UNITS = {"T": 1 << 40, "G": 1 << 30, "M": 1 << 20}


def format_size(count: int) -> str:
    """A number of bytes as text: ``1 GiB``, ``1.5 GiB``, ``600 MiB``."""
    unit = next((u for u in UNITS if count >= UNITS[u] and count * 10 % UNITS[u] == 0), "M")
    return f"{count / UNITS[unit]:.4g} {unit}iB"


def no_memory(limit: int) -> str:
    """The message for an answer that the memory limit prevented."""
    return f"more than {format_size(limit)} of memory"


def limit_memory(limit: int) -> None:
    """Limits this process to ``limit`` bytes of memory beyond those it was forked with.

    Mapped files are not counted; the parent checks the resident memory as well.
    """
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    bound = _statm(os.getpid(), _DATA) + limit
    if most != resource.RLIM_INFINITY:
        bound = min(bound, most)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))


def resident_memory(pid: int) -> int:
    """The bytes that process ``pid`` holds in memory; 0 if the system does not say."""
    return _statm(pid, _RESIDENT)


def processor_seconds(pid: int) -> float:
    """The seconds of the processor that process ``pid`` has used; 0 if the system does not say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[_USER]) + int(fields[_USER + 1])) / _TICKS
    except (OSError, IndexError, ValueError):
        return 0.0


def _statm(pid: int, field: int) -> int:
    """A field of ``/proc/PID/statm``, in bytes; 0 if there is none."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[field]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def exit_with_pipe(life: int) -> None:
    """Makes this process end when the other end of the pipe ``life`` is closed: with its holder, however that ends.

    The system signals SIGIO, whose default action ends the process even inside a solver. Elsewhere than on Linux, a
    worker ends after its test, when its input does.
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
_USER = 11
"""The field of ``stat`` with the time in user mode, counted from the state; that in the system follows."""
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
