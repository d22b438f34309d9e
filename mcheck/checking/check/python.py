"""``mcheck.ptx.check``: checks a module with a launch given as Python values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mcheck.base.errors import InputError
from mcheck.checking.check.command import crashed_check
from mcheck.checking.check.files import read_launch_beside
from mcheck.checking.check.modules import check_text, combine_launch
from mcheck.checking.policy.question import Completeness
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.pool import run_cases
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import failed_result
from mcheck.frontend.ptx import launch_reader, reader
from mcheck.frontend.ptx.launch_reader import LaunchDescription

TEXT = "<ptx>"


def check_python(
    text_or_path: str | os.PathLike[str],
    launch: Mapping[str, Any] | str | os.PathLike[str] | None,
    settings: Settings,
    options: Options,
) -> Result:
    """Checks a module; see ``mcheck.ptx.check`` for the parameters."""
    given = os.fspath(text_or_path)
    path = TEXT if is_text(given) else given
    try:
        text = given if path == TEXT else reader.read_text(path)
        said = _launch(launch, path)
    except InputError as error:
        return failed_result(path, None, error, settings, 0.0, Completeness.FINDINGS)

    def run(case: Case, settings: Settings) -> Result:
        return check_text(text, case.path, said, settings, options)

    return next(iter(run_cases([Case(path, text=text)], settings, 1, run, crashed_check)))


def is_text(text_or_path: str) -> bool:
    """Whether the argument is the text of a module and no path: it has several lines, or begins like a module."""
    return "\n" in text_or_path or text_or_path.lstrip().startswith(".version")


def _launch(launch: Mapping[str, Any] | str | os.PathLike[str] | None, module: str) -> LaunchDescription:
    if launch is None:
        return combine_launch(None if module == TEXT else read_launch_beside(module))
    return (
        launch_reader.from_object(launch) if isinstance(launch, Mapping) else launch_reader.from_file(os.fspath(launch))
    )
