"""Background checks, on the side of the server: at most one at a time, stopped by an edit or its time limit."""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from contextlib import suppress

from mcheck.base.errors import Span
from mcheck.base.reasons import format_reasons, timeout_reason
from mcheck.checking.run.pipes import HEADER
from mcheck.tools.lsp.note import Note
from mcheck.tools.lsp.notes import is_compiled
from mcheck.tools.lsp.worker import Job, pack_message

GRACE = 1.0
"""Grace period in seconds after which a check is killed; normally the engines respect the limit themselves."""
SOURCE_CHECKS = 8
"""Checks, and compilations, for which the time of a source suffices."""
START = 20.0
"""Seconds that a new process may take before its first answer."""


class Checker:
    """The worker process, started when needed and replaced after it was stopped."""

    def __init__(self, memory: int | None) -> None:
        self._memory = memory
        self._process: asyncio.subprocess.Process | None = None
        self._life: int | None = None
        self._free = asyncio.Lock()
        self._fresh = True

    async def check(self, job: Job) -> tuple[Note, ...]:
        """Compute the notes about a text; cancelling the call stops the process."""
        async with self._free:
            try:
                return await self._ask(job)
            except TimeoutError:
                self.stop()
                return (_unknown(job, format_reasons((timeout_reason(job.settings.timeout),)) or ""),)
            except (asyncio.IncompleteReadError, BrokenPipeError, ConnectionError):
                self.stop()
                return (_unknown(job, "the process that checked it ended; memory may not have been enough"),)
            except BaseException:
                self.stop()
                raise

    async def end(self) -> None:
        """End the process for good."""
        process = self._process
        self.stop()
        if process is not None:
            await process.wait()

    def stop(self) -> None:
        """Kill the process, even while it checks."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        if self._life is not None:
            os.close(self._life)
        self._process = self._life = None

    async def _ask(self, job: Job) -> tuple[Note, ...]:
        process = self._process
        if process is None or process.returncode is not None:
            self.stop()
            process = await self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pack_message(job))
        limit = job.settings.timeout
        # a run and a check, each within the limit; of a source one for each module, or each fix that is tried; and the
        # checks of a search for repairs
        checks = SOURCE_CHECKS if is_compiled(job.path) or job.tries else 2
        patience = None if limit is None else checks * limit + GRACE + (START if self._fresh else 0.0)
        async with asyncio.timeout(patience):
            await process.stdin.drain()
            header = await process.stdout.readexactly(HEADER.size)
            data = await process.stdout.readexactly(HEADER.unpack(header)[0])
        self._fresh = False
        found: tuple[Note, ...] = pickle.loads(data)  # noqa: S301 - written by a process of our own
        return found

    async def _start(self) -> asyncio.subprocess.Process:
        self._fresh = True
        given: tuple[int, ...] = ()
        theirs = None
        if os.name == "posix":
            theirs, self._life = os.pipe()
            given = (theirs,)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "mcheck.tools.lsp.worker", str(theirs), str(self._memory),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, pass_fds=given,
            )  # fmt: skip
        finally:
            for descriptor in given:
                os.close(descriptor)
        return self._process


def _unknown(job: Job, why: str) -> Note:
    return Note(span=Span(job.path, 1, 1), severity="information", message=why, code="unknown")
