"""What is left out of an answer: it steers no search, and no headline conceals it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from mcheck.api import check
from mcheck.frontend.litmus import parse
from mcheck.tools.cli.main import main
from tests.fuzz.programs import program
from tests.fuzz.selections import held

DROPPED = """PTX dropped
{ .shared .align 8 .b64 m0; }
t0@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [m0], 1;
  bar.sync 0;
  mbarrier.arrive.shared::cta.b64 _, [m0];
}
t1@cta 0, warp 1, lane 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [m0], 0;
  mbarrier.arrive_drop.shared::cta.b64 _, [m0];
}
t2@cta 0, warp 2, lane 0 {
  bar.sync 0;
  mbarrier.arrive.shared::cta.b64 _, [m0];
  await mbarrier.try_wait.parity.shared::cta.b64 [m0], 0;
  mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [m0];
}
"""
RACE = """PTX race
{ .shared .u32 x; }
P@cta 0, warp 0, lane 0 { st.shared.u32 [x], 1; }
Q@cta 0, warp 1, lane 0 { st.shared.u32 [x], 2; }
"""
SUPPRESSED = RACE.replace("1; }", "1; // mcheck: ignore RACE001 the value is not read\n}")
BEHIND = """PTX behind
{ .shared .u32 x; .shared .b64 m; }
P@cta 0, warp 0, lane 0 { st.shared.u32 [x], 1; mbarrier.init.shared::cta.b64 [m], 1; bar.sync 0; }
Q@cta 0, warp 1, lane 0 {
  st.shared.u32 [x], 2;
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [m], 0;
}
"""


def codes(text: str, **options: object) -> set[str]:
    return {f.code for f in check(text, **options).findings}  # type: ignore[arg-type]


@pytest.mark.daily
@pytest.mark.parametrize(
    "options",
    [
        {"select": ("RACE", "UB", "DEAD")},
        {"select": ("UB2", "DEAD")},
        {"ignore": ("RACE",)},
        {"ignore": ("UB5",)},
        {"profile": "strict"},
        {"profile": "permissive"},
    ],
    ids=str,
)
def test_a_selection_that_wants_all_that_is_found_changes_nothing(options: dict[str, object]) -> None:
    assert codes(DROPPED, **options) == codes(DROPPED) == {"UB207", "UB212", "DEAD003"}


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(20))
def test_a_selection_filters_what_is_found_without(seed: int, all_tests: bool) -> None:
    found = held(parse(program(Random(seed)), "random.litmus"), 5.0 if all_tests else 1.0)
    assert {way: codes for way, codes in found.lost.items() if way not in found.open} == {}
    assert not found.proved
    assert found.cut or not found.more


def test_what_is_ignored_hides_no_other_error() -> None:
    assert codes(BEHIND, ignore=("RACE",)) == {"DEAD003"}


@pytest.mark.parametrize(
    ("text", "options", "by"),
    [(RACE, ["--ignore", "RACE"], "selection"), (RACE, ["--select", "UB"], "selection"), (SUPPRESSED, [], "comment")],
    ids=["ignored", "not selected", "suppressed"],
)
def test_what_is_left_out_is_in_every_headline(
    text: str, options: list[str], by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.litmus"
    file.write_text(text)
    said = {}
    for form in ("text", "json", "sarif", "github", "junit"):
        assert main(["check", "--format", form, *options, str(file)]) == 0
        said[form] = capsys.readouterr().out
        assert "no finding except 1 ignored: RACE001" in said[form]
    assert said["text"].startswith("ignored ")
    document = json.loads(said["json"])
    (result,) = document["results"]
    assert (result["verdict"], result["findings"]) == ("finding", [])
    assert [(one["code"], one["by"]) for one in result["ignored"]] == [("RACE001", by)]
    assert document["summary"] == {"files": 1, "clean": 0, "findings": 1, "unknown": 0, "error": 0, "ignored": 1}
    assert "0 of 1 files proved" in said["github"]


def test_what_is_left_out_beside_other_findings_is_counted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "x.litmus"
    file.write_text(BEHIND)
    assert main(["check", "--ignore", "RACE", str(file)]) == 1
    assert capsys.readouterr().out.startswith(f"deadlock  {file} (besides 1 ignored: RACE001)")
