"""What CUTLASS does: it counts on the lane that elect.sync elects, and lets whole warps issue a copy."""

from __future__ import annotations

from mcheck.ptx import check

MODULE = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .shared .align 16 .b8 s[128];
  .shared .align 8 .b64 full;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, full;
  mov.u32 %r3, s;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
READY:
  bar.sync 0;
  elect.sync _|%p2, -1;
  @!%p2 bra WAIT;
  @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 128, [%r2];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
  @!%p3 bra WAIT;
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 128;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
}
"""
LAUNCH = {"grid": [1], "block": [32], "params": {"0": {"buffer": 128}, "1": {"buffer": 4096}}}


def test_the_first_lane_is_elected_and_a_warp_issues_one_copy() -> None:
    found = check(MODULE, LAUNCH)
    assert found.verdict == "proved"
    assert any(
        text.startswith("elect.sync elects the first lane of its mask; if it elected the last")
        for text in found.assumptions
    )
    assert any(text.startswith("lanes of a warp that issue one copy count as one") for text in found.assumptions)


def test_copies_to_the_same_place_from_elsewhere_race() -> None:
    other = MODULE.replace(
        "  cp.async.bulk.global",
        "  shr.u32 %r4, %r1, 4; mad.lo.u32 %r5, %r4, 16, %r3;\n  cp.async.bulk.global",
    ).replace("[%rd2], [%r3], 128;", "[%rd2], [%r5], 64;")
    assert [(f.code, f.accesses[0].span.line) for f in check(other, LAUNCH).findings] == [("RACE003", 30)]
    twice = check(MODULE, {**LAUNCH, "block": [64]})
    assert "RACE003" in {f.code for f in twice.findings}


APART = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k()
{
  .reg .pred %p<4>;
  .reg .b32 %r<4>;
  .shared .align 4 .u32 s;
  mov.u32 %r1, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra OTHER;
  elect.sync _|%p2, 3;
  @%p2 st.shared.u32 [s], 3;
  ret;
OTHER:
  elect.sync _|%p2, 3;
  @%p2 st.shared.u32 [s], 2;
  ret;
}
"""


def test_lanes_that_meet_at_two_instructions_elect_one_of_them() -> None:
    found = check(APART, {"grid": 1, "block": 2, "params": {}})
    assert (found.verdict, found.findings) == ("bounded", ())
    apart = APART.replace("3;\n  @%p2 st.shared.u32 [s], 3", "2;\n  @%p2 st.shared.u32 [s], 3").replace(
        "3;\n  @%p2 st.shared.u32 [s], 2", "1;\n  @%p2 st.shared.u32 [s], 2"
    )
    assert [f.code for f in check(apart, {"grid": 1, "block": 2, "params": {}}).findings] == ["RACE001"]
