"""``--assume converged``: lanes of a warp that execute one statement go on together, in time and not in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer as explicit
from mcheck.engines.z3.engine import answer as solver
from mcheck.frontend.litmus import load, parse
from mcheck.ir.assumptions import CONVERGED, NAMES
from mcheck.ir.program import Program
from mcheck.tools.cli.main import main

LITMUS = Path(__file__).parents[3] / "litmus"
LATE = LITMUS / "warps" / "warps-elect-by-lane-number.litmus"
"""A lane hands the slot back for the other one, which may come two phases late."""
STORE = """PTX converged-store
{ .shared .u32 x[2]; }
P@cta 0, warp 0, lane 0..2 {
  st.shared.u32 [x + 4*%laneid], 1;
  ld.shared.u32 r0, [x + 4*(1 - %laneid)];
}
"""
SKIPS = """PTX converged-branch
{ .global .u32 y; .shared .align 8 .b64 bar; }
P@cta 0, warp 0, lane 0..2 {
  if (%laneid == 0) { mbarrier.init.shared::cta.b64 [bar], 1; }
  bar.warp.sync 3;
  if (%laneid == 0) { mbarrier.arrive.shared::cta.b64 _, [bar]; }
  if (%laneid == 1) { await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0; }
}
"""


def codes(program: Program, engine: object) -> set[str]:
    found = engine(program, load_model("ptx-9.0"), findings=True, timeout=60)  # type: ignore[operator]
    assert found.reason is None or found.findings
    return {f.code for f in found.findings if f.severity == "error"}


@pytest.mark.daily(days=6, least=0)
@pytest.mark.parametrize("engine", [explicit, solver], ids=["explicit", "z3"])
def test_no_lane_falls_behind(engine: object) -> None:
    program = load(str(LATE))
    assert codes(program, engine) == {"DEAD003"}
    assert codes(program.with_assumptions((CONVERGED,)), engine) == set()


@pytest.mark.parametrize("engine", [explicit, solver], ids=["explicit", "z3"])
def test_the_lanes_accesses_are_not_ordered(engine: object) -> None:
    program = parse(STORE, "t.litmus")
    assert codes(program, engine) == codes(program.with_assumptions((CONVERGED,)), engine) == {"RACE001"}


@pytest.mark.parametrize("engine", [explicit, solver], ids=["explicit", "z3"])
def test_lanes_at_different_statements_wait_for_nobody(engine: object) -> None:
    assert codes(parse(SKIPS, "t.litmus").with_assumptions((CONVERGED,)), engine) == set()


def test_it_is_off_unless_asked_for() -> None:
    program = load(str(LATE))
    assert program.assumptions.describe() == ()
    assert program.with_assumptions(()) is program
    assert all(program.with_assumptions((name,)).assumptions.describe() for name in NAMES)


@pytest.mark.parametrize("command", ["check", "run"])
def test_the_reports_list_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for asked in ((), ("--assume", "converged")):
        main([command, str(LATE), "--engine", "explicit", "--format", "json", *asked])
        document = json.loads(capsys.readouterr().out)
        (result,) = document["results" if command == "check" else "tests"]
        told = [a for a in result.get("assumptions", []) if "go on together" in a]
        assert len(told) == len(asked[1:])


def test_outcomes_and_pages_know_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["outcomes", str(LATE), "--assume", "converged", "--engine", "explicit", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["assumptions"]
    main(["doc", str(LATE), "--assume", "converged", "-o", str(tmp_path / "site"), "--format", "md"])
    assert any("go on together" in page.read_text(encoding="utf-8") for page in (tmp_path / "site").rglob("*.md"))
