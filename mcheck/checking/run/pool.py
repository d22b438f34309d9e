"""A pool of worker processes for independent tests; results are in the order of the tests.

Workers are forked after everything that they need is imported and the model is read, the second and later ones only if
what is left would take the first too long: each makes anew what a process makes on first use, which takes as long as a
hundred small tests. Each gets one test at a time through a pipe and answers with a pickle. A worker that exceeds a
limit or dies is replaced, and its test is unknown: an engine watches its time itself, this is the safety net; what the
worker has handed over by then is the answer (``mcheck.checking.run.handover``). No worker outlives this process,
however it ends.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Generic, TypeVar

from mcheck.base import progress
from mcheck.base.errors import InputError
from mcheck.base.reasons import Cause, Reason, timeout_reason
from mcheck.base.records import dataclass, replace
from mcheck.checking.run import handover, worker_limits
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.pipes import read_exactly, receive, send

_ORDER = struct.Struct("<I")
"""The index of a case."""
GRACE = 0.5
"""Seconds that an engine may take to notice that its time is over."""
GLANCE = 0.05
"""Seconds between two checks of the workers' memory, if that is limited."""

ALONE = 0.3
"""Seconds that the first worker has before others are started."""
WORTH = 0.6
"""Seconds that it would take for what is left, at its pace until then, from which on others are worth their start."""

_PARTIAL, _FINAL, _NOTE = b"p", b"f", b"n"
"""The first byte of a message: a result, after which others about the same test follow or not; how far it has come."""

T = TypeVar("T")
Task = Callable[[Case, Settings], T]
OnLost = Callable[[Case, Settings, Reason, float], T]
"""Makes the result for a test whose process was stopped or died, from the reason and the seconds elapsed."""


def default_jobs() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_cases(cases: Sequence[Case], settings: Settings, jobs: int, task: Task[T], lost: OnLost[T]) -> Iterator[T]:
    """The results of ``cases``, in their order, as they are ready.

    In this process if one job suffices; a limit needs a separate process, which can be stopped.
    """
    workers = min(jobs, len(cases))
    limited = settings.timeout is not None or settings.memory is not None
    if not hasattr(os, "fork") or (workers < 2 and not limited):
        return (task(case, settings) for case in cases)
    return _of(_Pool(cases, settings, workers, task, lost))


def _of(pool: _Pool[T]) -> Iterator[T]:
    try:
        yield from order_results(pool.results())
    finally:
        pool.stop()


def order_results(results: Iterable[tuple[int, T]]) -> Iterator[T]:
    """Reorders (index, result) pairs: yields the results from index 0 on, as soon as each is available."""
    early: dict[int, T] = {}
    due = 0
    for number, result in results:
        early[number] = result
        while due in early:
            yield early.pop(due)
            due += 1


@dataclass(slots=True)
class _Worker:
    """A worker process and this side's ends of its pipes; ``life`` carries nothing, but tells the worker when this
    process ends.

    ``inherited``: the bytes that it shares with this process, of which it is a fork; a limit applies to the rest.
    """

    pid: int
    orders: int
    answers: int
    life: int
    inherited: int = 0
    case: int = -1
    started: float = 0.0
    used: float = 0.0
    """Its processor time before the present test."""
    partial: Any = None
    """What it has handed over about the present test."""
    note: str = ""
    """How far it has come with the present test."""

    @property
    def pipes(self) -> tuple[int, int, int]:
        return self.orders, self.answers, self.life


