"""Processes: the order of results, time-outs, workers that die."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from mcheck.explore.result import Answer
from mcheck.run.case import Case, Result, Settings
from mcheck.run.pool import run_cases

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

CASES = [Case(f"{number}.litmus") for number in range(20)]


def slower_first(case: Case, settings: Settings) -> Result:
    time.sleep(0.02 if case.path in ("0.litmus", "5.litmus") else 0)
    return Result(path=case.path, name=str(os.getpid()), verdict="pass", model="m")


@pytest.mark.parametrize("jobs", [1, 2, 3, 50])
def test_results_come_in_the_order_of_the_tests(jobs: int) -> None:
    results = list(run_cases(CASES, Settings(), jobs, slower_first))
    assert [result.path for result in results] == [case.path for case in CASES]
    processes = {result.name for result in results}
    assert (processes == {str(os.getpid())}) == (jobs == 1)


@needs_fork
def test_no_process_and_no_descriptor_is_left_behind() -> None:
    before = len(os.listdir("/dev/fd"))
    running = run_cases(CASES, Settings(), 3, slower_first)
    next(running)
    running.close()
    assert len(os.listdir("/dev/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@needs_fork
def test_a_worker_that_dies_costs_one_test() -> None:
    def task(case: Case, settings: Settings) -> Result:
        if case.path in ("3.litmus", "4.litmus"):
            os.kill(os.getpid(), signal.SIGKILL)
        return slower_first(case, settings)

    results = list(run_cases(CASES, Settings(), 2, task))
    assert [result.path for result in results if result.verdict == "unknown"] == ["3.litmus", "4.litmus"]
    assert "signal 9" in (results[3].reason or "")


@needs_fork
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_test_that_ignores_its_time_is_stopped(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcheck.run.pool.GRACE", 0.1)

    def task(case: Case, settings: Settings) -> Result:
        if case.path == "2.litmus":
            time.sleep(60)
        return slower_first(case, settings)

    started = time.monotonic()
    results = list(run_cases(CASES[:5], Settings(timeout=0.2), jobs, task))
    assert time.monotonic() - started < 20
    assert [result.verdict for result in results] == ["pass", "pass", "unknown", "pass", "pass"]
    assert results[2].reason == "time-out after 0.2 s"


@needs_fork
def test_large_results_cross_the_pipe() -> None:
    def task(case: Case, settings: Settings) -> Result:
        return Result(path=case.path, name="x" * 3_000_000, verdict="pass", model="m")

    assert [len(result.name) for result in run_cases(CASES[:4], Settings(), 2, task)] == [3_000_000] * 4


@needs_fork
def test_the_command_runs_on_several_processes(mcheck: Callable, litmus: Callable, engine_says: Callable) -> None:
    engine_says({"b": Answer(verdict="fail"), "c": ZeroDivisionError("oops")})
    paths = [litmus(name, "expect pass") for name in "abcd"]
    one, two = (mcheck("run", *paths, "--model", "ptx-7.5", "--jobs", jobs) for jobs in (1, 2))
    assert one.status == two.status == 70
    assert one.out == two.out


@needs_fork
def test_time_outs_reach_the_report(mcheck: Callable, litmus: Callable, engine_says: Callable) -> None:
    calls = engine_says({"t": lambda: Answer(verdict="unknown", reason="time-out after 5 s", complete=False)})
    done = mcheck("run", litmus("t"), "--model", "ptx-7.5", "--timeout", 5)
    assert done.status == 3
    assert "time-out after 5 s" in done.out
    assert calls == [], "a test with a time limit runs in a process of its own"
