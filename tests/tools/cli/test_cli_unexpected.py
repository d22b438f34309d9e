"""``mcheck run`` where something is wrong that nobody expects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcheck.tools.cli.main import main

TWELVE = """PTX twelve-bytes
{ .global .align 16 .b8 src[64]; .shared .align 16 .b8 buf[64]; .shared .b64 m; }
P@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [m], 1;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [src], 12, [m];
}
"""
FOR_EVER = """PTX forever
{ .shared .b64 m; }
P@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [m], 1;
  await mbarrier.try_wait.parity.shared::cta.b64 [m], 0;
}
"""
RACE = """PTX race
{ .shared .u32 x; }
P@cta 0, warp 0, lane 0 { st.shared.u32 [x], 1; }
Q@cta 0, warp 1, lane 0 { st.shared.u32 [x], 2; }
"""
ENGINES = ("auto", "explicit", "z3", "protocol", "both")


@pytest.mark.parametrize("more", [[], ["--verdict-only"]], ids=["states", "verdict"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("text", "word"), [(TWELVE, "undefined"), (FOR_EVER, "deadlock")])
def test_a_test_that_asks_for_nothing_and_never_ends_is_not_ok(
    text: str, word: str, engine: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.litmus"
    file.write_text(text)
    assert main(["run", "--engine", engine, *more, str(file)]) == 1
    assert capsys.readouterr().out.startswith(f"{word:<9}     {file}\n")
    assert main(["run", "--engine", engine, *more, "--format", "json", str(file)]) == 1
    (test,) = json.loads(capsys.readouterr().out)["tests"]
    assert (test["ok"], test["headline"]) == (False, word)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TWELVE, "expect undefined"),
        (TWELVE, "expect pass"),
        (TWELVE, "exists (true)"),
        (FOR_EVER, "expect deadlock"),
        (FOR_EVER, "expect pass"),
        (FOR_EVER, "~exists (true)"),
    ],
)
def test_what_it_asks_or_expects_decides(text: str, line: str, tmp_path: Path) -> None:
    file = tmp_path / "x.litmus"
    file.write_text(f"{text}{line}\n")
    assert main(["run", str(file)]) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_that_nobody_expects_are_in_the_headline(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.litmus"
    file.write_text(RACE)
    assert main(["run", "--engine", engine, str(file)]) == 0
    assert capsys.readouterr().out.startswith(f"found    pass {file} (RACE001 found)\n")
    file.write_text(f"{RACE}expect race\n")
    assert main(["run", "--engine", engine, str(file)]) == 0
    assert capsys.readouterr().out.startswith(f"ok       pass {file}\n")


def test_the_counts_tell_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a", RACE), ("b", TWELVE)):
        (tmp_path / f"{name}.litmus").write_text(text)
    assert main(["run", str(tmp_path)]) == 1
    counts = "2 tests: 1 ok (2 without an expectation, 1 of them with errors), 1 mismatch, 0 unknown, 0 errors"
    assert capsys.readouterr().out.endswith(f"{counts}\n")
    assert main(["run", "--format", "junit", str(tmp_path)]) == 1
    assert "a.litmus: RACE001 found" in capsys.readouterr().out
