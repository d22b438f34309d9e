"""Assertions and traps: where data decides, none is reached, and what stands behind them is looked at."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

GUARDED = """.version 8.0
.target sm_90
.address_size 64
.extern .func __assertfail(.param .b64 p);
.visible .entry turned(.param .u64 index, .param .u32 n)
.reqntid 64, 1, 1
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 4 .b32 tile[64];
  ld.param.u64 %rd1, [index];
  ld.param.u32 %r6, [n];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  GUARD
  mov.u32 %r3, tile;
  mad.lo.u32 %r4, %r1, 4, %r3;
  st.shared.u32 [%r4], %r2;
  bar.sync 0;
  xor.b32 %r4, %r4, 252;
  ld.shared.u32 %r5, [%r4];
  ret;
}
"""
GUARDS = {
    "branch over it": "setp.lt.u32 %p1, %r2, 9; @%p1 bra GOOD; trap; GOOD:",
    "branch to it": "setp.ge.u32 %p1, %r2, 9; @%p1 bra BAD; bra.uni GOOD; BAD: mov.u32 %r7, 1; trap; GOOD:",
    "guarded": "setp.ge.u32 %p1, %r2, 9; @%p1 trap;",
    "assertion": "setp.lt.u32 %p1, %r2, 9; @%p1 bra GOOD; "
    "{ .param .b64 p; st.param.b64 [p], %rd1; call.uni __assertfail, (p); } GOOD:",
}


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_no_data_leads_to_a_trap(guard: str) -> None:
    text, given = GUARDED.replace("GUARD", guard), {"grid": 1, "params": {"index": {"buffer": 256}, "n": 9}}
    line = next(k for k, said in enumerate(text.splitlines(), 1) if "trap;" in said or "call.uni" in said)
    found = check(text, given)
    assert (found.verdict, found.findings) == ("proved", ())
    assert f"the trap is not reached at line {line}" in found.assumptions
    broken = check(text.replace("bar.sync 0;", ""), given)
    assert (broken.verdict, [f.code for f in broken.findings]) == ("finding", ["RACE001"])


@pytest.mark.parametrize("n", [9, 8])
def test_a_trap_that_is_reached_for_sure_is_said(n: int) -> None:
    text = GUARDED.replace("GUARD", "setp.eq.u32 %p1, %r6, 9; @%p1 bra GOOD; trap; GOOD:")
    found = check(text, {"grid": 1, "params": {"index": {"buffer": 256}, "n": n}})
    assert found.verdict == ("proved" if n == 9 else "unknown")
    assert ("a trap is reached" in (found.reason or "")) == (n == 8)


def test_a_parameter_that_decides_it_is_asked_for() -> None:
    text = GUARDED.replace("GUARD", "setp.eq.u32 %p1, %r6, 9; @%p1 bra GOOD; trap; GOOD:")
    found = check(text, {"grid": 1, "params": {"index": {"buffer": 256}}})
    assert found.verdict == "error"
    assert "'n'" in str(found.problem.hint)


TIMED = """.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 arguments);
.visible .entry timed()
.reqntid 64, 1, 1
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .local .align 8 .b8 said[8];
  .shared .align 8 .b64 bar;
  .shared .b32 box, flag;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [bar], 1;
  st.shared.u32 [flag], 0;
READY:
  bar.sync 0;
  @%p1 bra WAIT;
  st.shared.u32 [box], 7;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  st.release.cta.shared.u32 [flag], 1;
  ret;
WAIT:
  setp.ne.u32 %p1, %r1, 32;
  @%p1 ret;
  mov.u64 %rd1, %clock64;
AGAIN:
  POLL
  @%p2 bra DONE;
  mov.u64 %rd2, %clock64;
  sub.s64 %rd3, %rd2, %rd1;
  setp.lt.s64 %p3, %rd3, 2000000000;
  @%p3 bra AGAIN;
  mov.u64 %rd4, 0;
  st.local.u32 [said], %r1;
  { .param .b64 format, arguments; .param .b32 status;
    st.param.b64 [format], %rd4; st.param.b64 [arguments], %rd4;
    call.uni (status), vprintf, (format, arguments);
    ld.param.b32 %r7, [status]; }
  LATE
DONE:
  ld.shared.u32 %r2, [box];
  ret;
}
"""
POLLED = {
    "mbarrier": "mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;",
    "flag": "ld.acquire.cta.shared.u32 %r3, [flag]; setp.ne.u32 %p2, %r3, 0;",
}


@pytest.mark.parametrize("poll", POLLED.values(), ids=POLLED)
def test_a_wait_that_prints_and_traps_when_it_takes_too_long_is_a_wait(poll: str) -> None:
    text = TIMED.replace("POLL", poll)
    found = check(text.replace("LATE", "trap;"), {"grid": 1})
    assert (found.verdict, found.findings) == ("proved", ())
    late = text.replace("LATE", "trap;").replace("%p2, [bar], 0", "%p2, [bar], 1").replace("acquire", "relaxed")
    assert "race" in [f.kind for f in check(late, {"grid": 1}).findings]


@pytest.mark.parametrize("poll", POLLED.values(), ids=POLLED)
def test_a_wait_that_goes_on_after_too_long_is_none(poll: str) -> None:
    found = check(TIMED.replace("POLL", poll).replace("LATE", ""), {"grid": 1})
    assert found.verdict == "bounded" or [f.code for f in found.findings] == ["RACE001"]
