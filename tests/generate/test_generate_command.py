"""``mcheck generate``: files, lists, and where two models differ."""

from __future__ import annotations

import json
from pathlib import Path

from mcheck.cli import main


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


def test_reductions_of_two_gpus_tell_9_0_from_9_3(capsys) -> None:
    assert main(["generate", "--edges", "reduce", "--size", "4", "--differs", "ptx-9.0", "ptx-9.3"]) == 0
    out = capsys.readouterr().out
    assert "RACE003 | clean" in out


def test_an_alphabet_that_is_not_there_is_a_usage_error(capsys) -> None:
    assert main(["generate", "--edges", "none"]) == 2
    assert "there is no alphabet none" in capsys.readouterr().err
