"""A pytest plugin: every ``.litmus`` file that pytest comes across is a test, if that is asked for, and where findings
are looked for every ``.ptx`` module with a launch beside it.

It does nothing without ``--mcheck`` or the ini option ``mcheck``, and imports nothing of mcheck before the first such
file runs.
"""

from __future__ import annotations

import os
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from _pytest._code.code import TerminalRepr

    from mcheck.checking.check.case import Checked
    from mcheck.checking.run.case import Result, Settings

SUFFIX = ".litmus"
MODULE = ".ptx"
COMMANDS = ("run", "check")


class LitmusWarning(pytest.PytestWarning):
    """What a litmus file is warned of."""


class NotAsExpected(Exception):
    """A file that answers otherwise than it expects, or has no answer; the text says what it says instead."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The flag and the ini options."""
    group = parser.getgroup("mcheck", "litmus files")
    for flag, command in (("--mcheck", "run"), ("--mcheck-check", "check")):  # no values: what follows may be a path
        about = f"collect .litmus files and judge them as mcheck {command} does"
        group.addoption(flag, dest="mcheck", action="store_const", const=command, help=about)
    parser.addini("mcheck", "collect .litmus files: run or check, the command that judges them", default="")
    parser.addini("mcheck_model", "the memory model of litmus files, a name or a path below the root", default="")
    parser.addini("mcheck_timeout", "seconds for a litmus file; one that takes longer fails", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Refuses options that mean nothing, before anything runs."""
    if _command(config):
        _timeout(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> LitmusFile | None:
    """The collector of a litmus file or a module, where that is asked for."""
    if file_path.suffix not in (SUFFIX, MODULE):
        return None
    command = _command(parent.config)
    if not command or (file_path.suffix == MODULE and (command != "check" or not _launched(file_path))):
        return None
    collector: LitmusFile = LitmusFile.from_parent(parent, path=file_path)
    return collector


def _command(config: pytest.Config) -> str:
    """``run``, ``check``, or nothing where litmus files are left alone."""
    given = config.getoption("mcheck") or config.getini("mcheck")
    if given and given not in COMMANDS:
        raise pytest.UsageError(f"ini option mcheck: {given!r} is neither {' nor '.join(COMMANDS)}")
    return str(given)


def _launched(module: Path) -> bool:
    from mcheck.checking.check.files import launch_file

    return launch_file(str(module)) is not None


class LitmusFile(pytest.File):
    """One file, one test."""

    def collect(self) -> Iterable[LitmusTest]:
        """The test, named after the command that judges the file."""
        yield LitmusTest.from_parent(self, name=_command(self.config))


class LitmusTest(pytest.Item):
    """A litmus file as a test: it passes where ``mcheck run``, or ``mcheck check``, finds everything as expected."""

    def runtest(self) -> None:
        """Asks mcheck."""
        from mcheck.report.errors import render_warning

        answer = _answer(self.name, os.path.relpath(self.path), _settings(self.config))
        for message, span in answer.warnings:
            self.warn(LitmusWarning(render_warning(message, span)))
        if said := _beside(answer):
            self.user_properties.append(("mcheck", said))
            self.add_report_section("call", "mcheck", said)
        if answer.status != "ok":
            raise NotAsExpected("\n".join(_told(answer)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """The report of the command; pytest's own text for what is no answer."""
        if isinstance(excinfo.value, NotAsExpected):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Where the test stands and its name in the summary."""
        return self.path, 0, f"mcheck {self.name} {os.path.relpath(self.path)}"


def _timeout(config: pytest.Config) -> float | None:
    """The seconds for a file, if they are limited."""
    given = config.getini("mcheck_timeout")
    try:
        seconds = float(given) if given else None
    except ValueError:
        seconds = 0.0
    if seconds is not None and not (isfinite(seconds) and seconds > 0):
        raise pytest.UsageError(f"ini option mcheck_timeout: {given!r} is no number of seconds")
    return seconds


def _settings(config: pytest.Config) -> Settings:
    from mcheck.checking.run.case import Settings

    model = config.getini("mcheck_model")
    if model.endswith(".cat"):
        model = str(config.rootpath / model)
    return Settings(model=model or None, timeout=_timeout(config))


def _answer(command: str, path: str, settings: Settings) -> Checked | Result:
    """The answer about one file; a process of its own keeps a time limit."""
    from mcheck.checking.check.case import Options
    from mcheck.checking.check.single import crashed_check
    from mcheck.checking.check.task import select_task
    from mcheck.checking.run import single as run
    from mcheck.checking.run.case import Case
    from mcheck.checking.run.pool import run_cases

    case = [Case(path)]
    if command == "run":
        return next(iter(run_cases(case, settings, 1, run.run_case, run.crashed_result)))
    return next(iter(run_cases(case, settings, 1, select_task(Options()), crashed_check)))


def _beside(answer: Checked | Result) -> str:
    """What was found all the same where a file is as it should be."""
    from mcheck.checking.check.case import Checked

    if isinstance(answer, Checked):
        return answer.ignored_text
    return f"{', '.join(answer.unexpected_errors)} found" if answer.unexpected_errors else ""


def _told(answer: Checked | Result) -> Iterator[str]:
    """What the command would say, with the place of an error."""
    from mcheck.checking.check.case import Checked
    from mcheck.report import checked, text
    from mcheck.report.errors import render
    from mcheck.report.lines import plain

    if isinstance(answer, Checked):
        yield from map(plain, checked.describe(answer, errors=False))
    else:
        yield from map(plain, text.describe(answer, errors=False))
    if answer.problem is not None:
        yield render(answer.problem)
