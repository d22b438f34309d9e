"""The tools of the server, over MCP on standard input and output, with the package mcp."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from mcheck import __version__
from mcheck.base.errors import McheckError
from mcheck.base.records import dataclass, replace
from mcheck.checking.run.case import LaunchText, Settings
from mcheck.tools.serve import requests
from mcheck.tools.serve.answers import CheckAnswer, ExplainAnswer, FencesAnswer, FixAnswer, OutcomesAnswer, Reply
from mcheck.tools.serve.processes import Processes
from mcheck.tools.serve.refusals import refuse
from mcheck.tools.serve.requests import Request

INSTRUCTIONS = """mcheck finds races, undefined behaviour and deadlocks in GPU kernels that copy asynchronously
(cp.async, TMA, mbarriers, fences, proxies), by a formal memory model of the PTX ISA; it needs no GPU. Call check with
a kernel sketch or litmus test (.litmus), a PTX module (.ptx) with its launch, or CUDA C++ (.cu). A program is right
only if the answer has "clean": true. "clean": null means that it was not decided: that is no success, and
why_not_decided says why. Each bug has the place, the fix in words, and where possible edits; apply them and check
again, or call fix, which tries them. explain gives the rule behind a code."""

Path = Annotated[
    str | None, Field(description="The file to look at (.litmus, .ptx, .cu), or the name under which text is meant.")
]
Text = Annotated[str | None, Field(description="The contents, if they are not those of the file at path.")]
Launch = Annotated[
    dict[str, Any] | str | None,
    Field(
        description='How a .ptx or .cu kernel is launched: an object such as {"entry": "kernel", "grid": [4, 1, 1], '
        '"block": [128, 1, 1], "params": {"n": 8, "x": {"buffer": 4096}}}, or the path of a launch file. By default '
        "K.json or K.launch.json beside the kernel."
    ),
]
Model = Annotated[str | None, Field(description="The memory model, by default the file's own, else ptx-9.0.")]
Profile = Annotated[
    Literal["strict", "ptx", "permissive"] | None, Field(description="How disputed points of the ISA are read.")
]
Engine = Annotated[Literal["auto", "explicit", "z3", "protocol", "both"], Field(description="Leave it auto.")]
Codes = Annotated[list[str], Field(description="Codes of findings or their prefixes (RACE, UB2).")]
Seconds = Annotated[float | None, Field(gt=0, lt=1e6, description="Limit in seconds, instead of that of the server.")]
Cpu = Annotated[float | None, Field(gt=0, lt=1e6, description="Limit in seconds of the processor, instead of timeout.")]
Memory = Annotated[int | None, Field(ge=128, lt=1 << 22, description="Limit of memory in MiB.")]
Unroll = Annotated[int, Field(ge=0, le=1000, description="How often a loop with side effects is unrolled.")]
Arch = Annotated[str | None, Field(description="The target of a .cu file, such as sm_90a.")]
_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The options of the command: limits that hold where a request names none, and whether ``main`` may be run."""

    settings: Settings
    jobs: int
    run: bool = False


