"""Checked repairs as fixes of SARIF, and as edits of an editor."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft4Validator

from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.fences import examination
from mcheck.checking.fences.examination import Examined, Limits, examine, examine_text
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.report.formats.fences_sarif import document
from mcheck.report.source_edits import repair_edits
from mcheck.tools.lsp.notes import compute_notes, may_be_mended

SCHEMA = Path(__file__).parent / "schemas" / "sarif-schema-2.1.0.json"
KERNELS = Path(__file__).parents[2] / "litmus" / "kernels"
BYTES = KERNELS / "F08-expected-and-copied-bytes-differ.litmus"
FENCE = KERNELS / "A05-same-thread-without-proxy-fence.litmus"


def apply_sarif(text: str, replacements: list[dict[str, dict[str, object]]]) -> str:
    lines = text.split("\n")
    for each in reversed(replacements):
        region = each["deletedRegion"]
        assert (region["startColumn"], region["endColumn"]) == (1, 1)
        inserted = str(each.get("insertedContent", {}).get("text", ""))
        lines[int(str(region["startLine"])) - 1 : int(str(region["endLine"])) - 1] = inserted.split("\n")[:-1]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def examined() -> Examined:
    return examine(str(FENCE), Limits(timeout=60))


@pytest.mark.daily(days=4, least=0)
def test_every_finding_has_the_repairs_as_fixes(examined: Examined) -> None:
    log = json.loads(document([examined], 1))
    Draft4Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(log)
    results = log["runs"][0]["results"]
    assert results
    assert examined.repairs is not None
    for result in results:
        assert len(result["fixes"]) == len(examined.repairs.found)
        for fix, repair in zip(result["fixes"], examined.repairs.found, strict=True):
            (change,) = fix["artifactChanges"]
            assert apply_sarif(examined.text, change["replacements"]) == repair.text


def test_a_proved_program_has_no_result() -> None:
    log = json.loads(document([examine(str(FENCE.with_stem(f"{FENCE.stem}-fixed")), Limits(timeout=60))]))
    assert log["runs"][0]["results"] == []


@pytest.mark.parametrize(
    ("before", "after"),
    [("a\nb\nc\n", "a\nx\ny\nc\n"), ("a\nb\nc\n", "b\nc\na\n"), ("a\nb\n", "a\nb\nc\n"), ("a\nb\nc\n", "a\nc\n")],
)
def test_edits_of_lines_make_the_repaired_text(before: str, after: str) -> None:
    lines = before.split("\n")
    for edit in sorted(repair_edits(before, after), key=lambda each: (each.line, -each.length), reverse=True):
        line = lines[edit.line - 1]
        lines[edit.line - 1] = line[: edit.column] + edit.text + line[edit.column + edit.length :]
    assert [line for line in "\n".join(lines).split("\n") if line] == [line for line in after.split("\n") if line]


@pytest.mark.daily(days=4, least=0)
def test_a_note_without_an_edit_gets_that_of_a_repair() -> None:
    text = BYTES.read_text(encoding="utf-8").replace("expect deadlock", "").replace("expect undefined", "")
    text = re.sub(r"(expect_tx\S+ .*), 64;", r"\1, 2 * 32;", text)  # a number that is spelled is an edit
    notes = compute_notes(text, "t.litmus", Settings(timeout=60))
    assert may_be_mended("t.litmus", notes)
    mended = compute_notes(text, "t.litmus", Settings(timeout=60), tries=True)
    edits = next(note.edits for note in mended if note.severity == "error" and note.edits)
    lines = text.split("\n")
    for edit in edits:
        lines[edit.line - 1] = edit.text
    assert check_case(Case("t.litmus", text="\n".join(lines)), Settings(), Options()).verdict is Verdict.PROVED
    assert [note.message for note in mended] == [note.message for note in notes]


def test_repairs_in_the_editor_are_proved_under_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Settings | None] = []

    def record(
        path: str, text: str, costs: None, limits: Limits, *, settings: Settings | None = None
    ) -> Examined:  # fmt: skip
        asked.append(settings)
        return Examined(path, Verdict.UNKNOWN, None, "not asked here")

    monkeypatch.setattr(examination, "examine_text", record)
    text = BYTES.read_text(encoding="utf-8")
    compute_notes(text, "t.litmus", Settings(timeout=60, model="ptx-7.5"), tries=True)
    assert [each.model for each in asked if each] == ["ptx-7.5"]


def test_examined_is_under_the_model_that_is_set() -> None:
    text = FENCE.with_stem(f"{FENCE.stem}-fixed").read_text(encoding="utf-8")
    for model in ("ptx-9.0", "ptx-9.3"):
        examined = examine_text("t.litmus", text, None, Limits(timeout=60), settings=Settings(model=model))
        assert examined.result is not None
        assert examined.result.model == model


def test_nothing_is_searched_where_every_finding_has_an_edit() -> None:
    text = FENCE.read_text(encoding="utf-8").replace("expect race", "")
    assert not may_be_mended("t.litmus", compute_notes(text, "t.litmus", Settings(timeout=60)))
