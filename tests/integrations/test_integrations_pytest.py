"""The pytest plugin in a scratch project: silent until asked, a file is a test, a failure tells what a command does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOOD = (ROOT / "litmus" / "classic" / "MP+rel+acq+guarded.litmus").read_text()
WRONG = GOOD.replace("expect pass", "expect fail")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "good.litmus").write_text(GOOD)
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "mcheck.pytest_plugin", "-p", "no:cacheprovider", *arguments],
        capture_output=True,
        text=True,
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        timeout=60,
        check=False,
    )


def test_nothing_is_collected_unless_asked_for(project: Path) -> None:
    assert run(project).returncode == pytest.ExitCode.NO_TESTS_COLLECTED


def test_pytest_starts_without_mcheck(project: Path) -> None:
    """Loading the plugin imports nothing of mcheck's but itself."""
    (project / "test_imports.py").write_text(
        "import sys\ndef test_imports():\n"
        "    assert {m for m in sys.modules if m.startswith('mcheck')} == {'mcheck', 'mcheck.pytest_plugin'}\n"
    )
    assert run(project).returncode == 0


def test_a_file_is_a_test(project: Path) -> None:
    (project / "wrong.litmus").write_text(WRONG)
    (project / "broken.litmus").write_text("PTX broken\n")
    done = run(project, "--mcheck", ".")
    assert done.returncode == 1
    assert "1 passed" in done.stdout
    assert "2 failed" in done.stdout
    assert "expected fail, found pass" in done.stdout
    assert "error[LIT007]: the init block is missing\n  --> broken.litmus:1:11" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.daily(one_of="processes")
def test_a_module_with_its_launch_is_a_test_of_check(project: Path) -> None:
    text = (ROOT / "tests" / "simt" / "hand_over.ptx").read_text()
    for name, module in (("good", text), ("racy", text.replace("fence.proxy.async.shared::cta;", ""))):
        (project / f"{name}.ptx").write_text(module)
        (project / f"{name}.json").write_text(json.dumps({"grid": 1, "params": {"out": {"buffer": 256}, "rows": 1}}))
    (project / "bare.ptx").write_text(text)
    assert "1 passed" in run(project, "--mcheck", ".").stdout
    done = run(project, "--mcheck-check", ".")
    assert "1 failed, 2 passed" in done.stdout
    assert "error[RACE004]" in done.stdout


@pytest.mark.daily(one_of="processes")
def test_the_command_the_model_and_the_limit_are_set_in_the_configuration(project: Path) -> None:
    (project / "mine.cat").write_text('"mine"\nacyclic po | rf as Weak\n')
    (project / "tests").mkdir()
    (project / "good.litmus").rename(project / "tests" / "good.litmus")
    settings = "[pytest]\nmcheck = run\nmcheck_model = mine.cat\nmcheck_timeout = 20\n"
    (project / "pytest.ini").write_text(settings)
    done = run(project, "tests")
    assert "under" in done.stdout
    assert "mine.cat" in done.stdout, "the weak model allows what the test forbids"
    assert run(project, "--mcheck-check", "-v", "tests").stdout.count("good.litmus::check PASSED") == 1
    (project / "pytest.ini").write_text("[pytest]\nmcheck = check\n")
    assert run(project, "-v").stdout.count("good.litmus::check PASSED") == 1


@pytest.mark.parametrize("line", ["mcheck = walk", "mcheck = run\nmcheck_timeout = soon"])
def test_settings_that_mean_nothing_are_refused(project: Path, line: str) -> None:
    (project / "pytest.ini").write_text(f"[pytest]\n{line}\n")
    done = run(project)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ini option mcheck" in done.stderr


def test_the_entry_point_names_the_plugin() -> None:
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]["mcheck"]
    assert callable(import_module(entry).pytest_collect_file)