class Tools:
    """What the tools share."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self.processes = Processes(options.jobs)

    async def ask(
        self,
        kind: str,
        *,
        path: str | None = None,
        text: str | None = None,
        launch: dict[str, Any] | str | None = None,
        model: str | None = None,
        profile: str | None = None,
        unroll: int = 2,
        timeout: float | None = None,  # noqa: ASYNC109 - a limit of the answer, kept where it is computed
        cpu_timeout: float | None = None,
        memory: int | None = None,
        **more: Any,
    ) -> CallToolResult:
        """The result of a tool."""
        settings = self._options.settings
        settings = replace(
            settings,
            model=model or settings.model,
            profile=profile or settings.profile,
            unroll=unroll,
            memory=settings.memory if memory is None else memory << 20,
        )
        if timeout is not None or cpu_timeout is not None:
            by_processor = cpu_timeout is not None
            settings = replace(settings, timeout=cpu_timeout or timeout, processor_time=by_processor)
        request = Request(kind=kind, path=path or "", text=text, settings=settings, run=self._options.run, **more)
        try:
            if kind != requests.EXPLAIN:
                request = replace(request, path=requests.name_text(path, text), launch=_read_launch(launch))
        except McheckError as error:
            return _result(refuse(request, error))
        return _result(await self.processes.answer(request))


def _read_launch(launch: dict[str, Any] | str | None) -> LaunchText | None:
    """The launch that a request gives; raises ``InputError`` if its file cannot be read."""
    if launch is None:
        return None
    if isinstance(launch, dict):
        return LaunchText(text=json.dumps(launch, indent=1), path="launch")
    from mcheck.frontend.litmus.source import read_source

    return LaunchText(text=read_source(launch), path=launch)


def _result(reply: Reply) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=reply.text)],
        structured_content=reply.document,
        is_error=reply.refused,
    )


def make_server(options: ServerOptions) -> MCPServer[None]:
    """The server with its tools."""
    tools = Tools(options)

    @asynccontextmanager
    async def lifespan(_: MCPServer[None]) -> AsyncIterator[None]:
        tools.processes.start()
        try:
            yield
        finally:
            tools.processes.stop()

    server: MCPServer[None] = MCPServer(
        "mcheck", title="mcheck", instructions=INSTRUCTIONS, version=__version__, lifespan=lifespan,
        log_level="WARNING", subscriptions=False,
    )  # fmt: skip

    @server.tool(title="Check a kernel", annotations=_READS)
    async def check(
        path: Path = None,
        text: Text = None,
        launch: Launch = None,
        model: Model = None,
        profile: Profile = None,
        engine: Engine = "auto",
        select: Codes = [],  # noqa: B006 - pydantic copies it, and it shows in the schema
        ignore: Codes = [],  # noqa: B006
        unroll: Unroll = 2,
        arch: Arch = None,
        timeout: Seconds = None,  # noqa: ASYNC109
        cpu_timeout: Cpu = None,
        memory: Memory = None,
    ) -> Annotated[CallToolResult, CheckAnswer]:
        """Find races, undefined behaviour and deadlocks in a kernel sketch, litmus test, PTX module or CUDA C++ source.
        Right is only what has "clean": true; null means not decided. Each bug has its source line, a fix and edits.
        """
        return await tools.ask(
            requests.CHECK, path=path, text=text, launch=launch, model=model, profile=profile, engine=engine,
            select=tuple(select), ignore=tuple(ignore), unroll=unroll, arch=arch, timeout=timeout,
            cpu_timeout=cpu_timeout, memory=memory,
        )  # fmt: skip

    @server.tool(title="Explain a code", annotations=_READS)
    async def explain(
        code: Annotated[str, Field(description="The code of a finding, such as RACE004.")],
    ) -> Annotated[CallToolResult, ExplainAnswer]:
        """Explain the code of a finding: the rule and its section, the fix, an incorrect and a correct program."""
        return await tools.ask(requests.EXPLAIN, code=code)

    @server.tool(title="Final states of a litmus test", annotations=_READS)
    async def outcomes(
        path: Path = None,
        text: Text = None,
        model: Model = None,
        profile: Profile = None,
        engine: Engine = "auto",
        unroll: Unroll = 2,
        timeout: Seconds = None,  # noqa: ASYNC109
        cpu_timeout: Cpu = None,
        memory: Memory = None,
    ) -> Annotated[CallToolResult, OutcomesAnswer]:
        """List the final states that the memory model allows for a litmus test, each with an execution, and say whether
        its condition holds. The list is whole only if "complete" is true.
        """
        return await tools.ask(
            requests.OUTCOMES, path=path, text=text, model=model, profile=profile, engine=engine, unroll=unroll,
            timeout=timeout, cpu_timeout=cpu_timeout, memory=memory,
        )  # fmt: skip

    @server.tool(title="Try the fixes of a kernel's bugs", annotations=_READS)
    async def fix(
        path: Path = None,
        text: Text = None,
        launch: Launch = None,
        model: Model = None,
        profile: Profile = None,
        arch: Arch = None,
        timeout: Seconds = None,  # noqa: ASYNC109
        cpu_timeout: Cpu = None,
        memory: Memory = None,
    ) -> Annotated[CallToolResult, FixAnswer]:
        """Find edits after which a kernel is proved clean: those that its findings name, and else other repairs, each
        tried by a check of the edited text. Writes nothing. Only "fixed": true is a repair: read its diff.
        """
        return await tools.ask(
            requests.FIX, path=path, text=text, launch=launch, model=model, profile=profile, arch=arch, timeout=timeout,
            cpu_timeout=cpu_timeout, memory=memory,
        )  # fmt: skip

    @server.tool(title="Which fences a proof needs", annotations=_READS)
    async def fences(
        path: str,
        timeout: Seconds = None,  # noqa: ASYNC109
        memory: Memory = None,
    ) -> Annotated[CallToolResult, FencesAnswer]:
        """Say which fences, waits, orders and scopes of a proved sketch (.litmus) can go or be weaker, and which are
        needed, with what is found without each.
        """
        return await tools.ask(requests.FENCES, path=path, timeout=timeout, memory=memory)

    return server