class _Pool(Generic[T]):
    def __init__(self, cases: Sequence[Case], settings: Settings, workers: int, task: Task[T], lost: OnLost[T]) -> None:
        self._cases = cases
        self._settings = settings
        self._task = task
        self._lost = lost
        self._size = workers
        self._next = 0
        self._workers: dict[int, _Worker] = {}
        self._limit = None if settings.timeout is None else settings.timeout + GRACE

    def results(self) -> Iterator[tuple[int, T]]:
        """(index of the test, result) pairs in the order of completion."""
        gc.freeze()  # what exists now is shared with the workers; collecting it would only copy pages
        self._start()
        begun, alone = monotonic(), True
        while self._workers:
            growth = self._growth(begun) if alone else None
            if growth is not None and monotonic() >= growth:
                alone, growth = False, None
                for _ in range(self._size - len(self._workers)):
                    self._start()
            ready, _, _ = select.select(list(self._workers), [], [], self._patience(growth))
            for answers in ready:
                yield from self._receive(self._workers[answers])
            yield from self._overdue()

    def _growth(self, begun: float) -> float:
        """When more workers are to be started, unless the first one, at work since ``begun``, ends another test before.

        After t seconds and ``done`` tests, the others would take it t seconds for each ``done`` of them.
        """
        done = self._next - 1
        return begun + max(ALONE, WORTH * done / (len(self._cases) - done))

    def stop(self) -> None:
        """Kills all workers."""
        for worker in list(self._workers.values()):
            self._remove(worker, kill=True)
        gc.unfreeze()

    def _start(self) -> None:
        if self._next >= len(self._cases):
            return
        orders_out, orders_in = os.pipe()
        answers_out, answers_in = os.pipe()
        life_out, life_in = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            raise InputError(f"cannot start a process: {error.strerror}", hint="--jobs 1 needs fewer") from None
        if pid == 0:
            status = 1
            try:
                ours = (descriptor for other in self._workers.values() for descriptor in other.pipes)
                for descriptor in (orders_in, answers_out, life_in, *ours):  # or nobody would see them end
                    os.close(descriptor)
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears of it too, and stops its workers
                worker_limits.exit_with_pipe(life_out)
                if self._settings.memory is not None:
                    worker_limits.limit_memory(self._settings.memory)
                _work(self._cases, self._settings, self._task, orders_out, answers_in)
                status = 0
            finally:
                os._exit(status)
        for descriptor in (orders_out, answers_in, life_out):
            os.close(descriptor)
        worker = self._workers[answers_out] = _Worker(
            pid, orders_in, answers_out, life_in, worker_limits.resident_memory(os.getpid())
        )
        self._order(worker)

    def _order(self, worker: _Worker) -> None:
        """Sends the next test to ``worker``, or ends it."""
        if self._next >= len(self._cases):
            self._remove(worker, kill=False)
            return
        worker.case, worker.started, worker.partial, worker.note = self._next, monotonic(), None, ""
        if self._settings.processor_time:
            worker.used = worker_limits.processor_seconds(worker.pid)
        self._next += 1
        with suppress(BrokenPipeError):  # it died; reading from it says so
            os.write(worker.orders, _ORDER.pack(worker.case))

    def _receive(self, worker: _Worker) -> Iterator[tuple[int, T]]:
        import pickle

        index = worker.case
        data = receive(worker.answers)
        if data is not None and data[:1] == _NOTE:
            worker.note = data[1:].decode()
            progress.pass_on(worker.note)
            return
        if data is not None:
            result = pickle.loads(data[1:])  # noqa: S301 - written by a process of our own
            if data[:1] == _PARTIAL:
                worker.partial = result
                return
            self._order(worker)
            yield index, result
            return
        status = self._remove(worker, kill=True)
        self._start()
        why = f"signal {-status}" if status < 0 else f"status {status}"
        memory = self._settings.memory
        hint = (
            "the machine may be out of memory"
            if memory is None
            else f"{worker_limits.format_size(memory)} of memory may be too little"
        )
        ended = Reason(Cause.DIED, f"the process that ran the test died with {why}; {hint}")
        yield index, self._without(worker, ended)

    def _overdue(self) -> Iterator[tuple[int, T]]:
        """Stops the workers that exceed a limit, and gives results for their tests."""
        for worker in list(self._workers.values()):
            if select.select([worker.answers], [], [], 0)[0]:
                continue  # it has something to say, which is read first
            reason = self._beyond(worker)
            if reason is not None:
                self._remove(worker, kill=True)
                self._start()
                yield worker.case, self._without(worker, reason)

    def _beyond(self, worker: _Worker) -> Reason | None:
        if self._limit is not None and self._elapsed(worker) > self._limit:
            return timeout_reason(self._settings.timeout)
        memory = self._settings.memory
        if memory is not None and worker_limits.resident_memory(worker.pid) > worker.inherited + memory:
            return Reason(Cause.MEMORY, worker_limits.no_memory(memory))
        return None

    def _elapsed(self, worker: _Worker) -> float:
        """The seconds that count for the time limit."""
        if self._settings.processor_time:
            return worker_limits.processor_seconds(worker.pid) - worker.used
        return monotonic() - worker.started

    def _patience(self, growth: float | None) -> float | None:
        """Seconds until the next check of limits or, at ``growth``, more workers, if no answer arrives before."""
        waits = [] if self._settings.memory is None else [GLANCE]
        if growth is not None:
            waits.append(growth - monotonic())
        if self._limit is not None and self._settings.processor_time:
            waits.append(GRACE / 2)
        elif self._limit is not None:
            waits.append(min(w.started for w in self._workers.values()) + self._limit - monotonic())
        return max(min(waits), 0.0) if waits else None

    def _without(self, worker: _Worker, reason: Reason) -> T:
        if worker.note and reason.cause is Cause.TIME:
            reason = replace(reason, during=f"by then: {worker.note}")
        lost = self._lost(self._cases[worker.case], self._settings, reason, monotonic() - worker.started)
        if worker.partial is None:
            return lost
        known: T = worker.partial.ended_by(lost)
        return known

    def _remove(self, worker: _Worker, *, kill: bool) -> int:
        """Closes the pipes and reaps the process; its exit status, negative for a signal."""
        del self._workers[worker.answers]
        done, status = os.waitpid(worker.pid, os.WNOHANG)
        if kill and not done:
            os.kill(worker.pid, signal.SIGKILL)
        os.close(worker.orders)
        if not done:
            _, status = os.waitpid(worker.pid, 0)
        os.close(worker.answers)
        os.close(worker.life)
        return os.waitstatus_to_exitcode(status)


def _work(cases: Sequence[Case], settings: Settings, task: Task[T], orders: int, answers: int) -> None:
    """Main loop of a worker."""
    import pickle  # a process without workers needs none

    handover.open_channel(lambda known: send(answers, _PARTIAL + pickle.dumps(known, pickle.HIGHEST_PROTOCOL)))
    progress.send_notes(lambda text: send(answers, _NOTE + text.encode()))
    while (order := read_exactly(orders, _ORDER.size)) is not None:
        result = task(cases[_ORDER.unpack(order)[0]], settings)
        send(answers, _FINAL + pickle.dumps(result, pickle.HIGHEST_PROTOCOL))
