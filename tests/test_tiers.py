"""The quick tier: what it has of a day, that some days in a row have everything, and that it says what it left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tiers

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

def test_of_every_day(): pass

@pytest.mark.slow
def test_of_the_night(): assert False

@pytest.mark.daily(days=4)
@pytest.mark.parametrize("k", range(10))
def test_of_some_days(k): pass

@pytest.mark.parametrize("k", [
    pytest.param(k, marks=pytest.mark.daily(one_of=group)) for group in "ab" for k in (group, 2 * group, 3 * group)
])
def test_of_groups(k): pass
"""
DAYS = [f"2026-11-{day:02}" for day in range(1, 1 + tiers.SHARES)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiers")
    (folder / "test_tiers_here.py").write_text(TESTS, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  daily\n", encoding="utf-8")
    return folder


def ran(folder: Path, *options: str) -> str:
    """What pytest prints about the tests of the folder."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "xdist",
        "-p",
        "tests.tiers",
        "-p",
        "tests.processor",
        "-p",
        "no:cacheprovider",
        "-v",
        *options,
        str(folder),
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    return done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_quick_tier_says_what_it_left_out(folder: Path, workers: str) -> None:
    """By itself, and where only the workers of xdist know."""
    said = ran(folder, "--tier", "quick", "--day", "2026-11-28", "-n", workers)
    kept = len(set(re.findall(r"test_\w+_here\.py::\S+", said)))
    assert kept in (1 + 2 + 2, 1 + 3 + 2)
    assert "tier: quick --day 2026-11-28\n" in said
    assert re.search(
        rf"^tier quick --day 2026-11-28, {18 - kept} tests left out: \d+ s of the processor in \d+ s$",
        said,
        re.MULTILINE,
    )
    assert f"{kept} passed" in said


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_seconds_are_told_of_tests_files_and_folders(tmp_path: Path, workers: str) -> None:
    busy = "def spin():\n end = time.process_time() + 0.3\n while time.process_time() < end: pass\n"
    child = (
        "def test_child():\n subprocess.run([sys.executable, '-c', 'import time\\n' + BUSY + 'spin()'], check=True)\n"
    )
    text = (
        f"import subprocess, sys, time\nBUSY = {busy!r}\n{busy}def test_spin(): spin()\ndef test_idle(): pass\n{child}"
    )
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "test_busy.py").write_text(text, encoding="utf-8")
    report = tmp_path / "seconds.txt"
    assert "3 passed" in ran(tmp_path, "-n", workers, f"--cpu-report={report}", "--rootdir", str(tmp_path))
    rows = (line.split(maxsplit=1) for line in report.read_text(encoding="utf-8").splitlines())
    told = {name: float(seconds) for seconds, name in rows}
    file = "sub/test_busy.py"
    assert set(told) == {"before the tests", "sub", file} | {f"{file}::test_{t}" for t in ("spin", "idle", "child")}
    assert told[f"{file}::test_spin"] >= 0.25
    assert told[f"{file}::test_child"] >= 0.25
    assert told[f"{file}::test_idle"] < 0.25
    assert told["sub"] == told[file] >= 0.55
    assert told["before the tests"] > 0


def test_everything_runs_unless_less_is_asked_for(folder: Path) -> None:
    said = ran(folder)
    assert "1 failed, 17 passed" in said
    assert re.search(r"^tier all: \d+ s of the processor in \d+ s$", said, re.MULTILINE)


def test_tests_are_told_whether_all_of_them_run(tmp_path: Path) -> None:
    (tmp_path / "test_tiers_told.py").write_text("def test_long(all_tests): assert all_tests\n", encoding="utf-8")
    assert "1 passed" in ran(tmp_path)
    assert "1 failed" in ran(tmp_path, "--tier", "quick")


def test_a_case_that_is_named_runs_every_day(folder: Path) -> None:
    for case in range(2):
        assert "1 passed" in ran(folder, "--tier", "quick", "-k", f"test_of_some_days[{case}]", "--day", DAYS[0])


def test_a_day_is_a_date(folder: Path) -> None:
    assert "invalid date value: 'yesterday'" in ran(folder, "--tier", "quick", "--day", "yesterday")


class Item:
    """What the tiers ask of a test."""

    def __init__(self, name: str, **marks: pytest.Mark) -> None:
        self.nodeid, self.marks = name, marks

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marks.get(name)


def quick(items: list[Item], day: str) -> set[str]:
    return {item.nodeid for item in tiers.of_the_day(items, day)}  # type: ignore[arg-type, attr-defined]


@pytest.mark.parametrize("number", [1, 2, 23, 24, 25, 97])
def test_some_days_in_a_row_run_every_case(number: int) -> None:
    cases = [Item(f"test_a.py::test_f[{k}]", daily=pytest.mark.daily.mark) for k in range(number)]
    shares = [quick(cases, day) for day in DAYS]
    assert all(number // 24 <= len(share) <= number // 24 + 1 and share for share in shares)
    assert set().union(*shares) == {case.nodeid for case in cases}


@pytest.mark.parametrize("number", [1, 3, 4, 50])
def test_a_function_may_take_another_number_of_days(number: int) -> None:
    cases = [Item(f"test_a.py::test_f[{k}]", daily=pytest.mark.daily(days=4).mark) for k in range(number)]
    shares = [quick(cases, day) for day in DAYS]
    assert all(number // 4 <= len(share) <= number // 4 + 1 and share for share in shares)
    assert all(set().union(*shares[k : k + 4]) == {case.nodeid for case in cases} for k in range(20))


@pytest.mark.parametrize("number", [1, 5, 24, 60])
def test_where_no_case_has_to_run_each_has_its_day(number: int) -> None:
    cases = [Item(f"test_a.py::test_f[{k}]", daily=pytest.mark.daily(least=0).mark) for k in range(number)]
    shares = [quick(cases, day) for day in DAYS]
    assert sorted(name for share in shares for name in share) == sorted(case.nodeid for case in cases)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_functions_of_which_none_has_to_run_do_not_rest_on_the_same_days() -> None:
    tests = [Item(f"test_a.py::test_{k}", daily=pytest.mark.daily(days=4, least=0).mark) for k in range(100)]
    assert all(len(quick(tests, day)) > 10 for day in DAYS)


def test_of_each_group_one_case_runs() -> None:
    cases = [
        Item(f"test_a.py::test_f[{g}{k}]", daily=pytest.mark.daily(one_of=g).mark) for g in "xyz" for k in range(9)
    ]
    shares = [quick(cases, day) for day in DAYS]
    assert all(sorted(name[-3] for name in share) == ["x", "y", "z"] for share in shares)
    assert set().union(*shares[:9]) == {case.nodeid for case in cases}


def test_functions_of_one_file_may_be_a_group() -> None:
    mark = pytest.mark.daily(one_of="heavy").mark
    tests = [Item(f"test_{file}.py::test_{k}", daily=mark) for file in "ab" for k in range(3)]
    shares = [quick(tests, day) for day in DAYS]
    assert all(sorted(name[5] for name in share) == ["a", "b"] for share in shares)
    assert set().union(*shares[:3]) == {test.nodeid for test in tests}


def test_functions_have_shares_of_their_own_and_tests_keep_their_order() -> None:
    slow = Item("test_b.py::test_s", slow=pytest.mark.slow.mark)
    daily = [Item(f"test_a.py::test_{f}[0]", daily=pytest.mark.daily.mark) for f in "fgh"]
    always = [Item(f"test_c.py::test_{k}") for k in range(3)]
    items = [daily[2], slow, always[1], daily[0], always[0], daily[1], always[2]]
    assert tiers.of_the_day(items, DAYS[0]) == [item for item in items if item is not slow]  # type: ignore[arg-type]
