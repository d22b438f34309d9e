"""Processes: the order of results, time-outs, workers that die."""

from __future__ import annotations

import json
import os
import pydoc
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from mcheck.answers.result import Answer
from mcheck.base.progress import EVERY, Level, note
from mcheck.base.reasons import Cause, Reason
from mcheck.checking.backends import Backend
from mcheck.checking.cache.database import open_store
from mcheck.checking.result_cache import compute_uncached, open_result_cache
from mcheck.checking.run import single
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.pool import run_cases
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import crashed_result

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

ROOT = Path(__file__).parents[3]
CASES = [Case(f"{number}.litmus") for number in range(20)]


def slower_first(case: Case, settings: Settings) -> Result:
    time.sleep(0.02 if case.path in ("0.litmus", "5.litmus") else 0)
    return Result(path=case.path, name=str(os.getpid()), verdict="pass", model="m")


@pytest.mark.daily
@pytest.mark.parametrize("jobs", [1, 2, 3, 50])
def test_results_come_in_the_order_of_the_tests(jobs: int) -> None:
    results = list(run_cases(CASES, Settings(), jobs, slower_first, crashed_result))
    assert [result.path for result in results] == [case.path for case in CASES]
    processes = {result.name for result in results}
    assert (processes == {str(os.getpid())}) == (jobs == 1)


