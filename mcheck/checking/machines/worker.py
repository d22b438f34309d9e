"""The worker side of a distributed run: runs the tests of a parcel in a separate process, so that none can crash the
worker.

A runner that dies is replaced and continues with the test that it had; if that test crashes a second runner, it is
abandoned with a result that says so.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from select import select
from time import perf_counter

from mcheck.base.reasons import Cause, Reason
from mcheck.base.records import dataclass, replace
from mcheck.checking.cache.keys import version
from mcheck.checking.machines.parcel import Parcel
from mcheck.checking.run.case import Case
from mcheck.checking.run.pipes import receive, send

DEATHS = 2
"""How many runners a test may crash."""
GLANCE = 2.0
"""Seconds between two checks whether the results are still wanted."""


@dataclass(frozen=True, slots=True)
class VersionMismatch:
    """The worker has another version of mcheck."""

    version: bytes


@dataclass(frozen=True, slots=True)
class Done:
    """The pickled results of a parcel, and the seconds that they took."""

    results: tuple[bytes, ...]
    seconds: float


class Dropped(Exception):
    """The results are no longer wanted."""


class _Runner:
    """A runner process, and this side's ends of its pipes."""

    def __init__(self) -> None:
        life, self._life = os.pipe()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mcheck.checking.machines.runner", str(life)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(life,),
            )
        finally:
            os.close(life)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._orders = self.process.stdin.fileno()
        self._answers = self.process.stdout.fileno()

    def order(self, parcel: Parcel) -> None:
        with suppress(BrokenPipeError):  # it died; its answers end
            send(self._orders, pickle.dumps(parcel, pickle.HIGHEST_PROTOCOL))

    def answer(self, wanted: Callable[[], bool]) -> bytes | None:
        """The next result; ``None`` if the process has died."""
        while not select([self._answers], [], [], GLANCE)[0]:
            if not wanted():
                raise Dropped
        return receive(self._answers)

    def end(self) -> int:
        """Ends the process if it is still running; its exit status, negative for a signal."""
        os.close(self._life)
        self.process.kill()
        with self.process:
            return self.process.wait()


_OWN = threading.local()
"""The runner of each worker thread, which is kept from parcel to parcel."""


def work(data: bytes, wanted: Callable[[], bool] | None = None) -> Done | VersionMismatch:
    """The results of a pickled parcel, in its order. ``wanted`` says whether they are still wanted."""
    own = version()
    parcel: Parcel = pickle.loads(data)  # noqa: S301 - from the client, as is this call
    if parcel.version != own:
        return VersionMismatch(own)
    started = perf_counter()
    results = _results(parcel, wanted or _asked)
    return Done(tuple(results), perf_counter() - started)


def end() -> None:
    """Ends the runner of this thread, if there is one."""
    if getattr(_OWN, "runner", None) is not None:
        _end()


def _results(parcel: Parcel, wanted: Callable[[], bool]) -> list[bytes]:
    results: list[bytes] = []
    deaths = 0
    while len(results) < len(parcel.cases):
        if getattr(_OWN, "runner", None) is None:
            _OWN.runner = _Runner()
        _OWN.runner.order(replace(parcel, cases=parcel.cases[len(results) :]))
        since = perf_counter()
        try:
            while len(results) < len(parcel.cases):
                answer = _OWN.runner.answer(wanted)
                if answer is None:
                    break
                results.append(answer)
                deaths, since = 0, perf_counter()
        except BaseException:
            _end()
            raise
        if len(results) < len(parcel.cases):
            status = _end()
            deaths += 1
            if deaths == DEATHS:
                results.append(_given_up(parcel, parcel.cases[len(results)], status, perf_counter() - since))
                deaths = 0
    return results


def _end() -> int:
    status: int = _OWN.runner.end()
    _OWN.runner = None
    return status


def _given_up(parcel: Parcel, case: Case, status: int, seconds: float) -> bytes:
    why = f"signal {-status}" if status < 0 else f"status {status}"
    ended = f"{DEATHS} processes died while running the test, the last one with {why}; giving up"
    reason = Reason(Cause.DIED, ended)
    return pickle.dumps(parcel.lost(case, parcel.settings, reason, seconds), pickle.HIGHEST_PROTOCOL)


def _asked() -> bool:
    """Whether the scheduler still wants the result of this thread's task."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        return True
    task = worker.state.tasks.get(worker.get_current_task())
    return task is not None and task.state != "cancelled"
