"""wgmma is one operation of the lanes of a warp: any lane may wait for it, and the lanes come to it together."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse

RING = """PTX warpgroup
const N = 3;
{{
  .global .align 128 .b8 g[N*4096];
  .shared .align 128 .b8 ab[4096];
  .shared .b64 full, empty;
}}
tma@cta 0, warp 4, lane 0 {{
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 4;
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [empty], (k & 1) ^ 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 4096;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [ab], [g + 4096*k], 4096, [full];
  }}
}}
math@cta 0, warp 0..4 {{
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full], k & 1;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{d0, d1}}, [ab, 2048], [ab + 2048, 2048];
    wgmma.commit_group.sync.aligned;
    {wait}
    if (%laneid == {lane}) {{ mbarrier.arrive.shared::cta.b64 _, [empty]; }}
    wgmma.wait_group.sync.aligned 0;
  }}
}}
"""


def checked(text: str) -> Answer:
    return check(parse(text, "warpgroup.litmus"), load_model("ptx-9.0"), timeout=60)


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("lane", [0, 17, 31])
def test_an_elected_lane_releases_what_its_warp_has_waited_for(lane: int) -> None:
    assert checked(RING.format(wait="wgmma.wait_group.sync.aligned 0;", lane=lane)).verdict == "proved"


@pytest.mark.parametrize("wait", ["", "wgmma.wait_group.sync.aligned 1;"])
def test_a_release_before_the_wait_is_a_race(wait: str) -> None:
    assert [f.code for f in checked(RING.format(wait=wait, lane=0)).findings] == ["RACE003"]


WRITERS = """PTX writers
{{
  .shared .align 128 .b8 ab[4096];
}}
math@cta 0, warp 0 {{
  {role}
  st.shared.u32 [ab + 4*%laneid], 1;
  {fence}
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{d0}}, [ab, 2048], [ab + 2048, 2048];
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  st.shared.u32 [ab + 4*(31 - %laneid)], 2;
}}
"""


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("role", ["", "if (%laneid == 3) { mov.u32 r0, 1; nanosleep.u32 5; }"])
@pytest.mark.parametrize(
    ("fence", "codes"), [("fence.proxy.async;", {"RACE001"}), ("", {"RACE001", "RACE004"})], ids=["fenced", "bare"]
)
def test_lanes_write_before_and_after_their_warps_wgmma(role: str, fence: str, codes: set[str]) -> None:
    """The wgmma orders the accesses of a lane with its own, and not with those of another lane."""
    assert {f.code for f in checked(WRITERS.format(role=role, fence=fence)).findings} == codes


def test_lanes_that_part_ways_never_meet() -> None:
    text = """PTX divergent
{ .global .u32 go = 1; }
math@cta 0, warp 0, lane 0..2 {
  if (%laneid == 0) { wgmma.wait_group.sync.aligned 0; } else { bar.warp.sync 3; }
}
"""
    assert [f.kind for f in checked(text).findings] == ["deadlock"]
