"""A ring of two slots between a producer and two warps, broken in one place: one bug, and a fix that mends it."""

from __future__ import annotations

import pytest

from mcheck.base.source_files import SourceText
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.result import Result
from mcheck.findings.repair import apply_edits, make_edits
from mcheck.report import checked
from mcheck.report.bugs import collect_bugs
from mcheck.report.lines import plain

RING = """PTX slots
{
  .global .align 128 .b8 src[1024];
  .shared .align 128 .b8 slot[2][128];
  .shared .align 8 .b64 full[2], empty[2];
}
producer@cta 0, warp 0, lane 0 {
  for s in 0..2 {
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 2;
  }
  bar.sync 0;
  for k in 0..5 {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%2]], ((k/2)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%2]], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [slot[k%2]], [src + 128*k], 128, [full[k%2]];
  }
}
consumer@cta 0, warp 1..3 {
  bar.sync 0;
  for k in 0..5 {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%2]], (k/2)%2;
    bar.sync 1, 64;
    ld.shared.u32 r0, [slot[k%2] + 4*%laneid];
    fence.proxy.async;
    bar.warp.sync 0xffffffff;
    if (%laneid == 0) { mbarrier.arrive.shared::cta.b64 _, [empty[k%2]]; }
  }
}
"""
EMPTY = "    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%2]], ((k/2)%2)^1;\n"
FULL = "    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%2]], (k/2)%2;\n"
MEET = "    bar.sync 1, 64;\n"
ONE_WAITS = f"    if (%warpid == 1) {{ {FULL.strip()} }}\n"
BROKEN = {
    "nobody waits for the slot": (
        EMPTY,
        "",
        "RACE003",
        "Wait for the phase of the mbarrier that line 26 signals before line 15: nobody waits for it, and line 15",
    ),
    "too few arrivals counted": (
        "[empty[s]], 2;",
        "[empty[s]], 1;",
        "RACE003",
        "Initialise `empty[0]` at line 10 with count 2 instead of 1",
    ),
    "too many arrivals counted": (
        "[empty[s]], 2;",
        "[empty[s]], 3;",
        "DEAD003",
        "Initialise `empty[0]` at line 10 with count 2 instead of 3",
    ),
    "the first wait is for a slot that is free": (
        "((k/2)%2)^1",
        "(k/2)%2",
        "DEAD003",
        "Nothing arrives on `empty[0]` before line 14 waits for its phase 0: begin with parity 1 there, for the slot",
    ),
    "one warp waits for the other, and they do not meet": (
        FULL + MEET,
        ONE_WAITS,
        "RACE003",
        "Put bar.sync 1, 64 between the wait at line 22 and line 23",
    ),
    "a lane frees the slot for its warp": (
        "    bar.warp.sync 0xffffffff;\n",
        "",
        "RACE003",
        "bar.warp.sync 0xffffffff after line 25: at line 26",
    ),
    "a lane frees the slot for its warp, which reads twice": (
        "    fence.proxy.async;\n    bar.warp.sync 0xffffffff;\n",
        "    ld.shared.u32 r1, [slot[k%2] + 4*(31 - %laneid)];\n    fence.proxy.async;\n",
        "RACE003",
        "bar.warp.sync 0xffffffff after line 26: at line 27",
    ),
    "a barrier counts threads that do not come": (
        MEET,
        "    bar.sync 1, 96;\n",
        "DEAD002",
        "Barrier 1 expects 96 threads, and 64 come: consumer[0..63] at line 23; let 32 more threads come to it",
    ),
}


def test_the_ring_is_right() -> None:
    assert _check(RING).verdict is Verdict.PROVED


@pytest.mark.parametrize("bug", BROKEN)
def test_one_bug_with_the_fix_that_mends_it(bug: str) -> None:
    old, new, code, fix = BROKEN[bug]
    assert old in RING
    result = _check(RING.replace(old, new))
    text = "\n".join(plain(line) for line in checked.describe(result))
    (shown,) = collect_bugs(result.findings, SourceText())
    assert shown.finding.code == code, text
    assert shown.finding.severity == "error"
    assert f"= fix: {fix}" in text


ELSEWHERE = """PTX barriers
{ }
P@cta 0, warp 0 { barrier.sync 1, 64; }
Q@cta 0, warp 1 { barrier.arrive 2, 64; }
"""


def test_a_barrier_that_is_incomplete_names_those_who_came_to_another_one() -> None:
    text = "\n".join(plain(line) for line in checked.describe(_check(ELSEWHERE)))
    assert (
        "= fix: Barrier 1 expects 64 threads, and 32 come: P[0..31] at line 3; Q[0..31] came to barrier 2, at line 4"
        in text
    )


ROTATED = """PTX rotated
{ .shared .b32 s[64]; }
P@cta 0, warp 0..2 {
  st.shared.u32 [s + 128*%warpid + 4*%laneid], 1;
  ld.shared.u32 r0, [s + (128*%warpid + 4*%laneid + 4)%256];
}
"""


def test_of_races_in_a_warp_and_between_warps_the_one_between_warps_is_shown() -> None:
    """Lanes 0 to 30 of each warp read what their own warp writes; a barrier of the warp would not do for lane 31."""
    (found,) = _check(ROTATED).findings
    assert {access.thread for access in found.accesses} in ({"P[31]", "P[32]"}, {"P[0]", "P[63]"})
    assert found.missing.startswith("Execute bar.sync 0 before line 5")


def _check(text: str) -> Result:
    return check_case(Case("slots.litmus", text=text), Settings(), Options())


@pytest.mark.parametrize("bug", [bug for bug in BROKEN if bug.startswith("a lane frees the slot")])
def test_the_lanes_meet_behind_all_that_the_arrive_releases(bug: str) -> None:
    old, new, *_ = BROKEN[bug]
    text = RING.replace(old, new)
    (shown,) = collect_bugs(_check(text).findings, SourceText())
    lines = text.split("\n")
    edits = make_edits(shown.finding.fixes, lines)
    assert _check("\n".join(apply_edits(lines, edits))).verdict is Verdict.PROVED
