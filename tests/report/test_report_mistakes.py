"""A text with several mistakes: each of them stands in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mcheck.checking.run.case import Settings
from mcheck.tools.cli.main import cli
from mcheck.tools.lsp.notes import compute_notes

TEXT = """PTX several
{ x = 0; y = 0; }
 P0@cta 0,gpu 0       | P1@cta 1,gpu 0        ;
 st.relaxd.gpu x, 1   | st.relaxed.gpu y, 1   ;
 fence.sc.gpu         | fence.proxy.asyn      ;
 ld.relaxed.gpu r0, y | ld.relaxed.gpu r0, x  ;
exists (P0:r0 == 0)
expect fial
"""
LINES = [4, 5, 8]


def of_text(out: str) -> list[int]:
    return [int(line.split(":")[-2]) for line in out.split("\n") if line.startswith("  --> ")]


def of_json(out: str) -> list[int]:
    document: dict[str, Any] = json.loads(out)
    (result,) = document.get("tests") or document["results"]
    return [error["line"] for error in result["errors"]]


def of_sarif(out: str) -> list[int]:
    told = json.loads(out)["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    return [note["locations"][0]["physicalLocation"]["region"]["startLine"] for note in told]


def of_github(out: str) -> list[int]:
    return [int(line.split("line=")[1].split(",")[0]) for line in out.split("\n") if line.startswith("::error")]


def of_junit(out: str) -> list[int]:
    return [int(line.split(":")[-2]) for line in out.split("\n") if line.startswith("  --&gt; several.litmus:")]


FORMATS = {"text": of_text, "json": of_json, "sarif": of_sarif, "github": of_github, "junit": of_junit}


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(("form", "lines"), FORMATS.items(), ids=FORMATS)
def test_all_mistakes_are_told(
    command: str, form: str, lines: Callable[[str], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("several.litmus").write_text(TEXT, encoding="utf-8")
    result = CliRunner().invoke(cli, [command, "several.litmus", "--format", form])
    assert lines(result.stdout if form != "text" else result.stderr) == LINES


def test_an_editor_marks_each() -> None:
    assert [note.span.line for note in compute_notes(TEXT, "several.litmus", Settings())] == LINES
