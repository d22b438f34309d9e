"""Defaults of options from ``mcheck.toml`` or ``[tool.mcheck]`` in ``pyproject.toml``.

The nearest of them at or above the first path counts, else that at or above the working directory. What the command
line says wins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from mcheck.base.errors import InputError, Span

TEXT, NUMBER, NAMES, SWITCH = "text", "a number", "a list of names", "true or false"
KEYS: Mapping[str, str] = {
    "model": TEXT, "profile": TEXT, "engine": TEXT, "timeout": NUMBER, "cpu-timeout": NUMBER,
    "memory": TEXT, "unroll": NUMBER, "jobs": NUMBER,
    "select": NAMES, "ignore": NAMES, "assume": NAMES, "arch": TEXT, "nvcc-flags": NAMES, "launch": TEXT,
    "baseline": TEXT, "cache": TEXT, "warnings-as-errors": SWITCH,
}  # fmt: skip
"""The keys, each named after an option, and what their values are."""
_PATHS = frozenset({"launch", "baseline", "cache"})
"""Keys whose values are paths, relative to the folder of the file."""
_PARAMETERS = {"nvcc-flags": "flags", "launch": "launch_file"}
FILES = (("mcheck.toml", ""), ("pyproject.toml", "tool.mcheck"))
"""The files in which options may be, and the table of each."""


class ConfiguredCommand(click.Command):
    """A command whose options have defaults in a file."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the file by the paths on the command line, and read the options."""
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        paths = given.get("paths")
        file, found = read_configuration(paths[0] if isinstance(paths, tuple) and paths else os.curdir)
        ctx.default_map = {_PARAMETERS.get(key, key.replace("-", "_")): value for key, value in found.items()}
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as error:
            name = error.param.name if error.param is not None else None
            if name not in ctx.default_map or is_on_command_line(ctx, name):
                raise
            raise click.BadParameter(f"{error.message} (in {os.path.relpath(file)})", ctx, error.param) from None


def is_on_command_line(ctx: click.Context, parameter: str) -> bool:
    """Whether the user gave this parameter, and no file of options."""
    return ctx.get_parameter_source(parameter) is click.core.ParameterSource.COMMANDLINE


def read_configuration(first: str) -> tuple[str, Mapping[str, Any]]:
    """The file for a path, and the options that it has; raises ``InputError`` for what is wrong in it."""
    for folder in dict.fromkeys((*_folders(first), *_folders(os.curdir))):
        for name, table in FILES:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and (found := _read(path, table)) is not None:
                return path, found
    return "", {}


def _folders(path: str) -> Iterator[str]:
    """The folder of a path, and those above."""
    here = os.path.abspath(path)
    if not os.path.isdir(here):
        here = os.path.dirname(here)
    while True:
        yield here
        above = os.path.dirname(here)
        if above == here:
            return
        here = above


def _read(path: str, table: str) -> Mapping[str, Any] | None:
    """The options in a file; ``None`` if it has no such table."""
    from mcheck.base.files import read_text_file

    try:
        text = read_text_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    if table and not re.search(r"(?m)^\s*\[\s*tool\s*\.\s*mcheck\s*\]", text):
        return None
    import tomllib

    try:
        found: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    for name in table.split(".") if table else ():
        found = found[name]
    return {key: _value(key, value, path, text, table) for key, value in found.items()}


def _value(key: str, value: Any, path: str, text: str, table: str) -> Any:
    span = Span(os.path.relpath(path), _line(text, key, table), 1, len(key))
    kind = KEYS.get(key)
    if kind is None:
        from difflib import get_close_matches

        near = get_close_matches(key.replace("_", "-"), KEYS, n=1)
        hint = f"Did you mean {near[0]}?" if near else None
        raise InputError(f"unknown key {key}", span, expected=f"one of {', '.join(sorted(KEYS))}", hint=hint)
    fits = {
        TEXT: isinstance(value, str),
        NUMBER: isinstance(value, int | float) and not isinstance(value, bool),
        NAMES: isinstance(value, list) and all(isinstance(one, str) for one in value),
        SWITCH: isinstance(value, bool),
    }
    if not fits[kind]:
        raise InputError(f"{key} has a wrong value: {value!r}", span, expected=kind)
    if key in _PATHS or (key == "model" and value.endswith(".cat")):
        return os.path.relpath(os.path.join(os.path.dirname(path), value))
    return value


def _line(text: str, key: str, table: str) -> int:
    """The line of a key; 1 if it is written in another way."""
    start = re.search(r"(?m)^\s*\[\s*tool\s*\.\s*mcheck\s*\]", text) if table else None
    begin = start.end() if start else 0
    found = re.compile(rf'(?m)^[ \t]*["\']?{re.escape(key)}["\']?\s*=').search(text, begin)
    return text.count("\n", 0, found.start()) + 1 if found else 1
