"""``mcheck serve``."""

from __future__ import annotations

import click

from mcheck.tools.cli import options


@click.command("serve", short_help="Answer agents and programs over MCP on standard input and output.")
@options.model
@options.profile
@options.time_limit("--timeout", "Limit per request that names none; the answer is not decided after it.", 60.0)
@options.cpu_timeout
@options.memory
@options.jobs("Requests answered")
@click.option("--run", is_flag=True, help="Run the main() of a .cu file, to record its launches, if a client asks.")
def command(
    model: str | None,
    profile: str,
    timeout: float,
    cpu_timeout: float | None,
    memory: int | None,
    jobs: int | None,
    run: bool,
) -> int:
    """Serve the tools check, explain, outcomes, fix and fences by the Model Context Protocol (MCP) on standard input
    and output, until the input ends. Modules and models stay loaded, and answers are kept while the server runs.

    Needs the package of the extra mcp.
    """
    from mcheck.base.errors import InputError
    from mcheck.checking.run.case import Settings
    from mcheck.checking.run.pool import default_jobs

    try:
        from mcheck.tools.serve.server import ServerOptions, make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "pydantic"):
            raise
        hint = "pip install 'mcheck-ptx[mcp]', or '.[mcp]' in a checkout of mcheck"
        raise InputError(f"mcheck serve needs the package mcp: {error}", hint=hint) from None
    from mcheck.tools.serve.processes import require_forks

    require_forks()
    limit, by_processor = (timeout, False) if cpu_timeout is None else (cpu_timeout, True)
    settings = Settings(model=model, profile=profile, timeout=limit, processor_time=by_processor, memory=memory)
    make_server(ServerOptions(settings=settings, jobs=jobs or default_jobs(), run=run)).run("stdio")
    return 0
