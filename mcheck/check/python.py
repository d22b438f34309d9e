"""``mcheck.ptx.check``: a module and a launch as Python has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mcheck.check.case import Checked, Options, Settings
from mcheck.check.files import launch_beside
from mcheck.check.modules import check_text, launch_of
from mcheck.check.single import failed, lost
from mcheck.errors import InputError
from mcheck.ptx import launching, reading
from mcheck.ptx.launching import Given
from mcheck.run.case import Case
from mcheck.run.pool import run_cases

TEXT = "<ptx>"


def checked(
    text_or_path: str | os.PathLike[str],
    launch: Mapping[str, Any] | str | os.PathLike[str] | None,
    model: str | None,
    profile: str,
    engine: str,
    timeout: float | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
) -> Checked:
    """The answer; ``mcheck.ptx.check`` says what is what."""
    settings = Settings(model=model, profile=profile, timeout=timeout)
    options = Options(engine=engine, select=select, ignore=ignore)
    given = os.fspath(text_or_path)
    path = TEXT if is_text(given) else given
    try:
        text = given if path == TEXT else reading.text(path)
        said = _launch(launch, path)
    except InputError as error:
        return failed(path, None, error, settings, 0.0)

    def run(case: Case, settings: Settings) -> Checked:
        return check_text(text, case.path, said, settings, options)

    return next(iter(run_cases([Case(path, text=text)], settings, 1, run, lost)))


def is_text(text_or_path: str) -> bool:
    """Whether it is the text of a module: no path has several lines, or begins like one."""
    return "\n" in text_or_path or text_or_path.lstrip().startswith(".version")


def _launch(launch: Mapping[str, Any] | str | os.PathLike[str] | None, module: str) -> Given:
    if launch is None:
        return launch_of(None if module == TEXT else launch_beside(module))
    return launching.from_object(launch) if isinstance(launch, Mapping) else launching.from_file(os.fspath(launch))
