"""Sketches of any number of rounds whose threads go by what they read from words: flags, mailboxes, orders to stop."""

from __future__ import annotations

TOLD_OF_WORK = """PTX told-of-work
const S = 2, N = any;
{
  .shared .u32 tile[S];
  .shared .align 8 .b64 full[S], empty[S];
}
scheduler@cta 0, warp 0, lane 0 {
  for s in 0..S {
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 2;
  }
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    st.shared.u32 [tile[k%S]], 1;
    mbarrier.arrive.shared::cta.b64 _, [full[k%S]];
  }
  await mbarrier.try_wait.parity.shared::cta.b64 [empty[N%S]], ((N/S)%2)^1;
  st.shared.u32 [tile[N%S]], 0;
  mbarrier.arrive.shared::cta.b64 _, [full[N%S]];
}
worker@cta 0, warp 1..3 {
  .reg .u32 v, st, ph, at, fb, eb;
  .reg .pred stop, w;
  bar.sync 0;
  mov.u32 st, 0;
  mov.u32 ph, 0;
MORE:
  mad.lo.u32 fb, st, 8, full;
  mad.lo.u32 eb, st, 8, empty;
  mad.lo.u32 at, st, 4, tile;
  await mbarrier.try_wait.parity.shared::cta.b64 [fb], ph;
  ld.shared.u32 v, [at];
  bar.warp.sync 0xffffffff;
  if (%laneid == 0) { mbarrier.arrive.shared::cta.b64 _, [eb]; }
  setp.eq.u32 stop, v, 0;
  @stop bra END;
  add.u32 st, st, 1;
  setp.eq.u32 w, st, S;
  @w xor.b32 ph, ph, 1;
  @w mov.u32 st, 0;
  bra MORE;
END:
  exit;
}
"""
"""A scheduler that hands out work, and in the end the word that there is no more, to warps that loop until it comes."""

FLAG = """PTX flag
const N = any;
{
  .global .u32 x[4];
  .global .u32 flag = 0, back = 0;
}
writer@cta 0, warp 0, lane 0 {
  for k in 0..N {
    await ld.acquire.gpu.global.u32 r1, [back] == k%2;
    st.global.u32 [x], k;
    st.release.gpu.global.u32 [flag], (k+1)%2;
  }
}
reader@cta 1, warp 0, lane 0 {
  for k in 0..N {
    await ld.acquire.gpu.global.u32 r1, [flag] == (k+1)%2;
    ld.global.u32 r0, [x];
    st.release.gpu.global.u32 [back], (k+1)%2;
  }
}
"""
"""A flag of one bit that hands over, and another one that hands back."""

FLAGS = """PTX flags
const S = 2, N = any;
{
  .global .u32 x[S];
  .global .u32 full[S], empty[S];
}
writer@cta 0, warp 0, lane 0 {
  for k in 0..N {
    await ld.acquire.gpu.global.u32 r1, [empty[k%S]] == (k/S)%2;
    st.global.u32 [x[k%S]], 7;
    st.release.gpu.global.u32 [full[k%S]], ((k/S)%2)^1;
  }
}
reader@cta 1, warp 0, lane 0 {
  for k in 0..N {
    await ld.acquire.gpu.global.u32 r1, [full[k%S]] == ((k/S)%2)^1;
    ld.global.u32 r0, [x[k%S]];
    st.release.gpu.global.u32 [empty[k%S]], ((k/S)%2)^1;
  }
}
"""
"""A ring whose stages have flags instead of mbarriers."""

FENCED = """PTX fenced
const N = any;
{
  .global .u32 x = 0, y = 0;
  .global .u32 flag = 0, back = 0;
}
writer@cta 0, warp 0, lane 0 {
  for k in 0..N {
    await ld.relaxed.gpu.global.u32 r1, [back] == k%2;
    fence.acq_rel.gpu;
    st.global.u32 [x], k;
    st.global.u32 [y], k;
    fence.acq_rel.gpu;
    st.relaxed.gpu.global.u32 [flag], (k+1)%2;
  }
}
reader@cta 1, warp 0, lane 0 {
  for k in 0..N {
    await ld.relaxed.gpu.global.u32 r1, [flag] == (k+1)%2;
    fence.acq_rel.gpu;
    ld.global.u32 r0, [x];
    ld.global.u32 r2, [y];
    fence.acq_rel.gpu;
    st.relaxed.gpu.global.u32 [back], (k+1)%2;
  }
}
"""
"""The same with fences."""

SPUN = """PTX spun
const N = any;
{
  .shared .u32 x, flag, back;
}
writer@cta 0, warp 0, lane 0 {
  .reg .u32 seen, want;
  .reg .pred again;
  mov.u32 want, 0;
  st.shared.u32 [flag], 0;
  st.shared.u32 [back], 0;
  bar.sync 0;
  for k in 0..N {
    FULL: ld.acquire.cta.shared.u32 seen, [back];
    setp.ne.u32 again, seen, want;
    @again bra FULL;
    st.shared.u32 [x], 1;
    xor.b32 want, want, 1;
    st.release.cta.shared.u32 [flag], want;
  }
}
reader@cta 0, warp 1, lane 0 {
  .reg .u32 seen, want;
  .reg .pred again;
  mov.u32 want, 0;
  bar.sync 0;
  for k in 0..N {
    xor.b32 want, want, 1;
    EMPTY: ld.acquire.cta.shared.u32 seen, [flag];
    setp.ne.u32 again, seen, want;
    @again bra EMPTY;
    ld.shared.u32 r0, [x];
    st.release.cta.shared.u32 [back], want;
  }
}
"""
"""The same in one CTA, with waits that are written out."""

DECIDED = """PTX decided
const N = any;
{
  .shared .u32 go;
  .shared .u32 x[64];
}
leader@cta 0, warp 0 {
  for k in 0..N {
    if (%laneid == 0) { st.shared.u32 [go], k%3; }
    bar.sync 0, 64;
    ld.shared.u32 r0, [go];
    if (r0 == 1) { st.shared.u32 [x + 4*%laneid], k; }
    bar.sync 0, 64;
  }
}
mates@cta 0, warp 1 {
  for k in 0..N {
    bar.sync 0, 64;
    ld.shared.u32 r0, [go];
    if (r0 == 2) { ld.shared.u32 r1, [x + 4]; }
    bar.sync 0, 64;
  }
}
"""
"""A thread that decides for a CTA, between barriers."""

FOLLOWED = {
    "told of work": TOLD_OF_WORK, "flag": FLAG, "flags": FLAGS, "fenced": FENCED, "spun": SPUN, "decided": DECIDED,
}  # fmt: skip
