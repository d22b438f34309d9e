"""A pytest plugin that collects ``.litmus`` files as tests, and for ``check`` also ``.ptx`` modules with a launch.

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

    from mcheck.checking.run.case import Settings
    from mcheck.checking.run.result import Result

SUFFIX = ".litmus"
MODULE = ".ptx"
COMMANDS = ("run", "check")


class LitmusWarning(pytest.PytestWarning):
    """A warning about a litmus file."""


class NotAsExpected(Exception):
    """A file whose answer is missing or differs from its expectations; the text is the report."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags and the ini options."""
    group = parser.getgroup("mcheck", "litmus files")
    for flag, command in (("--mcheck", "run"), ("--mcheck-check", "check")):  # without values: a path may follow
        about = f"collect .litmus files as tests, run by mcheck {command}"
        group.addoption(flag, dest="mcheck", action="store_const", const=command, help=about)
    parser.addini("mcheck", "collect .litmus files as tests: run or check, the command to use", default="")
    parser.addini("mcheck_model", "memory model of litmus files: a name, or a path relative to the root", default="")
    parser.addini("mcheck_timeout", "time limit per litmus file in seconds; it fails after that", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Reject invalid options before anything runs."""
    if _command(config):
        _timeout(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> LitmusFile | None:
    """The collector of a litmus file or a module, if enabled."""
    if file_path.suffix not in (SUFFIX, MODULE):
        return None
    command = _command(parent.config)
    if not command or (file_path.suffix == MODULE and (command != "check" or not _launched(file_path))):
        return None
    collector: LitmusFile = LitmusFile.from_parent(parent, path=file_path)
    return collector


def _command(config: pytest.Config) -> str:
    """``run`` or ``check``; empty if litmus files are not collected."""
    given = config.getoption("mcheck") or config.getini("mcheck")
    if given and given not in COMMANDS:
        raise pytest.UsageError(f"ini option mcheck: {given!r} is not {' or '.join(COMMANDS)}")
    return str(given)


def _launched(module: Path) -> bool:
    from mcheck.checking.check.files import launch_file

    return launch_file(str(module)) is not None


class LitmusFile(pytest.File):
    """A file with a single test."""

    def collect(self) -> Iterable[LitmusTest]:
        """The test, named after the command."""
        yield LitmusTest.from_parent(self, name=_command(self.config))


class LitmusTest(pytest.Item):
    """A litmus file as a test: it passes if ``mcheck run``, or ``mcheck check``, finds everything as expected."""

    def runtest(self) -> None:
        """Run mcheck on the file."""
        from mcheck.report.errors import render_warning

        answer = _answer(self.name, os.path.relpath(self.path), _settings(self.config))
        for message, span in answer.warnings:
            self.warn(LitmusWarning(render_warning(message, span)))
        if said := _mentioned(self.name, answer):
            self.user_properties.append(("mcheck", said))
            self.add_report_section("call", "mcheck", said)
        if answer.status != "ok":
            raise NotAsExpected("\n".join(_report(self.name, answer)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str | TerminalRepr:
        """The report of the command for an unexpected answer; otherwise pytest's own text."""
        if isinstance(excinfo.value, NotAsExpected):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """The file of the test and its name in the summary."""
        return self.path, 0, f"mcheck {self.name} {os.path.relpath(self.path)}"


def _timeout(config: pytest.Config) -> float | None:
    """The time limit per file in seconds, if there is one."""
    given = config.getini("mcheck_timeout")
    try:
        seconds = float(given) if given else None
    except ValueError:
        seconds = 0.0
    if seconds is not None and not (isfinite(seconds) and seconds > 0):
        raise pytest.UsageError(f"ini option mcheck_timeout: {given!r} is not a positive number of seconds")
    return seconds


def _settings(config: pytest.Config) -> Settings:
    from mcheck.checking.run.case import Settings

    model = config.getini("mcheck_model")
    if model.endswith(".cat"):
        model = str(config.rootpath / model)
    return Settings(model=model or None, timeout=_timeout(config))


def _answer(command: str, path: str, settings: Settings) -> Result:
    """The answer about one file, from a separate process if there is a time limit."""
    from mcheck.checking.check.command import check_command
    from mcheck.checking.run.case import Case, Options
    from mcheck.checking.run.command import RUN
    from mcheck.checking.run.pool import run_cases

    chosen = RUN if command == "run" else check_command(Options())
    return next(iter(run_cases([Case(path)], settings, 1, chosen.task, chosen.lost)))


def _mentioned(command: str, answer: Result) -> str:
    """Findings to mention although the file is as expected."""
    if command == "check":
        return answer.ignored_text
    return f"{', '.join(answer.unexpected_errors)} found" if answer.unexpected_errors else ""


def _report(command: str, answer: Result) -> Iterator[str]:
    """The report of the command, with the place of an error."""
    from mcheck.report import checked, text
    from mcheck.report.errors import render
    from mcheck.report.lines import plain

    describe = checked.describe if command == "check" else text.describe
    yield from map(plain, describe(answer, errors=False))
    if answer.problem is not None:
        yield render(answer.problem)
