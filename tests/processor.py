"""Where the processor's time goes: ``--cpu-report=FILE`` writes the seconds of each test, each file and each folder.

Seconds of the processes that a test has waited for are its own. What is spent before the first test has a line too:
each worker of xdist imports and collects all tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from benchmarks.processes import spent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-report", type=Path, metavar="FILE", help="write the seconds of the processor of each test")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.cpu_report is not None:
        config.pluginmanager.register(CpuReport(config))


class CpuReport:
    """The seconds so far; in a worker of xdist, which sends them on, and in the process that writes the file."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.tests: Counter[str] = Counter()
        self.before_tests = self.marked = 0.0

    def pytest_collection_finish(self) -> None:
        self.before_tests = self.marked = spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        before, self.marked = self.marked, spent()
        report.processor = self.marked - before  # xdist sends what a report has
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.tests[report.nodeid] += report.processor

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.before_tests += getattr(node, "workeroutput", {}).get("before_tests", 0.0)

    def pytest_sessionfinish(self) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["before_tests"] = self.before_tests
        else:
            self.config.option.cpu_report.write_text(self.text(), encoding="utf-8")

    def text(self) -> str:
        """A line ``seconds name`` for the time before the tests, for each folder, file and test, the longest first."""
        sums: Counter[str] = Counter()
        for test, seconds in self.tests.items():
            file = PurePosixPath(test.partition("::")[0])
            sums.update(dict.fromkeys([test, str(file), *map(str, file.parents[:-1])], seconds))
        lines = [("before the tests", self.before_tests), *sums.most_common()]
        return "".join(f"{seconds:9.3f} {name}\n" for name, seconds in lines)
