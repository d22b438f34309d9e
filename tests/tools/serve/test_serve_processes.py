"""The processes of the server: a request can be stopped, one that dies is told of, and nothing outlives the server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import PIPELINE, ROOT, SLOW

from mcheck.checking.run.case import LaunchText, Settings
from mcheck.tools.serve import processes, requests
from mcheck.tools.serve.processes import Processes
from mcheck.tools.serve.requests import Request

QUEUE = str(ROOT / "tests" / "simt" / "corpus" / "cuda" / "queue.ptx")
LONG = Request(kind=requests.OUTCOMES, path="slow.litmus", text=SLOW, settings=Settings(timeout=200))
SHORT = Request(kind=requests.CHECK, path="pipeline.litmus", text=PIPELINE, settings=Settings(timeout=60))

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc to see the processes in")


def serve(scenario: Callable[[Processes], Awaitable[None]], jobs: int = 2) -> None:
    async def whole() -> None:
        served = Processes(jobs)
        served.start()
        try:
            await scenario(served)
        finally:
            served.stop()

    asyncio.run(asyncio.wait_for(whole(), 240))


def children(pid: int) -> list[int]:
    found = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [child for child in found if alive(child)]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never came to that")


def worker_of(served: Processes) -> int | None:
    """The process that explores, a fork of the fork that has the request."""
    for fork in children(served._process.pid):
        for worker in children(fork):
            return worker
    return None


def test_a_call_that_is_cancelled_stops_its_processes_and_no_other() -> None:
    async def scenario(served: Processes) -> None:
        call = asyncio.create_task(served.answer(LONG))
        await until(lambda: worker_of(served) is not None)
        server = served._process.pid
        (fork,) = children(server)
        worker = worker_of(served)
        other = asyncio.create_task(served.answer(SHORT))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: not alive(fork) and not alive(worker))
        assert (await other).answer.clean is False
        assert served._process.pid == server

    serve(scenario)


@pytest.mark.daily(one_of="a server")
def test_a_worker_that_dies_is_told_of_and_the_server_lives() -> None:
    async def scenario(served: Processes) -> None:
        call = asyncio.create_task(served.answer(LONG))
        await until(lambda: worker_of(served) is not None)
        os.kill(worker_of(served), signal.SIGSEGV)
        answer = (await call).answer
        assert (answer.decided, answer.holds) == (False, None)
        assert "died with signal 11" in answer.why_not_decided[0]
        call = asyncio.create_task(served.answer(LONG))
        await until(lambda: worker_of(served) is not None)
        os.kill(children(served._process.pid)[0], signal.SIGKILL)
        answer = (await call).answer
        assert not answer.decided
        assert "died" in answer.why_not_decided[0]
        assert (await served.answer(SHORT)).answer.clean is False

    serve(scenario)


@pytest.mark.daily(days=3, least=0)
def test_the_process_that_forks_is_started_again() -> None:
    async def scenario(served: Processes) -> None:
        assert (await served.answer(SHORT)).answer.clean is False
        os.kill(served._process.pid, signal.SIGKILL)
        served._process.wait()
        assert (await served.answer(SHORT)).answer.clean is False

    serve(scenario)


@pytest.mark.daily(one_of="a server")
def test_time_runs_out_and_the_next_request_is_answered() -> None:
    async def scenario(served: Processes) -> None:
        late = Request(kind=requests.CHECK, path=QUEUE, settings=Settings(timeout=1))
        answer = (await served.answer(late)).answer
        assert (answer.decided, answer.clean) == (False, None)
        first = (await served.answer(SHORT)).answer
        again = (await served.answer(SHORT)).answer
        assert (first.cost.cached, again.cost.cached, again.bugs) == (False, True, first.bugs)

    serve(scenario, jobs=1)


@pytest.mark.daily(one_of="a server")
def test_a_fork_that_keeps_no_limit_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(served: Processes) -> None:
        await served.answer(Request(kind=requests.EXPLAIN, code="RACE001"))  # it is warm now
        answer = (await served.answer(LONG)).answer
        assert (answer.decided, answer.holds) == (False, None)
        assert "no answer within 200 s" in answer.why_not_decided[0]
        await until(lambda: not children(served._process.pid))

    monkeypatch.setattr(processes, "patience", lambda request: 100.0 if request.kind == requests.EXPLAIN else 1.0)
    serve(scenario)


@pytest.mark.daily(one_of="a server")
def test_nothing_outlives_the_server() -> None:
    async def scenario(served: Processes) -> None:
        call = asyncio.create_task(served.answer(LONG))
        await until(lambda: worker_of(served) is not None)
        server = served._process.pid
        fork, worker = children(server)[0], worker_of(served)
        call.cancel()
        served.stop()
        await until(lambda: not any(map(alive, (server, fork, worker))))

    serve(scenario)


@pytest.mark.daily(one_of="a server")
def test_a_second_answer_takes_little_of_the_processor() -> None:
    """The figure that ``docs/agents.md`` names; a busy machine takes up to twice that."""

    async def scenario(served: Processes) -> None:
        module = (ROOT / "tests" / "simt" / "corpus" / "cuda" / "ring_bulk.ptx").read_text()
        launch = (ROOT / "tests" / "simt" / "corpus" / "cuda" / "ring_bulk.json").read_text()
        costs = []
        for number in range(3):
            text = f"{module}// {number}\n"
            asked = Request(
                kind=requests.CHECK, path="ring_bulk.ptx", text=text, settings=Settings(timeout=60),
                launch=LaunchText(text=launch, path="launch"),
            )  # fmt: skip
            answer = (await served.answer(asked)).answer
            assert (answer.clean, answer.cost.cached) == (True, False)
            costs.append(answer.cost.processor_seconds)
        assert min(costs[1:]) < 0.6

    serve(scenario)


def test_without_the_package_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['mcp'] = None; from mcheck.tools.cli.main import main; sys.exit(main(['serve']))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert "needs the package mcp" in ended.stderr
    assert "mcheck-ptx[mcp]" in ended.stderr
    assert "Traceback" not in ended.stderr
