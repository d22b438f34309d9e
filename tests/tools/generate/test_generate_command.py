"""``mcheck generate``: files, lists, and where two models differ."""

from __future__ import annotations

import json
import os
import re
from io import StringIO
from pathlib import Path

import pytest

from mcheck.report.progress import SearchProgress
from mcheck.tools.cli.main import main


def test_it_writes_files_that_run_as_they_expect(tmp_path: Path, capsys) -> None:
    assert main(["generate", "--edges", "families", "--size", "4", "--every", "9", "-o", str(tmp_path)]) == 0
    files = sorted(tmp_path.glob("*.litmus"))
    assert f"{len(files)} tests" in capsys.readouterr().out
    assert len(files) == 5
    assert main(["run", str(tmp_path), "-q"]) == 0


def test_json_lists_them(capsys) -> None:
    assert main(["generate", "--edges", "async", "--size", "2", "--every", "20", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["summary"]["tests"] == len(document["tests"]) == 4
    first = document["tests"][0]
    assert set(first) == {"name", "size", "edges", "verdict", "axiom", "codes", "reason", "path"}


@pytest.mark.daily(one_of="heavy")
def test_reductions_of_two_gpus_tell_9_0_from_9_3(capsys) -> None:
    assert main(["generate", "--edges", "reduce", "--size", "4", "--differs", "ptx-9.0", "ptx-9.3"]) == 0
    out = capsys.readouterr().out
    assert "RACE003 | clean" in out


def test_the_smallest_differences_are_found_without_an_alphabet(capsys) -> None:
    """9.0 knows asynchronous copies, 7.5 does not: cycles of two edges tell."""
    assert main(["generate", "--differs", "ptx-7.5", "ptx-9.0", "--limit", "2", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["edges"] == "oneway"
    assert [test["size"] for test in document["tests"]] == [2, 2]
    assert all(test["verdicts"] == {"ptx-7.5": "pass", "ptx-9.0": test["verdict"]} for test in document["tests"])


@pytest.mark.daily(one_of="heavy")
def test_a_model_that_flags_nothing_does_not_differ_by_findings(capsys) -> None:
    """ptx-7.5 tells no races, and its verdicts of classic shapes are those of 9.0; sc forbids more."""
    classic = ["generate", "--edges", "scopes", "--every", "1500"]
    assert main([*classic, "--differs", "ptx-7.5", "ptx-9.0"]) == 0
    assert capsys.readouterr().out == "0 tests\n"
    assert main(["generate", "--edges", "families", "--size", "4", "--differs", "sc", "ptx-9.0", "--limit", "1"]) == 0
    assert capsys.readouterr().out == "fail | pass MP+rlxs\n1 test\n"


class Terminal(StringIO):
    """A stream that is one."""

    def isatty(self) -> bool:
        """It is."""
        return True


@pytest.mark.daily(one_of="heavy")
def test_a_long_search_says_how_far_it_is(capsys, monkeypatch) -> None:
    """On standard error, and seldom where that is a file; the report is the same."""
    search = ["generate", "--edges", "families", "--size", "4", "--differs", "ptx-9.0", "ptx-9.3"]
    assert main(search) == 0
    assert capsys.readouterr().err == "", "it was soon over"
    monkeypatch.setattr("mcheck.report.progress.SELDOM", 0.0)
    assert main(search) == 0
    quiet = capsys.readouterr()
    assert quiet.out == "0 tests\n"
    first = quiet.err.split("\n")[0]
    assert first == "cycles of 4 edges over families: number 1; 0 differ so far"
    monkeypatch.setattr("mcheck.tools.generate.choose.names", lambda: ["families", "reduce"])
    assert main(["generate", "--differs", "ptx-9.0", "ptx-9.3", "--limit", "1"]) == 0
    assert "over reduce: number 1; 0 differ so far" in capsys.readouterr().err


def test_news_make_room_on_a_terminal(monkeypatch) -> None:
    monkeypatch.setattr("mcheck.report.progress.DELAY", 0.0)
    monkeypatch.setattr("mcheck.report.progress.OFTEN", 0.0)
    stream = Terminal()
    news = SearchProgress(stream)
    news.update("one")
    news.update("two")
    news.clear()
    news.clear()
    assert stream.getvalue() == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"


@pytest.mark.daily(one_of="heavy")
def test_a_search_goes_on_to_larger_tests(capsys, tmp_path: Path, monkeypatch) -> None:
    """No cycle of two or three edges over the small alphabets tells 9.0 from 9.3, reductions of two GPUs do."""
    monkeypatch.setattr("mcheck.tools.generate.choose.names", lambda: ["families", "reduce"])
    assert main(["generate", "--differs", "ptx-9.0", "ptx-9.3", "-o", str(tmp_path)]) == 0
    assert "2 tests of 4 edges over reduce; the models agree on 51 tests before" in capsys.readouterr().out
    assert main(["run", str(tmp_path), "--model", "ptx-9.3", "-q"]) == 0
    assert main(["run", str(tmp_path), "--model", "ptx-9.0", "-q"]) == 1


def test_models_that_agree_have_no_test(capsys, monkeypatch) -> None:
    monkeypatch.setattr("mcheck.tools.generate.choose.names", lambda: ["families", "oneway"])
    assert main(["generate", "--differs", "ptx-9.0", "ptx-9.0", "--every", "40"]) == 0
    out = capsys.readouterr().out
    assert re.fullmatch(r"0 tests: the models agree on \d+ tests of the shipped alphabets\n", out)


def test_without_models_an_alphabet_is_asked_for(capsys) -> None:
    assert main(["generate", "--size", "4"]) == 2
    assert "give an alphabet" in capsys.readouterr().err


def test_an_alphabet_that_is_not_there_is_a_usage_error(capsys) -> None:
    assert main(["generate", "--edges", "none"]) == 2
    assert "unknown alphabet none" in capsys.readouterr().err


def test_a_full_disk_leaves_whole_files_or_none(tmp_path: Path, capsys, monkeypatch) -> None:
    real, left = os.replace, iter((True, True, False))

    def replace(*given: str) -> None:
        if not next(left):
            raise OSError(28, "No space left on device")
        real(*given)

    monkeypatch.setattr(os, "replace", replace)
    assert main(["generate", "--edges", "families", "--size", "4", "--every", "9", "-o", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"cannot write {tmp_path}" in said
    assert "No space left on device" in said
    files = list(tmp_path.iterdir())
    assert len(files) == 2
    assert all(path.suffix == ".litmus" and path.read_text().startswith("PTX") for path in files)


def test_a_folder_that_cannot_be(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("")
    assert main(["generate", "--edges", "families", "--limit", "1", "-o", str(tmp_path / "file" / "sub")]) == 2
    assert f"cannot write to folder {tmp_path / 'file' / 'sub'}" in capsys.readouterr().err


def test_a_size_that_nobody_means(capsys) -> None:
    assert main(["generate", "--edges", "families", "--size", "1000000000"]) == 2
    capsys.readouterr()
