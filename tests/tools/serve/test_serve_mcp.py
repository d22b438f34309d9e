"""The server by the client of the package mcp, and nothing else: an agent's loop, errors, limits, cancellation."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="mcp is not installed: pip install '.[mcp]'")

sys.path.insert(0, str(Path(__file__).parent))

from mcp import Client, StdioServerParameters, stdio_client
from planted import LAUNCH, MODULE, PIPELINE, REFILL, ROOT, SLOW, edited

PLANTED: list[dict[str, Any]] = [
    {"path": "refill.litmus", "text": REFILL},
    {"path": "pipeline.litmus", "text": PIPELINE},
    {"path": "racy.ptx", "text": MODULE, "launch": LAUNCH},
]


@asynccontextmanager
async def agent(*options: str, cwd: Path | None = None, **more: Any) -> AsyncIterator[Client]:
    """A client of a server of its own."""
    paths = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "mcheck", "serve", *options], env=environment, cwd=cwd
    )
    async with Client(stdio_client(server), **more) as client:
        yield client


def talk(scenario: Callable[[Client], Awaitable[None]], *options: str, **more: Any) -> None:
    async def whole() -> None:
        async with agent(*options, **more) as client:
            await scenario(client)

    asyncio.run(asyncio.wait_for(whole(), 240))


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    found = await client.call_tool(tool, arguments)
    assert found.is_error is False, found.content
    return found.structured_content


def test_an_agent_mends_three_planted_bugs() -> None:
    """Check, look at the line, apply the edits of the answer, check again: until clean is true."""

    async def scenario(client: Client) -> None:
        for planted in PLANTED:
            mended = dict(planted)
            for _ in range(3):
                said = await answer(client, "check", **mended)
                if said["clean"] is True:
                    break
                assert (said["decided"], said["clean"]) == (True, False)
                bug = said["bugs"][0]
                line = mended["text"].split("\n")[bug["place"]["line"] - 1]
                assert bug["place"]["source"] == line.strip()
                page = await answer(client, "explain", code=bug["code"])
                assert page["fix"]
                assert bug["edits"], bug
                mended["text"] = edited(mended["text"], bug["edits"])
            assert (said["verdict"], said["decided"], said["clean"]) == ("proved", True, True)
            assert mended["text"] != planted["text"]
            fixed = await answer(client, "fix", **planted)
            assert (fixed["fixed"], edited(planted["text"], fixed["edits"])) == (True, mended["text"])

    talk(scenario)


def test_tools_describe_what_they_take_and_give() -> None:
    async def scenario(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"check", "explain", "outcomes", "fix", "fences"}
        for tool in tools.values():
            assert tool.description
            assert tool.annotations.read_only_hint is True
            assert tool.output_schema["type"] == "object"
        given = tools["check"].output_schema
        assert {"type": "null"} in given["properties"]["clean"]["anyOf"]
        assert {"clean", "decided", "verdict", "bugs", "why_not_decided"} <= set(given["required"])
        launch = tools["check"].input_schema["properties"]["launch"]
        assert "grid" in launch["description"]
        assert "clean" in client.instructions

    talk(scenario)


def test_a_mistake_is_an_error_with_its_place() -> None:
    async def scenario(client: Client) -> None:
        wrong = await client.call_tool("check", {"text": REFILL.replace("st.shared", "st.shered")})
        assert wrong.is_error
        (error,) = wrong.structured_content["errors"]
        assert (error["path"], error["line"]) == ("test.litmus", 10)
        assert "did you mean" in error["hint"]
        assert wrong.structured_content["clean"] is None
        for arguments in ({}, {"path": "nowhere.litmus"}, {"path": "kernel.py"}, {"text": REFILL, "timeout": -1},
                          {"text": REFILL, "model": "ptx-0.1"}, {"text": MODULE}):  # fmt: skip
            assert (await client.call_tool("check", arguments)).is_error, arguments
        assert (await client.call_tool("explain", {"code": "RACE404"})).is_error
        assert (await answer(client, "check", text=REFILL))["clean"] is False

    talk(scenario)


def test_a_request_out_of_time_is_open_and_the_next_is_answered(tmp_path: Path) -> None:
    queue = ROOT / "tests" / "simt" / "corpus" / "cuda" / "queue.ptx"

    async def scenario(client: Client) -> None:
        late = await client.call_tool("check", {"path": str(queue), "timeout": 1})
        assert not late.is_error
        assert late.structured_content["clean"] is None
        assert late.structured_content["decided"] is False
        assert late.content[0].text.startswith("not decided")
        late = await client.call_tool("check", {"path": str(queue), "cpu_timeout": 0.3})
        assert late.structured_content["clean"] is None
        path = tmp_path / "pipeline.litmus"
        path.write_text(PIPELINE)
        assert (await answer(client, "check", path=str(path)))["clean"] is False
        assert (await answer(client, "check", path=str(path)))["cost"]["cached"] is True
        states = await answer(client, "outcomes", text=REFILL)
        assert (states["complete"], states["holds"], states["undefined"]) == (True, True, True)

    talk(scenario)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call_that_is_cancelled_makes_room_for_the_next(mode: str) -> None:
    async def scenario(client: Client) -> None:
        call = asyncio.create_task(client.call_tool("outcomes", {"text": SLOW, "timeout": 500}))
        await asyncio.sleep(5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await answer(client, "check", text=PIPELINE))["clean"] is False  # there is one job only

    talk(scenario, "--jobs", "1", mode=mode)


def test_a_text_is_a_cuda_source_if_it_has_a_kernel() -> None:
    async def scenario(client: Client) -> None:
        found = await client.call_tool("check", {"text": "__global__ void nothing() {}\n"})
        said = found.content[0].text
        assert found.is_error
        assert "kernel.cu" in said or "nvcc" in said  # no launch, or no compiler

    talk(scenario)


def test_the_server_ends_when_its_input_does() -> None:
    command = [sys.executable, "-m", "mcheck", "serve"]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False, cwd=ROOT)
    assert (ended.returncode, ended.stdout) == (0, b"")


def test_the_exchange_of_the_documentation_is_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    code, printed = page.split("```python\n")[1].split("```")[0], page.split("```text\n")[1].split("```")[0]
    command = f"command={sys.executable!r}, args=['-m', 'mcheck', 'serve'], env={dict(os.environ)!r}"
    code = code.replace('command="mcheck", args=["serve"]', command)
    assert command in code
    exec(compile(code, "agents.md", "exec"), {})
    assert capsys.readouterr().out == printed
