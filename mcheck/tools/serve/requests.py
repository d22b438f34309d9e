"""Requests: what a client asks, with the limits of the answer."""

from __future__ import annotations

import os
from dataclasses import field

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass
from mcheck.checking.check.files import is_module, is_source
from mcheck.checking.run.case import LaunchText, Options, Settings
from mcheck.checking.run.collect import is_test

CHECK, EXPLAIN, OUTCOMES, FIX, FENCES = "check", "explain", "outcomes", "fix", "fences"
NAMES = (("__global__", "kernel.cu"), (".version", "module.ptx"))
"""The names of texts without a path, by what they contain; others are litmus tests."""
TEST = "test.litmus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question of a ``kind`` about the file at ``path``, or about ``text`` as if it were there. ``run``: the ``main``
    of a CUDA C++ source may be run. ``code`` is that of ``explain``.
    """

    kind: str
    path: str = ""
    text: str | None = None
    launch: LaunchText | None = None
    settings: Settings = field(default_factory=Settings)
    engine: str = "auto"
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    arch: str | None = None
    include: str = ""
    run: bool = False
    code: str = ""

    @property
    def options(self) -> Options:
        """The options of a check."""
        return Options(engine=self.engine, select=self.select, ignore=self.ignore, launch=self.launch)


def name_text(path: str | None, text: str | None) -> str:
    """The path of a file, or the name of a text that is in none; raises ``InputError``."""
    if path is None and text is None:
        raise InputError("neither a path nor a text is given", expected="path, text, or both")
    if path is None:
        assert text is not None
        return next((name for mark, name in NAMES if mark in text), TEST)
    if not (is_test(path) or is_module(path) or is_source(path)):
        raise InputError(
            f"{path} is not a file that mcheck checks", expected="a name that ends in .litmus, .ptx or .cu",
            hint="a kernel in Python is checked as the PTX that its compiler makes, with the launch beside it",
        )  # fmt: skip
    if text is None and not os.path.isfile(path):
        raise InputError(f"there is no file {path}")
    return path
