"""What processes take: this one so far, and a command in a process of its own, with its output."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SCALE = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that has ended: its standard output, its exit status, whether it was ``stopped`` at its limit.

    ``processor`` are the seconds of this command and of the processes that it waited for, whatever else runs; ``wall``
    those by the clock; ``memory`` the bytes that the largest of these processes had at once.
    """

    output: str
    status: int
    stopped: bool
    processor: float
    wall: float
    memory: int


def run_process(
    command: Sequence[str | Path],
    limit: float | None = None,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    errors: int | None = subprocess.DEVNULL,
    check: bool = False,
) -> Finished:
    """Runs a command, and stops it with all that it has started after ``limit`` seconds by the clock.

    ``errors`` is where its standard error goes, as ``subprocess`` has it.

    Raises:
        subprocess.CalledProcessError: ``check``, and the command fails.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=output, stderr=errors, cwd=folder, env=environment, start_new_session=True
        )
        late = threading.Event()

        def stop() -> None:
            late.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(limit, stop) if limit is not None else None
        if timer is not None:
            timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        if timer is not None:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read()
        if check and process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, said)
        return Finished(
            output=said,
            status=process.returncode,
            stopped=late.is_set(),
            processor=usage.ru_utime + usage.ru_stime,
            wall=wall,
            memory=usage.ru_maxrss * SCALE,
        )


def spent() -> float:
    """Seconds of the processor that this process has taken, and the processes that it has waited for."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
