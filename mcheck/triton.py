"""A pytest plugin that runs a test-suite of Triton kernels without a GPU, and checks each kernel that it launches.

    pytest -p mcheck.triton --mcheck-arch 90 tests

Kernels are compiled for the target and not run; their launches are checked as ``mcheck check`` would. A test fails if
mcheck finds something in a kernel that it launched. ``mcheck.integrations.recording`` has the parts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import field
from fnmatch import fnmatch
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcheck.base.records import dataclass
from mcheck.integrations.recording.answers import AnswerFolder, check_with_mcheck
from mcheck.integrations.recording.launches import KernelLaunch, Recording
from mcheck.integrations.recording.outcome import NumbersNotComputed, outcome
from mcheck.integrations.recording.tally import TestRecord, failing, from_json, message, summarize
from mcheck.integrations.recording.targets import DEVICES

if TYPE_CHECKING:
    from mcheck.integrations.recording.session import Session

TARGETS = "90"
LIMIT = 60.0
FOLDER = "mcheck-kernels"
COMPILED = "triton"
"""The folder beside the answers for what Triton compiles."""
CACHE = "TRITON_CACHE_DIR"
"""Triton's cache does not tell copies of a file apart: a module of a shared one may name the lines of another copy."""
REPORTED = "mcheck_kernels"
"""The attribute of a test's report with its record."""


@dataclass(slots=True)
class _State:
    """What the plugin keeps: the session that records, if this process runs tests, and the records of tests."""

    session: Session | None = None
    folder: AnswerFolder | None = None
    records: list[TestRecord] = field(default_factory=list)


STATE = pytest.StashKey[_State]()
LAUNCHES = pytest.StashKey[Sequence[KernelLaunch]]()
RECORD = pytest.StashKey[TestRecord]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("mcheck-triton", "kernels of Triton without a GPU")
    group.addoption(
        "--mcheck-arch",
        metavar="N[,N]",
        default=TARGETS,
        help="compute capabilities to compile for, such as 80,90,100; with several, the tests run once for each",
    )
    group.addoption(
        "--mcheck-autotune",
        choices=("first", "all"),
        default="first",
        help="of an autotuned kernel, check the first configuration that fits, or all",
    )
    group.addoption("--mcheck-strict", action="store_true", help="a test fails unless its kernels are proved")
    group.addoption(
        "--mcheck-timeout",
        metavar="SECONDS",
        type=float,
        help="time for the check of a launch by the clock; then the answer is unknown",
    )
    group.addoption(
        "--mcheck-cpu-timeout",
        metavar="SECONDS",
        type=float,
        help=f"the same in seconds of the processor, whatever else the machine does ({LIMIT:.0f})",
    )
    group.addoption("--mcheck-folder", metavar="DIR", help="where modules, launches and answers are kept")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before any file of the project is imported: it may ask for the device at once."""
    options = early_config.known_args_namespace
    targets = _targets(options.mcheck_arch)
    read_limit(options)
    for name in ("triton", "torch"):
        if find_spec(name) is None:
            raise pytest.UsageError(f"-p mcheck.triton: the package {name} is not installed")
    state = early_config.stash.setdefault(STATE, _State())
    if len(targets) > 1 or options.help:
        return
    from mcheck.integrations.recording.session import Session

    stack = ExitStack()
    state.session = stack.enter_context(Session(targets[0], options.mcheck_autotune).active())
    early_config.add_cleanup(stack.close)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """With several targets, run the tests in a process for each: what a module imports depends on the target."""
    targets = _targets(config.option.mcheck_arch)
    if len(targets) == 1 or config.option.help or hasattr(config, "workerinput"):
        return None
    worst = 0
    for target in targets:
        command = [sys.executable, "-m", "pytest", *config.invocation_params.args, f"--mcheck-arch={target}"]
        done = subprocess.run(command, cwd=config.invocation_params.dir, check=False)
        worst = max(worst, done.returncode, key=lambda status: (status != pytest.ExitCode.NO_TESTS_COLLECTED, status))
    return worst


def read_limit(options: Any) -> tuple[float, bool]:
    """The seconds that a check may take, and whether they are those of the processor."""
    given = {"--mcheck-timeout": options.mcheck_timeout, "--mcheck-cpu-timeout": options.mcheck_cpu_timeout}
    for name, seconds in given.items():
        if seconds is not None and not (isfinite(seconds) and seconds > 0):
            raise pytest.UsageError(f"{name}: {seconds} is not a positive number of seconds")
    if None not in given.values():
        raise pytest.UsageError(f"{' and '.join(given)}: give only one of them")
    if options.mcheck_timeout is not None:
        return options.mcheck_timeout, False
    return LIMIT if options.mcheck_cpu_timeout is None else options.mcheck_cpu_timeout, True


def _targets(given: str) -> list[int]:
    """The numbers of compute capabilities."""
    found = []
    for part in given.split(","):
        if not (part.strip().isdecimal() and int(part) in DEVICES):
            known = ", ".join(map(str, DEVICES))
            raise pytest.UsageError(f"--mcheck-arch: {part.strip()!r} is not one of {known}")
        found.append(int(part))
    return list(dict.fromkeys(found))


@pytest.hookimpl(trylast=True)  # behind the cache
def pytest_configure(config: pytest.Config) -> None:
    """Find the folder of answers, which the processes of xdist share."""
    from mcheck.checking.cache.keys import version

    shared = getattr(config, "workerinput", {}).get("mcheck_folder")
    given = config.option.mcheck_folder or shared or _cache_folder(config)
    config.option.mcheck_folder = str(given)
    limit, processor_time = read_limit(config.option)
    state = config.stash.setdefault(STATE, _State())
    check = check_with_mcheck(limit, processor_time=processor_time)
    state.folder = AnswerFolder(Path(given), version().hex(), check, limit, processor_time=processor_time)
    if state.session is not None and CACHE not in os.environ:
        os.environ[CACHE] = str(Path(given).resolve() / COMPILED)
        config.add_cleanup(_forget_cache)


def _forget_cache() -> None:
    os.environ.pop(CACHE, None)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of xdist where the answers are."""
    node.workerinput["mcheck_folder"] = node.config.option.mcheck_folder


