"""``pytest -p mcheck.triton`` in a scratch project, with a stand-in for Triton: tests say what they launch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcheck.triton import read_limit

ROOT = Path(__file__).parents[2]
MODULE = (ROOT / "tests" / "simt" / "hand_over.ptx").read_text()
RACY = MODULE.replace("fence.proxy.async.shared::cta;", "")

SESSION = """
import sys
from contextlib import contextmanager
from types import ModuleType

from mcheck.integrations.recording.launches import KernelLaunch, Recording


class Session:
    assumed = 0

    def __init__(self, target, autotune):
        self.target, self.autotune = target, autotune
        self.recording, self.tensors = Recording(), self

    @contextmanager
    def active(self):
        global now
        now = self
        yield self


def launch(name, rows=1, lacks=""):
    text = open(f"{name}.ptx").read()
    now.recording.add(KernelLaunch(name, text, {"grid": 1, "params": {"out": {"buffer": 256}, "rows": rows}}, lacks))


module = sys.modules["mcheck.integrations.recording.session"] = ModuleType("session")
module.Session = Session
"""
BEGIN = "import pytest\nimport standin\nfrom standin import launch\n\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two kernels, and packages that are called torch and triton."""
    for package in ("torch", "triton"):
        (tmp_path / "packages" / package).mkdir(parents=True)
        (tmp_path / "packages" / package / "__init__.py").touch()
    (tmp_path / "packages" / "standin.py").write_text(SESSION)
    (tmp_path / "good.ptx").write_text(MODULE)
    (tmp_path / "racy.ptx").write_text(RACY)
    return tmp_path


def run(
    project: Path, tests: str, *arguments: str, paths: tuple[str, ...] = ("packages",)
) -> subprocess.CompletedProcess[str]:
    (project / "test_kernels.py").write_text(BEGIN + tests)
    path = os.pathsep.join([str(ROOT), *(str(project / part) for part in paths)])
    plugins = ["-p", "standin"] if "packages" in paths else []
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-p", "mcheck.triton", *arguments],
        capture_output=True,
        text=True,
        cwd=project,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        timeout=240,
        check=False,
    )


TWO = """
@pytest.mark.parametrize("case", [1, 2, 3])
def test_good(case):
    launch("good")

def test_racy():
    launch("good")
    launch("racy")
"""


@pytest.mark.daily(days=3, least=0)
def test_a_finding_fails_its_test_and_each_launch_is_checked_once(project: Path) -> None:
    done = run(project, TWO)
    assert done.returncode == 1
    assert "1 failed, 3 passed" in done.stdout
    assert "error[RACE004]" in done.stdout
    assert "Traceback" not in done.stdout
    assert "sm_90: 4 tests with 5 launches, 2 different: 1 proved, 1 finding (2 computed in " in done.stdout
    again = run(project, TWO)
    assert "2 different: 1 proved, 1 finding (0 computed in 0 s, 2 known before)" in again.stdout
    (module,) = (project / ".pytest_cache" / "d" / "mcheck-kernels").glob("racy-*.ptx")
    assert f"again: mcheck check {module.relative_to(project)}" in done.stdout


COMPILED = """
def test_cache():
    import os

    print("compiled in", os.environ["TRITON_CACHE_DIR"])
"""


