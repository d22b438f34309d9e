"""The options that say how a PTX module is launched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mcheck.checking.check.case import LaunchText

Function = Callable[..., Any]

_OPTIONS = (
    click.option("--launch", "launch_file", metavar="FILE", help="How a .ptx module is launched, as JSON."),
    click.option("--entry", metavar="NAME", help="The kernel, if the module has several."),
    click.option("--grid", metavar="X,Y,Z", help="CTAs of the launch."),
    click.option("--block", metavar="X,Y,Z", help="Threads of a CTA."),
    click.option("--cluster", metavar="X,Y,Z", help="CTAs of a cluster."),
    click.option("--shared", metavar="BYTES", help="Dynamic shared memory."),
    click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter: a number, or JSON."),
)
FIELDS = ("entry", "grid", "block", "cluster", "shared")


def options(function: Function) -> Function:
    """Adds the options to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def said(paths: Sequence[str], given: dict[str, Any]) -> LaunchText | None:
    """What the options, by their names, say of the launch of the modules among ``paths``."""
    from mcheck.checking.check.case import LaunchText
    from mcheck.checking.check.files import is_module
    from mcheck.frontend.litmus.source import read_source

    file: str | None = given["launch_file"]
    fields = tuple((name, given[name]) for name in FIELDS if given[name] is not None)
    params = tuple(_pair(text) for text in given["params"])
    if file is None and not fields and not params:
        return None
    if not any(map(is_module, paths)):
        raise click.UsageError("a launch is for a PTX module, and none of the paths is a .ptx file")
    return LaunchText(text=None if file is None else read_source(file), path=file or "", fields=fields, params=params)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"--param {text} is not NAME=VALUE")
    return name.strip(), value.strip()
