"""``python -m benchmarks.modules --against PATH``: this checkout beside another one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.checkouts import Answered, Compared, Question, compare, compare_all, slower
from benchmarks.modules import cases, questions
from benchmarks.processes import run_process

OTHER = """\
import json, sys
print(json.dumps({"results": [
    {"verdict": "finding", "findings": [{"code": "RACE001"}], "assumptions": [], "path": sys.argv[2]}
]}))
"""


@pytest.fixture(scope="module")
def question() -> Question:
    return next(each for each in questions(twins=False) if each.label == "launch/vector_add/kernel")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A checkout whose mcheck says that there is a race in every module."""
    (tmp_path / "mcheck").mkdir()
    (tmp_path / "mcheck" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "mcheck" / "__main__.py").write_text(OTHER, encoding="utf-8")
    return tmp_path


@pytest.mark.daily(days=3, least=0)
def test_each_checkout_answers_by_its_own_code(
    other: Path, question: Question, capfd: pytest.CaptureFixture[str]
) -> None:
    report = other / "rows.json"
    status = compare_all([question], other, timeout=60, jobs=1, repeat=1, report=report)
    (row,) = json.loads(report.read_text(encoding="utf-8"))["rows"]
    assert row["before"]["verdict"] == "finding"
    assert row["before"]["codes"] == ["RACE001"]
    assert row["before"]["covers"] is None
    assert row["now"]["verdict"] == "proved"
    assert row["now"]["covers"] == {"clusters": 8, "of": 8, "together": 1}
    assert row["keep_apart"]
    assert row["ratio"] == pytest.approx(row["now"]["seconds"] / row["before"]["seconds"], abs=0.001)
    assert status == (row["ratio"] > 1.5)
    assert "1 rows; finding -> proved: 1" in capfd.readouterr().out


@pytest.mark.daily(days=3, least=0)
def test_without_two_answers_there_is_no_ratio(other: Path, question: Question) -> None:
    main = other / "mcheck" / "__main__.py"
    main.write_text(OTHER.replace('"finding"', '"unknown"'), encoding="utf-8")
    compared = compare(question, other, 60, 1)
    assert (compared.before.verdict, compared.now.verdict, compared.ratio) == ("unknown", "proved", None)


def test_a_folder_without_mcheck_is_refused(tmp_path: Path, question: Question, capsys: pytest.CaptureFixture) -> None:
    assert compare_all([question], tmp_path, timeout=60, jobs=1, repeat=1, report=None) == 2
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verdict", "covers", "ratio", "too_slow"),
    [
        ("proved", {"clusters": 8, "of": 8, "together": 1}, 1.6, True),
        ("proved", {"clusters": 8, "of": 8, "together": 1}, 1.5, False),
        ("proved", {"clusters": 8, "of": 8, "together": 1}, None, False),
        ("proved", {"clusters": 8, "of": 8, "together": 2}, 1.6, False),
        ("proved", {"clusters": 7, "of": 8, "together": 1}, 1.6, False),
        ("finding", {"clusters": 8, "of": 8, "together": 1}, 1.6, False),
        ("proved", None, 1.6, False),
    ],
)
def test_only_launches_that_keep_apart_have_a_limit(
    verdict: str, covers: dict[str, int] | None, ratio: float | None, too_slow: bool
) -> None:
    now = Answered(verdict=verdict, covers=covers, seconds=1.6)
    row = Compared(label="a", before=Answered(verdict="proved", seconds=1.0), now=now, ratio=ratio)
    assert slower([row]) == ([row] if too_slow else [])


def test_the_corpora_are_asked_about_with_or_without_their_bugs() -> None:
    right = {each.label for each in questions(twins=False)}
    every = [each.label for each in questions(twins=True)]
    assert len(every) == len(set(every))
    assert right < set(every)
    assert {case.label for case in cases()} < set(every)
    assert "launch/vector_add/twin1" in set(every) - right
    assert "modules/pipe-in-order" in right


def test_a_process_that_does_not_end_is_stopped() -> None:
    started = time.monotonic()
    done = run_process([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(99)"], 1.0)
    assert done.stopped
    assert done.status < 0
    assert time.monotonic() - started < 60


def test_seconds_are_those_of_the_processor() -> None:
    done = run_process([sys.executable, "-c", "import time; time.sleep(1); print('done')"], 60)
    assert (done.output, done.status, done.stopped) == ("done\n", 0, False)
    assert 0 < done.processor < 0.9
    assert done.wall > 1
    assert done.memory > 1 << 20


def test_a_command_that_has_to_succeed_is_an_error_where_it_fails() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run_process([sys.executable, "-c", "raise SystemExit(3)"], check=True)
    assert run_process([sys.executable, "-c", "raise SystemExit(3)"]).status == 3
