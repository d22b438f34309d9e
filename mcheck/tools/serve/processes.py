"""The processes of the server: one that forks, and a fork for each request, which can be stopped at any time."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Collection
from contextlib import suppress

from mcheck.base.errors import InputError
from mcheck.base.reasons import Cause, Reason, format_reasons, timeout_reason
from mcheck.checking.run.pipes import HEADER, frame_message
from mcheck.tools.serve.answers import Reply
from mcheck.tools.serve.fork_server import FORK, KEEP, ORDER
from mcheck.tools.serve.refusals import leave_open
from mcheck.tools.serve.requests import Request

GRACE = 2.0
"""Seconds that a fork may take beyond its time limit, which it keeps itself."""
BUILD = 60.0
"""Seconds that a compiler, and a program that makes launches, may take before a check begins."""


class Processes:
    """The process that forks, started when needed, and again if it dies. ``jobs``: requests answered at a time."""

    def __init__(self, jobs: int) -> None:
        self._free = asyncio.Semaphore(jobs)
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process that forks."""
        self.stop()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mcheck.tools.serve.fork_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), pass_fds=(theirs.fileno(),),
            )  # fmt: skip
        self._control = ours

    def stop(self) -> None:
        """End the process that forks; it waits for nothing."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None

    async def answer(self, request: Request) -> Reply:
        """The reply to a request. A call that is cancelled stops the process that answers it."""
        async with self._free:
            ours, life = self._fork()
            ours.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=ours)
            fork = 0
            try:
                async with asyncio.timeout(patience(request)):
                    fork = pickle.loads(await _receive(reader))  # noqa: S301 - written by a process of our own
                    writer.write(frame_message(pickle.dumps(request, pickle.HIGHEST_PROTOCOL)))
                    await writer.drain()
                    reply, found = pickle.loads(await _receive(reader))  # noqa: S301 - the same
                fork = 0
            except TimeoutError:
                why = timeout_reason(request.settings.timeout, "the compiler or the program took longer")
                return leave_open(request, format_reasons((why,)) or "")
            except (asyncio.IncompleteReadError, ConnectionError):
                died = Reason(Cause.DIED, "the process that answered died; the machine may be out of memory")
                return leave_open(request, format_reasons((died,)) or "")
            finally:
                os.close(life)
                if fork:
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(fork, signal.SIGKILL)
                writer.close()
            self._keep(found)
            answered: Reply = reply
            return answered

    def _fork(self) -> tuple[socket.socket, int]:
        """A new fork: the socket to it, and the pipe whose end stops it."""
        if self._process is None or self._process.poll() is not None:
            self.start()
        ours, theirs = socket.socketpair()
        watched, life = os.pipe()
        try:
            self._send(ORDER.pack(FORK, 0), theirs.fileno(), watched)
        except OSError:
            self.start()
            self._send(ORDER.pack(FORK, 0), theirs.fileno(), watched)
        finally:
            theirs.close()
            os.close(watched)
        return ours, life

    def _send(self, data: bytes, *descriptors: int) -> None:
        assert self._control is not None
        sent = socket.send_fds(self._control, [data], descriptors)
        self._control.sendall(data[sent:])

    def _keep(self, found: tuple[Collection[object], Collection[object]]) -> None:
        """Hand answers and what was compiled to the process that forks, for the next requests."""
        if any(found):
            data = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
            with suppress(OSError):
                self._send(ORDER.pack(KEEP, len(data)) + data)


def patience(request: Request) -> float | None:
    """The seconds after which a fork is stopped; a limit of processor time is its own."""
    settings = request.settings
    if settings.timeout is None or settings.processor_time:
        return None
    return settings.timeout + GRACE + BUILD


def require_forks() -> None:
    """Raise ``InputError`` where processes cannot be forked."""
    if not hasattr(os, "fork"):
        raise InputError(
            "mcheck serve needs a system with fork", hint="Linux, macOS, or the Windows Subsystem for Linux"
        )


async def _receive(reader: asyncio.StreamReader) -> bytes:
    header = await reader.readexactly(HEADER.size)
    return await reader.readexactly(HEADER.unpack(header)[0])
