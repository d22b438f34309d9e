"""Seconds of the processor: of this process, and of a command in a process of its own, with its output."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_process(
    command: Sequence[str],
    limit: float | None,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[str, float]:
    """(standard output, seconds of the processor) of a command; no output if it takes ``limit`` seconds and is stopped.

    The seconds are those of this command and of the processes that it waited for, whatever else runs.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.DEVNULL, cwd=folder, env=environment, start_new_session=True
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
        if timer is not None:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return "" if late.is_set() else output.read(), usage.ru_utime + usage.ru_stime


def spent() -> float:
    """Seconds of the processor so far, those of the processes that this one waited for included."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
