"""Independent tests on several processes, results in the order of the tests.

Workers are forked after everything that they need is imported and the model is read, get one test at a time through a
pipe and answer with a pickle. A worker that overruns the time limit by more than a grace period, or that dies, is
replaced, and the test it had is unknown: the engine keeps its time by itself, this is the net below it.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from mcheck.run.case import Case, Result, Settings
from mcheck.run.single import lost, run_case

_HEADER = struct.Struct("<I")
GRACE = 1.0
"""Seconds that an engine may take to notice that its time is over."""

Task = Callable[[Case, Settings], Result]


def default_jobs() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_cases(cases: Sequence[Case], settings: Settings, jobs: int, task: Task = run_case) -> Iterator[Result]:
    """The results of ``cases``, in their order, as they come.

    In this process where one job suffices; a time limit wants a process of its own, which can be stopped.
    """
    workers = min(jobs, len(cases))
    if not hasattr(os, "fork") or (workers < 2 and settings.timeout is None):
        return (task(case, settings) for case in cases)
    return _in_order(_Pool(cases, settings, workers, task))


def _in_order(pool: _Pool) -> Iterator[Result]:
    early: dict[int, Result] = {}
    due = 0
    try:
        for index, result in pool.results():
            early[index] = result
            while due in early:
                yield early.pop(due)
                due += 1
    finally:
        pool.stop()


@dataclass(slots=True)
class _Worker:
    pid: int
    orders: int
    answers: int
    case: int = -1
    started: float = 0.0


class _Pool:
    def __init__(self, cases: Sequence[Case], settings: Settings, workers: int, task: Task) -> None:
        self._cases = cases
        self._settings = settings
        self._task = task
        self._size = workers
        self._next = 0
        self._workers: dict[int, _Worker] = {}
        limit = settings.timeout
        self._limit = None if limit is None else limit + max(GRACE, limit / 4)

    def results(self) -> Iterator[tuple[int, Result]]:
        """(index of the test, result) pairs in the order of completion."""
        gc.freeze()  # what exists now is shared with the workers; collecting it would only copy pages
        for _ in range(self._size):
            self._start()
        while self._workers:
            ready, _, _ = select.select(list(self._workers), [], [], self._patience())
            for answers in ready:
                worker = self._workers[answers]
                index, result = self._receive(worker)
                yield index, result
            yield from self._overdue()

    def stop(self) -> None:
        """Ends all workers, whatever they are doing."""
        for worker in list(self._workers.values()):
            self._remove(worker, kill=True)
        gc.unfreeze()

    def _start(self) -> None:
        if self._next >= len(self._cases):
            return
        orders_out, orders_in = os.pipe()
        answers_out, answers_in = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(orders_in)
                os.close(answers_out)
                for other in self._workers.values():  # or they would not see the end of their orders
                    os.close(other.orders)
                    os.close(other.answers)
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                _work(self._cases, self._settings, self._task, orders_out, answers_in)
                status = 0
            finally:
                os._exit(status)
        os.close(orders_out)
        os.close(answers_in)
        worker = self._workers[answers_out] = _Worker(pid, orders_in, answers_out)
        self._order(worker)

    def _order(self, worker: _Worker) -> None:
        """The next test for ``worker``, or its end."""
        if self._next >= len(self._cases):
            self._remove(worker, kill=False)
            return
        worker.case, worker.started = self._next, monotonic()
        self._next += 1
        with suppress(BrokenPipeError):  # it died; reading from it says so
            os.write(worker.orders, _HEADER.pack(worker.case))

    def _receive(self, worker: _Worker) -> tuple[int, Result]:
        index = worker.case
        header = _read(worker.answers, _HEADER.size)
        data = _read(worker.answers, _HEADER.unpack(header)[0]) if header is not None else None
        if data is not None:
            result: Result = pickle.loads(data)  # noqa: S301 - written by a process of our own
            self._order(worker)
            return index, result
        status = self._remove(worker, kill=True)
        self._start()
        why = f"signal {-status}" if status < 0 else f"status {status}"
        return index, self._lost(worker, f"the process that ran the test ended with {why}; is memory short?")

    def _overdue(self) -> Iterator[tuple[int, Result]]:
        if self._limit is None:
            return
        now = monotonic()
        for worker in [w for w in self._workers.values() if now - w.started > self._limit]:
            self._remove(worker, kill=True)
            self._start()
            yield worker.case, self._lost(worker, f"time-out after {self._settings.timeout:g} s")

    def _patience(self) -> float | None:
        if self._limit is None:
            return None
        return max(0.0, min(w.started for w in self._workers.values()) + self._limit - monotonic())

    def _lost(self, worker: _Worker, reason: str) -> Result:
        return lost(self._cases[worker.case], self._settings, reason, monotonic() - worker.started)

    def _remove(self, worker: _Worker, *, kill: bool) -> int:
        """Closes the pipes and reaps the process; its exit status, negative for a signal."""
        del self._workers[worker.answers]
        os.close(worker.orders)
        os.close(worker.answers)
        done, status = os.waitpid(worker.pid, os.WNOHANG)
        if not done:
            if kill:
                os.kill(worker.pid, signal.SIGKILL)
            _, status = os.waitpid(worker.pid, 0)
        return os.waitstatus_to_exitcode(status)


def _work(cases: Sequence[Case], settings: Settings, task: Task, orders: int, answers: int) -> None:
    """The life of a worker: until its orders end."""
    while (order := _read(orders, _HEADER.size)) is not None:
        result = task(cases[_HEADER.unpack(order)[0]], settings)
        data = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
        view = memoryview(_HEADER.pack(len(data)) + data)
        while view:
            view = view[os.write(answers, view) :]


def _read(descriptor: int, size: int) -> bytes | None:
    """Exactly ``size`` bytes, or ``None`` at the end of the pipe."""
    parts: list[bytes] = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