@needs_fork
@pytest.mark.parametrize(("alone", "least", "most"), [(60.0, 1, 1), (0.0, 2, 3)])
def test_further_workers_are_started_where_one_would_take_too_long(
    alone: float, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcheck.checking.run import pool

    def task(case: Case, settings: Settings) -> Result:
        time.sleep(0.02)
        return slower_first(case, settings)

    monkeypatch.setattr(pool, "ALONE", alone)
    monkeypatch.setattr(pool, "WORTH", 0.0)
    results = list(run_cases(CASES, Settings(), 3, task, crashed_result))
    assert [result.path for result in results] == [case.path for case in CASES]
    assert least <= len({result.name for result in results}) <= most


def children() -> set[str]:
    """The processes that this one has started; other tests of its worker may have left some."""
    found = [path.read_text() for path in Path(f"/proc/{os.getpid()}/task").glob("*/children")]
    return {number for text in found for number in text.split()}


@needs_fork
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc lists the processes")
def test_no_process_and_no_descriptor_is_left_behind() -> None:
    before, started = len(os.listdir("/dev/fd")), children()
    running = run_cases(CASES, Settings(), 3, slower_first, crashed_result)
    next(running)
    running.close()
    assert len(os.listdir("/dev/fd")) == before
    assert children() <= started


@needs_fork
def test_a_worker_that_dies_costs_one_test() -> None:
    def task(case: Case, settings: Settings) -> Result:
        if case.path in ("3.litmus", "4.litmus"):
            os.kill(os.getpid(), signal.SIGKILL)
        return slower_first(case, settings)

    results = list(run_cases(CASES, Settings(), 2, task, crashed_result))
    assert [result.path for result in results if result.verdict == "unknown"] == ["3.litmus", "4.litmus"]
    assert "signal 9" in (results[3].reason or "")


@needs_fork
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_test_that_ignores_its_time_is_stopped(jobs: int) -> None:
    def task(case: Case, settings: Settings) -> Result:
        if case.path == "2.litmus":
            time.sleep(60)
        return slower_first(case, settings)

    results = list(run_cases(CASES[:5], Settings(timeout=1), jobs, task, crashed_result))
    assert results[2].seconds < 30, "it was not waited for"
    assert [result.verdict for result in results] == ["pass", "pass", "unknown", "pass", "pass"]
    assert results[2].reason == "no answer within 1 s"


@pytest.mark.daily(days=3, least=0)
@needs_fork
def test_a_test_that_is_stopped_says_how_far_it_came() -> None:
    def task(case: Case, settings: Settings) -> Result:
        if case.path == "1.litmus":
            note(Level.LAUNCH, "launch 2 of 3")
            note(Level.LOOP, "P is in iteration 40 of the loop at line 7")
            time.sleep(EVERY)
            note(Level.EXECUTIONS, "3 executions explored")
            _spin()
        return slower_first(case, settings)

    results = list(run_cases(CASES[:3], Settings(timeout=0.3, processor_time=True), 1, task, crashed_result))
    came = "launch 2 of 3, P is in iteration 40 of the loop at line 7, 3 executions explored"
    assert results[1].reason == f"no answer within 0.3 s; by then: {came}"
    assert results[2].reason is None


@needs_fork
def test_large_results_cross_the_pipe() -> None:
    def task(case: Case, settings: Settings) -> Result:
        return Result(path=case.path, name="x" * 3_000_000, verdict="pass", model="m")

    assert [len(result.name) for result in run_cases(CASES[:4], Settings(), 2, task, crashed_result)] == [3_000_000] * 4


@needs_fork
def test_the_command_runs_on_several_processes(mcheck: Callable, litmus: Callable, engine_says: Callable) -> None:
    engine_says({"b": Answer(verdict="fail"), "c": ZeroDivisionError("oops")})
    paths = [litmus(name, "expect pass") for name in "abcd"]
    one, two = (mcheck("run", *paths, "--model", "ptx-7.5", "--jobs", jobs) for jobs in (1, 2))
    assert one.status == two.status == 70
    assert one.out == two.out


@needs_fork
def test_time_outs_reach_the_report(mcheck: Callable, litmus: Callable, engine_says: Callable) -> None:
    calls = engine_says(
        {"t": lambda: Answer(verdict="unknown", reasons=(Reason(Cause.TIME, "time-out after 5 s"),), complete=False)}
    )
    done = mcheck("run", litmus("t"), "--model", "ptx-7.5", "--timeout", 5)
    assert done.status == 3
    assert "time-out after 5 s" in done.out
    assert calls == [], "a test with a time limit runs in a process of its own"


@needs_fork
@pytest.mark.parametrize("timeout", [0.2, 8.0])
def test_the_grace_does_not_grow_with_the_limit(timeout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcheck.checking.run import pool

    made = pool._Pool(CASES, Settings(timeout=timeout), 1, slower_first, crashed_result)
    assert made._limit is not None
    assert made._limit - timeout < 0.75


@pytest.mark.daily
@needs_fork
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="this system does not tell what is resident")
@pytest.mark.parametrize("step", [1 << 20, 1 << 28], ids=["bit by bit", "at once"])
@pytest.mark.parametrize("held", [0, 400], ids=["small", "large"])
def test_memory_is_limited(step: int, held: int) -> None:
    ours = b"x" * (held << 20)  # what this process holds, and its copies begin with, is not theirs

    def task(case: Case, settings: Settings) -> Result:
        held = []
        while case.path == "2.litmus":
            try:
                held.append(b"x" * step)
            except MemoryError:
                held.clear()
                raise
        return slower_first(case, settings)

    def caught(case: Case, settings: Settings) -> Result:
        try:
            return task(case, settings)
        except MemoryError:
            return crashed_result(case, settings, Reason(Cause.MEMORY, "caught"), 0.0)

    limit = 300  # MiB
    results = list(run_cases(CASES[:4], Settings(memory=limit << 20), 2, caught, crashed_result))
    assert [result.verdict for result in results] == ["pass", "pass", "unknown", "pass"]
    assert results[2].reason in ("caught", f"more than {limit} MiB of memory")
    assert len(ours) == held << 20


def starts(program: str, tmp_path: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A process that runs a program with a pool whose workers never end, and the workers."""
    script = tmp_path / "busy.py"
    script.write_text(program)
    process = subprocess.Popen([sys.executable, script], text=True, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    with process.stdout:
        return process, [int(process.stdout.readline()) for _ in range(2)]


BUSY = """\
import os, re, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
sys.path.insert(0, os.getcwd())
from mcheck.base.reasons import Cause, Reason
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.pool import run_cases
from mcheck.checking.run.single import crashed_result
from mcheck.base.reasons import Cause, Reason

def task(case, settings):
    os.write(1, b"%d\\n" % os.getpid())
    while True:
        SPIN

list(run_cases([Case("a"), Case("b")], Settings(timeout=300), 2, task, crashed_result))
"""


@pytest.mark.daily
@needs_fork
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a worker ends after its test")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("spin", ["pass", "re.match(r'(a*)*b', 'a' * 40)"], ids=["in Python", "in C"])
def test_no_worker_outlives_its_parent(number: int, spin: str, tmp_path: Path) -> None:
    process, workers = starts(BUSY.replace("SPIN", spin), tmp_path)
    try:
        process.send_signal(number)
        process.wait(30)
        deadline = time.monotonic() + 30
        while any(map(alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not any(map(alive, workers))
    finally:
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@needs_fork
def test_a_resumed_run_tries_a_test_again_whose_process_was_killed(tmp_path: Path) -> None:
    text = "PTX a\n{ x=0; }\n P0@cta 0 ;\n st.weak x, 1 ;\nexists (x == 1)\n"
    cases = [Case(str(tmp_path / name)) for name in ("a.litmus", "b.litmus")]
    for case in cases:
        Path(case.path).write_text(text, encoding="utf-8")

    def killed(_case: Case, _settings: Settings) -> Result:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def verdicts(task: Callable[[Case, Settings], Result]) -> set[str]:
        with open_store(str(tmp_path / "r")) as store:
            memory = open_result_cache(Backend(store=store, resumes=True), Result, "run", Settings())
            results = compute_uncached(
                cases, memory, lambda left: run_cases(left, Settings(), 2, task, crashed_result) if left else iter(())
            )
            return {result.verdict for result in results}

    assert [verdicts(killed), verdicts(run_case), verdicts(killed)] == [{"unknown"}, {"pass"}, {"pass"}]


RACE = """PTX race
{ .shared .u32 x; .shared .u32 y; }
P@cta 0, warp 0, lane 0 { st.shared.u32 [x], 1; st.shared.u32 [y], 1; }
Q@cta 0, warp 1, lane 0 { st.shared.u32 [x], 2; st.shared.u32 [y], 2; }
"""


def _spin(*_: object, **__: object) -> None:
    while True:
        pass


@pytest.mark.daily(days=4, least=0)
@needs_fork
@pytest.mark.parametrize("place", ["fix_search.advice.find_fix", "exploration.Search.sorted_findings"])
def test_what_was_found_is_reported_when_the_process_is_stopped(
    place: str, mcheck: Callable, litmus: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = litmus("race", text=RACE)
    calls = 0
    owner, _, name = f"mcheck.engines.protocol.{place}".rpartition(".")
    before = pydoc.locate(owner + "." + name)

    def late(*given: object) -> object:
        nonlocal calls
        calls += 1
        if calls > 1:
            _spin()
        return before(*given)

    monkeypatch.setattr(f"mcheck.engines.protocol.{place}", late)
    done = mcheck("check", "--engine", "protocol", "--cpu-timeout", "2", path, "--format", "json")
    (result,) = json.loads(done.out)["results"]
    assert (done.status, result["verdict"], result["cut"]) == (1, "finding", True)
    assert [f["code"] for f in result["findings"]] == ["RACE001"]
    assert result["reasons"][0]["cause"] == "time"
    assert result["executions"] >= 1
    assert "explored by then" in result["reasons"][0]["text"]


@pytest.mark.daily(days=3, least=0)
@needs_fork
def test_nothing_is_handed_over_that_the_user_left_out(
    mcheck: Callable, litmus: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcheck.checking.check.selection._joined", _spin)
    path = litmus("race", text=RACE)  # auto would ask an engine that finds everything, on a slow machine
    done = mcheck("check", "--engine", "protocol", "--cpu-timeout", "2", "--ignore", "RACE", path, "--format", "json")
    (result,) = json.loads(done.out)["results"]
    assert (done.status, result["verdict"], result["findings"]) == (3, "unknown", [])
    assert "explored by then" in result["reasons"][0]["text"]


@needs_fork
def test_processor_time_does_not_pass_while_a_process_sleeps(
    mcheck: Callable, litmus: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = single.load_model

    def slow(name: str) -> object:
        time.sleep(3)
        return asked(name)

    monkeypatch.setattr(single, "load_model", slow)
    assert mcheck("check", "--timeout", "0.5", litmus("race", text=RACE)).status == 3
    assert mcheck("check", "--cpu-timeout", "2.5", litmus("race", text=RACE)).status == 1


@pytest.mark.daily(days=3, least=0)
@needs_fork
def test_processor_time_stops_what_does_not_end(
    mcheck: Callable, litmus: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcheck.checking.check.inquiry.ask", _spin)
    done = mcheck("check", "--cpu-timeout", "0.5", litmus("race", text=RACE))
    assert done.status == 3
    assert "no answer within 0.5 s" in done.out


def test_one_limit_of_time_is_enough(mcheck: Callable, litmus: Callable) -> None:
    assert mcheck("check", "--cpu-timeout", "1", "--timeout", "1", litmus("race", text=RACE)).status == 2