def _cache_folder(config: pytest.Config) -> str:
    cache = getattr(config, "cache", None)
    return tempfile.mkdtemp(prefix="mcheck-") if cache is None else str(cache.mkdir(FOLDER))


def _recording(config: pytest.Config) -> Recording | None:
    session = config.stash[STATE].session
    return None if session is None else session.recording


# --- what is launched while a module is imported ------------------------------------------------------------------


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """A module whose import is recorded."""
    if _recording(parent.config) is None:
        return None
    made: RecordedModule = RecordedModule.from_parent(parent, path=module_path)
    return made


class RecordedModule(pytest.Module):
    """A module; what it launches when it is imported, as scripts do, is a test of its own."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """The tests of the module, and one for the launches of its import."""
        session = self.config.stash[STATE].session
        assert session is not None
        found: list[pytest.Item | pytest.Collector] = []
        with session.recording.collect() as launches, outcome(session.tensors) as record:
            found += (item for item in super().collect() if not self._is_helper(item))
        if launches:
            found.append(ModuleLaunches.from_parent(self, name="launches", launches=launches, record=record))
        return found

    def _is_helper(self, item: pytest.Item | pytest.Collector) -> bool:
        """Whether it is a function of a script, called test though it takes arguments that no fixture gives it."""
        patterns = self.config.getini("python_files")
        if not isinstance(item, pytest.Function) or any(fnmatch(self.path.name, pattern) for pattern in patterns):
            return False
        about = item._fixtureinfo  # noqa: SLF001 - pytest says it nowhere else
        given = {"request", *about.name2fixturedefs, *(item.callspec.params if hasattr(item, "callspec") else ())}
        return not given.issuperset(about.argnames)


class ModuleLaunches(pytest.Item):
    """The kernels that a module launches when it is imported."""

    def __init__(self, *, launches: Sequence[KernelLaunch], record: TestRecord, **named: Any) -> None:
        super().__init__(**named)
        self._launches = launches
        self.stash[RECORD] = record

    def runtest(self) -> None:
        """Check them."""
        _judge(self, self._launches)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The file."""
        return self.path, 0, f"launches of {self.path.name}"


# --- what tests launch --------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Record what a test and its fixtures launch."""
    recording = _recording(item.config)
    if recording is None:
        return (yield)
    with recording.collect() as launches:
        item.stash[LAUNCHES] = launches
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Skip a test whose fixtures need numbers that are not computed."""
    try:
        yield
    except NumbersNotComputed as missing:
        pytest.skip(f"a fixture needs it: {missing}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Check what the test launched, if nothing else is wrong with it."""
    session = item.config.stash[STATE].session
    if session is None or isinstance(item, ModuleLaunches):
        return (yield)
    result = None
    with outcome(session.tensors) as record:
        item.stash[RECORD] = record
        result = yield
    _judge(item, item.stash[LAUNCHES])
    return result


def _judge(item: pytest.Item, launches: Sequence[KernelLaunch]) -> None:
    """Fail for findings; skip a test that came to nothing."""
    state, record = item.config.stash[STATE], item.stash[RECORD]
    assert state.folder is not None
    record.answers = [state.folder.answer(launch) for launch in launches]
    wrong = failing(record.answers, strict=item.config.option.mcheck_strict)
    if wrong:
        pytest.fail(message(wrong), pytrace=False)
    if record.stopped and not launches:
        pytest.skip(f"no kernel was launched before it: {record.stopped}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the record to the report of a test, which xdist sends to the process that sums up."""
    report = yield
    if call.when == "call" and RECORD in item.stash:
        setattr(report, REPORTED, item.stash[RECORD].to_json())
        if said := item.stash[RECORD].stopped:
            report.sections.append(("mcheck", said))
    return report


# --- the end ------------------------------------------------------------------------------------------------------


class _Summary:
    """Collects the records of reports and prints the summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the record of a test."""
        if record := getattr(report, REPORTED, None):
            self._config.stash[STATE].records.append(from_json(record))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the summary."""
        target = f"sm_{_targets(self._config.option.mcheck_arch)[0]}"
        lines = list(summarize(self._config.stash[STATE].records, target))
        if lines:
            terminalreporter.section("mcheck")
            for line in lines:
                terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Sum up in the process that reports."""
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Summary(session.config), "mcheck-triton-summary")
