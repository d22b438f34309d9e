"""Command-line options for the launch of a PTX module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mcheck.tools.cli.configuration import is_on_command_line
from mcheck.tools.cli.options import together

if TYPE_CHECKING:
    from mcheck.checking.run.case import LaunchText


options = together(
    click.option("--launch", "launch_file", metavar="FILE", help="Launch of a .ptx or .cu file, as JSON or TOML."),
    click.option("--entry", metavar="NAME", help="Kernel to launch, if the module has several."),
    click.option("--grid", metavar="X,Y,Z", help="CTAs in the grid."),
    click.option("--block", metavar="X,Y,Z", help="Threads in a CTA."),
    click.option("--cluster", metavar="X,Y,Z", help="CTAs in a cluster."),
    click.option("--shared", metavar="BYTES", help="Size of dynamic shared memory."),
    click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="Kernel parameter: a number or JSON."),
)
"""The options of a launch."""
FIELDS = ("entry", "grid", "block", "cluster", "shared")


def read_options(paths: Sequence[str], given: dict[str, Any]) -> LaunchText | None:
    """The launch that the options describe, or None if there are none; refused if no path is a PTX module."""
    from mcheck.checking.check.files import is_module, is_source
    from mcheck.checking.run.case import LaunchText
    from mcheck.frontend.litmus.source import read_source

    file: str | None = given["launch_file"]
    fields = tuple((name, given[name]) for name in FIELDS if given[name] is not None)
    params = tuple(_pair(text) for text in given["params"])
    if file is None and not fields and not params:
        return None
    asked = fields or params or is_on_command_line(click.get_current_context(), "launch_file")
    if asked and not any(is_module(path) or is_source(path) for path in paths):
        raise click.UsageError("launch options need a PTX module or CUDA C++, but no path is a .ptx or .cu file")
    return LaunchText(text=None if file is None else read_source(file), path=file or "", fields=fields, params=params)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"--param {text} is not NAME=VALUE")
    return name.strip(), value.strip()
