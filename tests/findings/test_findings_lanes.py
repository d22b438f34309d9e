"""A warp whose lanes never converge is reported as such, not as a barrier of the CTA."""

from __future__ import annotations

import pytest

from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.findings import catalogue
from mcheck.findings.finding import Finding

NEVER = """PTX never
{ .global .u32 x = 0; }
P@cta 0, warp 0, lane 0 { bar.warp.sync 3; st.relaxed.gpu.global.u32 [x], 1; }
Q@cta 0, warp 0, lane 1 { await ld.relaxed.gpu.global.u32 r0, [x] == 1; bar.warp.sync 3; }
"""
UNSIGNALLED = NEVER.replace("st.relaxed.gpu.global.u32 [x], 1;", "")
OUTSIDE = """PTX outside
{ .global .u32 x = 0; }
P@cta 0, warp 0, lane 0 { bar.warp.sync 1; }
Q@cta 0, warp 0, lane 1 { bar.warp.sync 1; }
"""


def found(text: str, engine: str) -> Finding:
    checked = check_case(Case("t.litmus", text=text), Settings(timeout=60), Options(engine=engine))
    (finding,) = checked.findings
    return finding


@pytest.mark.parametrize("engine", ["protocol", "explicit", "z3"])
def test_lanes_that_never_meet(engine: str) -> None:
    finding = found(NEVER, engine)
    assert finding.code == "DEAD006"
    assert "bar.warp.sync 3" in finding.message
    assert "mask only lanes" in finding.missing
    assert finding.spec.section == "9.7.13.2"
    told = f"{finding.message} {finding.missing} {catalogue.get(finding.code).explanation}"
    assert not any(word in told for word in ("bar.sync", "barrier 0", "CTA"))


@pytest.mark.parametrize("engine", ["protocol", "explicit", "z3"])
def test_a_barrier_at_which_lanes_only_wait_for_one_that_waits_for_a_flag_is_no_cause(engine: str) -> None:
    finding = found(UNSIGNALLED, engine)
    assert finding.code == "DEAD004"
    assert finding.accesses[0].thread == "Q"


@pytest.mark.parametrize("engine", ["protocol", "explicit", "z3"])
def test_what_an_operand_may_be_stands_where_the_instruction_does(engine: str) -> None:
    finding = found(OUTSIDE, engine)
    assert finding.code == "UB109"
    assert finding.spec.section == "9.7.13.2"


PARTED = """PTX parted
{{ .global .u32 x = 0; }}
P@cta 0, warp 0, lane 0..2 {{ .reg .pred p; setp.eq.u32 p, 0, 0; {instruction} }}
"""


@pytest.mark.daily
@pytest.mark.parametrize("engine", ["protocol", "explicit"])
@pytest.mark.parametrize(
    "instruction",
    ["elect.sync _|p, 2;", "vote.sync.ballot.b32 r0, p, 2;", "redux.sync.add.u32 r0, 1, 2;", "bar.warp.sync 2;"],
)
def test_the_lane_that_a_mask_leaves_out_is_named(instruction: str, engine: str) -> None:
    finding = found(PARTED.format(instruction=instruction), engine)
    assert finding.code == "UB109"
    assert [a.thread for a in finding.accesses] == ["P[0]"]
    assert "Name every lane that executes the instruction in its mask" in finding.missing


OTHERS = """PTX others
{{ .global .u32 x = 0; }}
P@cta 0, warp 0, lane 0 {{ .reg .pred p, q; setp.eq.u32 p, 0, 0; {one} }}
Q@cta 0, warp 0, lane 1 {{ .reg .pred p, q; setp.eq.u32 p, 0, 0; {other} }}
"""


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        ("vote.sync.all.pred q, p, 3;", "vote.sync.any.pred q, p, 3;", "vote.sync"),
        ("redux.sync.add.u32 r0, 1, 3;", "redux.sync.max.u32 r0, 1, 3;", "redux.sync"),
    ],
)
def test_the_instruction_is_named_at_which_lanes_wait(one: str, other: str, name: str) -> None:
    finding = found(OTHERS.format(one=one, other=other), "protocol")
    assert finding.code == "DEAD006"
    assert f"waits at {name} for Q" in finding.message
    assert "bar.warp.sync" not in finding.message


UNWRITTEN = """PTX unwritten
{{ .shared .u32 x; .global .u32 y = 0; }}
P@cta 0 {{ {wait} == 1; st.relaxed.gpu.global.u32 [y], 1; }}
Q@cta 0 {{ {write} await ld.relaxed.gpu.global.u32 r0, [y] == 1; }}
"""
WAITS = ("await ld.relaxed.cta.shared.u32 r0, [x]", "await atom.relaxed.cta.shared.cas.b32 r0, [x], 1, 2")


@pytest.mark.daily
@pytest.mark.parametrize("wait", WAITS)
def test_nobody_knows_that_a_word_that_nothing_writes_has_the_awaited_value(wait: str) -> None:
    """The engines agree, or this is an internal error."""
    finding = found(UNWRITTEN.format(wait=wait, write=""), "both")
    assert finding.code == "DEAD004"
    assert "x@0, whose value is unknown" in finding.message
    sound = UNWRITTEN.format(wait=wait, write="st.relaxed.cta.shared.u32 [x], 1;")
    assert check_case(Case("t.litmus", text=sound), Settings(timeout=60), Options(engine="both")).verdict == "proved"
