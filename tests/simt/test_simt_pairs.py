"""Copies for two SMs: of a pair of CTAs one mbarrier is told of what comes to both."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

PAIR = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry pair(.param .align 64 .b8 map[128])
.explicitcluster
.reqnctapercluster 2, 1, 1
.reqntid 1, 1, 1
{
  .reg .pred %p<3>;
  .reg .b16 %h<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<3>;
  .shared .align 128 .b8 tile[1024];
  .shared .align 8 .b64 full;
  mov.b64 %rd1, map;
  cvta.param.u64 %rd2, %rd1;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, full;
  mov.u32 %r3, tile;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait;
  setp.ne.u32 %p1, %r1, 0;
  @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 2048;
  and.b32 %r4, %r2, -16777217;
  cvt.u16.u32 %h1, %r1;
  mov.u16 %h2, 1;
  shl.b16 %h3, %h2, %r1;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2
    [%r3], [%rd2, {0, 0}], [%r4], %h3;
  @%p1 bra MEET;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
  ld.shared.u32 %r5, [%r3];
MEET:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ret;
}
"""
MAP = {
    "global_address": {"buffer": 4096}, "elemtype": "f32", "rank": 2, "global_dim": [32, 32], "global_stride": [128],
    "box_dim": [32, 8], "element_stride": [1, 1], "interleave_layout": "none", "swizzle_mode": "none",
    "fill_mode": "zero",
}  # fmt: skip


@pytest.mark.parametrize(("size", "kinds"), [(2048, set()), (1024, {"undefined"}), (3072, {"deadlock"})])
def test_the_even_cta_is_told_of_what_comes_to_the_pair(size: int, kinds: set[str]) -> None:
    found = check(PAIR.replace("2048", str(size)), {"grid": 2, "params": {"map": {"tensormap": MAP}}})
    assert found.verdict == ("finding" if kinds else "proved"), found.reason
    assert kinds <= {f.kind for f in found.findings}