@pytest.mark.daily(days=3, least=0)
def test_triton_keeps_what_it_compiles_with_the_answers(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cache of all projects would give a module that names the file of another one."""
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    folder = project / ".pytest_cache" / "d" / "mcheck-kernels" / "triton"
    assert f"compiled in {folder}\n" in run(project, COMPILED, "-s").stdout
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    assert "compiled in /elsewhere\n" in run(project, COMPILED, "-s").stdout


@pytest.mark.daily(one_of="processes")
def test_processes_of_xdist_check_each_launch_once(project: Path) -> None:
    done = run(project, TWO, "-p", "xdist", "-n", "2")
    assert "1 failed, 3 passed" in done.stdout
    assert "sm_90: 4 tests with 5 launches, 2 different: 1 proved, 1 finding (2 computed in " in done.stdout


UNKNOWN = """
def test_unknown():
    launch("good", lacks="two buffers overlap")
"""


@pytest.mark.daily(one_of="processes")
def test_what_is_not_decided_fails_where_that_is_wanted(project: Path) -> None:
    done = run(project, UNKNOWN)
    assert done.returncode == 0
    assert "  1 bounded: two buffers overlap" in done.stdout
    strict = run(project, UNKNOWN, "--mcheck-strict")
    assert strict.returncode == 1


ERRORS = """
def test_launch_that_does_not_fit():
    launch("good", rows={"what": 1})

def test_module_that_cannot_be_read():
    launch("torn")

def fail(*_):
    raise ImportError("No module named 'z3'")

def test_bug_of_mcheck(monkeypatch):
    monkeypatch.setattr("mcheck.checking.check.modules.check_target", fail)
    launch("good")

def test_process_that_dies(monkeypatch):
    monkeypatch.setattr("mcheck.checking.check.python.check_text", fail)
    launch("good")

def test_good():
    launch("good")
"""


@pytest.mark.daily(one_of="processes")
def test_an_error_is_no_answer_and_fails_its_test(project: Path) -> None:
    (project / "torn.ptx").write_text(MODULE[: len(MODULE) // 2])
    done = run(project, ERRORS)
    assert done.returncode == 1
    assert "4 failed, 1 passed" in done.stdout
    assert "error[PTX" in done.stdout
    assert "ImportError: No module named 'z3'" in done.stdout
    assert "the process that ran the test died with status 1" in done.stdout


ENDS = """
from mcheck.integrations.recording.outcome import NumbersNotComputed

def test_without_launch():
    raise NumbersNotComputed("'item'")

def test_with_launch():
    launch("good")
    raise NumbersNotComputed("'item'")

def test_assumed():
    launch("good")
    standin.now.assumed += 1
    assert 1 == 2

def test_wrong():
    launch("good")
    assert 1 == 2

@pytest.fixture
def reference():
    raise NumbersNotComputed("'numpy'")

def test_fixture(reference):
    pass
"""


@pytest.mark.daily(days=3, least=0)
def test_a_test_ends_at_numbers_that_no_kernel_computed(project: Path) -> None:
    done = run(project, ENDS, "-rfs")
    assert "1 failed, 2 passed, 2 skipped" in done.stdout
    assert "a fixture needs it: 'numpy' of a tensor" in done.stdout
    assert "FAILED test_kernels.py::test_wrong - assert 1 == 2" in done.stdout
    assert "no kernel was launched before it: 'item' of a tensor" in done.stdout
    assert "1 test passed over assertions about numbers" in done.stdout
    assert "3 tests ended early, at a number that no kernel has computed" in done.stdout


SCRIPT = """
launch("racy")

@pytest.fixture
def made():
    launch("racy")

def test_fixture(made):
    pass

def test_nothing():
    pass
"""


@pytest.mark.daily(days=3, least=0)
def test_launches_of_an_import_and_of_a_fixture_count(project: Path) -> None:
    done = run(project, SCRIPT, "-v")
    assert "test_kernels.py::test_fixture FAILED" in done.stdout
    assert "test_kernels.py::test_nothing PASSED" in done.stdout
    assert "test_kernels.py::launches FAILED" in done.stdout


HELPERS = """
def test_shape(rows, columns):
    launch("good", rows)

def test_nothing():
    pass

for rows in (1, 2):
    test_shape(rows, 8)
"""


def test_functions_of_a_script_that_take_arguments_are_no_tests(project: Path) -> None:
    """In a module of tests they are, and pytest says which fixture is missing."""
    (project / "05-script.py").write_text(BEGIN + HELPERS)
    done = run(project, HELPERS, "-v", "05-script.py", "test_kernels.py")
    assert "05-script.py::launches PASSED" in done.stdout
    assert "05-script.py::test_nothing PASSED" in done.stdout
    assert "05-script.py::test_shape" not in done.stdout
    assert "test_kernels.py::test_shape ERROR" in done.stdout


TARGET = """
CAPABILITY = standin.now.target

@pytest.mark.skipif(CAPABILITY < 90, reason="needs Hopper")
def test_hopper():
    assert standin.now.autotune == "all"
    launch("racy" if CAPABILITY == 100 else "good")
"""


@pytest.mark.daily(one_of="processes")
def test_each_target_has_a_run_of_its_own(project: Path) -> None:
    done = run(project, TARGET, "--mcheck-arch", "80,90,100", "--mcheck-autotune", "all")
    assert done.returncode == 1
    ends = ("1 skipped", "1 passed", "1 failed")
    assert [done.stdout.find(end) for end in ends] == sorted(done.stdout.find(end) for end in ends)
    assert all(end in done.stdout for end in ends)
    assert "sm_90: 1 test" in done.stdout
    assert "sm_100: 1 test" in done.stdout


@pytest.mark.daily
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mcheck-arch", "91"], "--mcheck-arch: '91' is not one of 75, 80,"),
        (["--mcheck-arch", "90,"], "--mcheck-arch: '' is not one of"),
        (["--mcheck-timeout", "0"], "--mcheck-timeout: 0.0 is not a positive number"),
        (["--mcheck-cpu-timeout", "nan"], "--mcheck-cpu-timeout: nan is not a positive number"),
        (
            ["--mcheck-timeout", "5", "--mcheck-cpu-timeout", "5"],
            "--mcheck-timeout and --mcheck-cpu-timeout: give only one of them",
        ),
        (["--mcheck-autotune", "best"], "invalid choice: 'best'"),
    ],
)
def test_options_that_mean_nothing_are_refused(project: Path, arguments: list[str], words: str) -> None:
    done = run(project, "", *arguments)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("clock", "processor", "limit"), [(None, None, (60.0, True)), (5.0, None, (5.0, False)), (None, 5.0, (5.0, True))]
)
def test_the_limit_is_one_of_the_processor_unless_the_clock_is_named(
    clock: float | None, processor: float | None, limit: tuple[float, bool]
) -> None:
    assert read_limit(SimpleNamespace(mcheck_timeout=clock, mcheck_cpu_timeout=processor)) == limit


def test_without_triton_it_says_so(project: Path) -> None:
    with (project / "packages" / "standin.py").open("a") as file:
        file.write('\nimport sys\n\nsys.modules["triton"] = None\n')
    done = run(project, "")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "-p mcheck.triton: the package triton is not installed" in done.stderr
