"""Baselines: known findings are no errors, whatever moves; new ones are, and those that are gone are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RACE = """PTX race
{ .shared .u32 x; .shared .u32 y; }
P@cta 0, warp 0, lane 0 {
  st.shared.u32 [x], 1;
}
Q@cta 0, warp 1, lane 0 {
  st.shared.u32 [x], 2;
}
"""
OTHER = """R@cta 0, warp 2, lane 0 {
  st.shared.u32 [y], 3;
}
S@cta 0, warp 3, lane 0 {
  st.shared.u32 [y], 4;
}
"""
CLEAN = RACE.replace("  st.shared.u32 [x], 2;\n", "")

Mcheck = Callable[..., Any]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "race.litmus"
    path.write_text(RACE)
    return path


@pytest.fixture
def baseline(file: Path, mcheck: Mcheck) -> Path:
    path = file.parent / "known" / "baseline.json"
    path.parent.mkdir()
    done = mcheck("check", file, "--write-baseline", path)
    assert (done.status, done.err) == (0, f"{path}: 1 entry written\n")
    return path


@pytest.mark.daily(days=3, least=0)
def test_what_is_known_is_no_error_after_lines_have_moved(file: Path, baseline: Path, mcheck: Mcheck) -> None:
    file.write_text(RACE.replace("P@", "// a comment\n\nP@").replace("  st.", "      st."))
    done = mcheck("check", file, "--baseline", baseline)
    assert (done.status, done.err) == (0, "")
    assert "no finding except 1 ignored: RACE001" in done.out
    assert "in the baseline: RACE001" in mcheck("check", file, "--baseline", baseline, "-v").out


@pytest.mark.daily(days=3, least=0)
def test_files_with_known_findings_alone_are_counted_apart(file: Path, baseline: Path, mcheck: Mcheck) -> None:
    other = file.parent / "other.litmus"
    other.write_text(RACE.replace("x", "z"))
    done = mcheck("check", file, other, "--baseline", baseline)
    counts = "1 with findings (1 bug, 1 finding: RACE001), 1 with ignored findings only, 0 unknown, 0 errors"
    assert done.out.endswith(f"2 files: 0 proved, {counts}\n")
    done = mcheck("check", file, other, "--baseline", baseline, "--update-baseline")
    assert done.err == f"{baseline}: 2 entries written (1 new, 0 dropped)\n"


def test_names_are_relative_to_the_baseline(
    file: Path, baseline: Path, mcheck: Mcheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    assert json.loads(baseline.read_text())["baseline"][0]["file"] == "../race.litmus"
    assert mcheck("check", "race.litmus", "--baseline", "known/baseline.json").status == 0


def test_a_new_finding_behind_a_known_one_is_found_and_marked(file: Path, baseline: Path, mcheck: Mcheck) -> None:
    file.write_text(RACE + OTHER)
    done = mcheck("check", file, "--baseline", baseline, "--format", "json")
    (result,) = json.loads(done.out)["results"]
    assert done.status == 1
    assert [(f["baseline"], f["accesses"][0]["object"]) for f in result["findings"]] == [("new", "y@0")]
    assert [(f["baseline"], f["accesses"][0]["object"]) for f in result["known"]] == [("unchanged", "x@0")]
    assert [one["by"] for one in result["ignored"]] == ["baseline"]


def test_a_copy_of_a_known_finding_is_new(file: Path, baseline: Path, mcheck: Mcheck) -> None:
    file.write_text(RACE + RACE.split("\n", 2)[2].replace("P@cta 0, warp 0", "R@cta 0, warp 2"))
    assert mcheck("check", file, "--baseline", baseline).status == 2  # a second thread named Q
    file.write_text(RACE + "R@cta 0, warp 2, lane 0 {\n  st.shared.u32 [x], 2;\n}\n")
    assert mcheck("check", file, "--baseline", baseline).status == 1


def test_sarif_has_the_state_of_each_finding(file: Path, baseline: Path, mcheck: Mcheck) -> None:
    file.write_text(RACE + OTHER)
    done = mcheck("check", file, "--baseline", baseline, "--format", "sarif")
    (run,) = json.loads(done.out)["runs"]
    assert [one["baselineState"] for one in run["results"]] == ["new", "unchanged"]
    assert ["suppressions" in one for one in run["results"]] == [False, True]
    assert all("baselineState" not in one for one in _results(mcheck("check", file, "--format", "sarif").out))


def _results(text: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = json.loads(text)["runs"][0]["results"]
    return results


def test_what_is_gone_and_looks_alike_is_named_once(file: Path, baseline: Path, mcheck: Mcheck) -> None:
    known = json.loads(baseline.read_text())
    (entry,) = known["baseline"]
    twin = {**entry, "accesses": [*entry["accesses"][:1], {**entry["accesses"][1], "object": "z@0"}]}
    baseline.write_text(json.dumps(known | {"baseline": [entry, twin]}))
    file.write_text(CLEAN)
    done = mcheck("check", file, "--baseline", baseline)
    assert done.err.count("no longer found") == 1
    assert "(2 entries): no longer found" in done.err


def test_what_is_gone_is_named_and_dropped_on_update(file: Path, baseline: Path, mcheck: Mcheck) -> None:
    file.write_text(CLEAN)
    before = baseline.read_text()
    done = mcheck("check", file, "--baseline", baseline)
    assert done.status == 0
    assert "RACE001 `st.shared.u32 [x], 1;`: no longer found; --update-baseline drops it" in done.err
    assert baseline.read_text() == before
    done = mcheck("check", file, "--baseline", baseline, "--update-baseline")
    assert "dropped, no longer found" in done.err
    assert json.loads(baseline.read_text())["baseline"] == []


def test_an_update_keeps_what_it_did_not_look_at(file: Path, baseline: Path, mcheck: Mcheck) -> None:
    other = file.parent / "other.litmus"
    other.write_text(RACE.replace("x", "z"))
    assert mcheck("check", other, "--baseline", baseline, "--update-baseline").status == 0
    assert [e["file"] for e in json.loads(baseline.read_text())["baseline"]] == ["../other.litmus", "../race.litmus"]
    other.unlink()
    done = mcheck("check", file, "--baseline", baseline, "--update-baseline")
    assert "../other.litmus: RACE001" in done.err
    assert [e["file"] for e in json.loads(baseline.read_text())["baseline"]] == ["../race.litmus"]


def test_expected_findings_are_left_to_the_file(file: Path, tmp_path: Path, mcheck: Mcheck) -> None:
    file.write_text(RACE + "expect race\n")
    assert mcheck("check", file, "--write-baseline", tmp_path / "b.json").status == 0
    assert json.loads((tmp_path / "b.json").read_text())["baseline"] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "--write-baseline"),
        ("{", "is not valid JSON"),
        ("[]", "is not a baseline of mcheck"),
        ('{"schema": 7}', "has schema 7"),
        ('{"schema": 1, "baseline": [{"file": "a"}]}', "is not a baseline of mcheck"),
    ],
)
def test_files_that_are_no_baseline(file: Path, tmp_path: Path, mcheck: Mcheck, text: str | None, said: str) -> None:
    path = tmp_path / "b.json"
    if text is not None:
        path.write_text(text)
    done = mcheck("check", file, "--baseline", path)
    assert done.status == 2
    assert said in done.err


@pytest.mark.parametrize(
    "options",
    [
        ("--update-baseline",),
        ("--baseline", "B", "--write-baseline", "C"),
        ("--write-baseline", "C", "--scheduler", "local"),
    ],
)
def test_options_that_contradict_each_other(file: Path, mcheck: Mcheck, options: tuple[str, ...]) -> None:
    assert mcheck("check", file, *options).status == 2
