"""``mcheck lsp``."""

from __future__ import annotations

import click

from mcheck.tools.cli import options


@click.command("lsp", short_help="Run the language server on standard input and output.")
@options.model
@options.profile
@options.time_limit("--timeout", "Limit per check; an edit stops the check.", 10.0)
@options.memory
def command(model: str | None, profile: str, timeout: float, memory: int | None) -> int:
    """Run a language server (LSP) on standard input and output: diagnostics while typing, hovers, completion,
    definitions, quick fixes and outlines for litmus tests, kernel sketches, PTX modules and cat models; findings at the
    lines of CUDA C++ and Python.

    Needs the packages of the extra lsp.
    """
    from mcheck.base.errors import InputError
    from mcheck.checking.run.case import Settings

    try:
        from mcheck.tools.lsp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        hint = "pip install '.[lsp]' in a checkout of mcheck"
        raise InputError(f"the package {error.name} is not installed", hint=hint) from None
    serve(Settings(model=model, profile=profile, timeout=timeout, memory=memory))
    return 0
