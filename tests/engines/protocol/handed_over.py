"""Sketches of any number of rounds whose threads hand over by other means than bulk loads and mbarriers."""

from __future__ import annotations

GROUPS = """PTX any-groups
const S = 3, N = any;
{
  .global .align 128 .b8  src[128*N + 128];
  .shared .align 128 .b8  buf[S][128];
}
warp@cta 0, warp 0 {
  for k in 0..N {
    bar.warp.sync 0xffffffff;
    cp.async.ca.shared.global [buf[k%S] + 4*%laneid], [src + 128*k + 4*%laneid], 4;
    cp.async.commit_group;
    if (k >= 1) {
      cp.async.wait_group 1;
      bar.warp.sync 0xffffffff;
      ld.shared.u32 r0, [buf[(k+2)%S] + 4*((%laneid+1)%32)];
    }
    bar.warp.sync 0xffffffff;
  }
}
"""
"""A warp loads a round ahead, and reads what other lanes have loaded."""

RESULTS = """PTX any-results
const S = 2, N = any;
{
  .global .align 128 .b8  out[128*N + 128];
  .shared .align 128 .b8  tile[S][128];
}
warp@cta 0, warp 0 {
  for k in 0..N {
    if (%laneid == 0) {
      cp.async.bulk.wait_group.read 1;
    }
    bar.warp.sync 0xffffffff;
    st.shared.u32 [tile[k%S] + 4*%laneid], k;
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    if (%laneid == 0) {
      cp.async.bulk.global.shared::cta.bulk_group [out + 128*k], [tile[k%S]], 128;
      cp.async.bulk.commit_group;
    }
  }
  if (%laneid == 0) {
    cp.async.bulk.wait_group 0;
  }
}
"""
"""A warp stores its results by bulk copies, from two tiles in turn."""

STORED = """PTX any-stored
const S = 2, N = any;
{
  .shared .align 128 .b32 x[S];
  .shared .align 8   .b64 full[S], empty[S];
}
writer@cta 0, warp 0, lane 0 {
  for s in 0..S {
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 2;
  }
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    st.shared.u32 [x[k%S]], k;
    mbarrier.arrive.shared::cta.b64 _, [full[k%S]];
  }
}
reader@cta 0, warp 1, lane 0..2 {
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    ld.shared.u32 r0, [x[k%S]];
    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];
  }
}
"""
"""A ring that a thread fills by stores."""

BARRIERS = """PTX any-barriers
const N = any;
{
  .shared .align 128 .b32 x[32];
}
writer@cta 0, warp 0 {
  for k in 0..N {
    st.shared.u32 [x + 4*%laneid], k;
    bar.sync 1, 64;
    bar.sync 2, 64;
  }
}
reader@cta 0, warp 1 {
  for k in 0..N {
    bar.sync 1, 64;
    ld.shared.u32 r0, [x + 4*%laneid];
    bar.sync 2, 64;
  }
}
"""
"""Two warps between two named barriers."""

HANDED_OVER = {"groups": GROUPS, "results": RESULTS, "stored": STORED, "barriers": BARRIERS}
