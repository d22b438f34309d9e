"""Sketches whose number of rounds is any number."""

from __future__ import annotations


def ring(stages: int = 1, parity: str = "(k/S)%2", bytes_: str = "1024", more: str = "") -> str:
    """One producer, one consumer warp, ``stages`` slots; addresses of the source grow with the rounds."""
    return f"""PTX any-ring
const S = {stages}, N = any;
{{
  .global .align 128 .b8  src[1024*N + 1024];
  .shared .align 128 .b8  buf[S][1024];
  .shared .align 8   .b64 full[S], empty[S];
}}
producer@cta 0, warp 0, lane 0 {{
  for s in 0..S {{
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 32;
  }}
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], {bytes_};
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf[k%S]], [src + 1024*k], 1024, [full[k%S]];
  }}
  for k in N..N+S {{
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
  }}
}}
consumer@cta 0, warp 1 {{
  .reg .b32 n;
  mov.u32 n, 0;
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], {parity};
    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];
    {more}
  }}
}}
"""


CONSUMER = """consumer@cta 0, warp 1 {
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];
    fence.proxy.async.shared::cta;
    RELEASE
  }
}
"""
RELEASE = "mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];"
READER = CONSUMER.replace("RELEASE", RELEASE)
"""A warp that reads every slot and releases it."""


REGISTERS = f"""PTX any-ring-in-registers
const S = 3, N = any;
{{
  .global .align 128 .b8 src[128*N + 128];
  .shared .align 128 .b8 buf[S][128];
  .shared .align 8 .b64 full[S], empty[S];
}}
producer@cta 0, warp 0, lane 0 {{
  .reg .b32 idx, ph, bufa, fa, ea;
  .reg .pred p;
  for s in 0..S {{ mbarrier.init.shared::cta.b64 [full[s]], 1; mbarrier.init.shared::cta.b64 [empty[s]], 32; }}
  bar.sync 0;
  mov.u32 idx, 0;
  mov.u32 ph, 1;
  for k in 0..N {{
    mad.lo.u32 bufa, idx, 128, buf;
    mad.lo.u32 fa, idx, 8, full;
    mad.lo.u32 ea, idx, 8, empty;
    await mbarrier.try_wait.parity.shared::cta.b64 [ea], ph;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [fa], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [bufa], [src + 128*k], 128, [fa];
    add.u32 idx, idx, 1;
    setp.eq.u32 p, idx, S;
    @p mov.u32 idx, 0;
    @p xor.b32 ph, ph, 1;
  }}
}}
{READER}"""
"""The producer keeps its slot and its parity in registers, as ``PipelineState`` of CUTLASS does."""


IN_TURNS = f"""PTX any-in-turns
const S = 3, N = any;
{{
  .global .align 128 .b8 src[128*N + 128];
  .shared .align 128 .b8 buf[S][128];
  .shared .align 8 .b64 full[S], empty[S];
}}
producer@cta 0, warp 2..4, lane 0 {{
  if (%warpid == 2) {{
    for s in 0..S {{ mbarrier.init.shared::cta.b64 [full[s]], 1; mbarrier.init.shared::cta.b64 [empty[s]], 32; }}
  }}
  bar.sync 0;
  for k in 0..N {{
    if (k % 2 == %warpid % 2) {{
      await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 128;
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf[k%S]], [src + 128*k], 128, [full[k%S]];
    }}
  }}
}}
{READER}"""
"""Two producers take turns: of every other number one of them has no round more than of the number before."""


PING_PONG = """PTX any-ping-pong
const N = any;
{
  .global .align 128 .b8  src[256];
  .shared .align 128 .b8  buf[2][128];
  .shared .align 8   .b64 full[2], empty[2];
}
producer@cta 0, warp 0, lane 0 {
  for s in 0..2 {
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 32;
  }
  bar.sync 0;
  for k in 0..N {
    for s in 0..2 {
      await mbarrier.try_wait.parity.shared::cta.b64 [empty[s]], (k%2)^1;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[s]], 128;
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf[s]], [src + 128*s], 128, [full[s]];
    }
  }
}
ping@cta 0, warp 1 {
  bar.sync 0;
  for k in 0..N {
    barrier.cta.sync 1, 64;
    await mbarrier.try_wait.parity.shared::cta.b64 [full[0]], k%2;
    ld.shared.u32 r0, [buf[0] + 4*%laneid];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [empty[0]];
    barrier.cta.arrive 2, 64;
  }
  barrier.cta.sync 1, 64;
}
pong@cta 0, warp 2 {
  bar.sync 0;
  barrier.cta.arrive 1, 64;
  for k in 0..N {
    barrier.cta.sync 2, 64;
    await mbarrier.try_wait.parity.shared::cta.b64 [full[1]], k%2;
    ld.shared.u32 r0, [buf[1] + 4*%laneid];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [empty[1]];
    barrier.cta.arrive 1, 64;
  }
}
"""
"""Two warps take turns, each with a buffer of its own."""


TWO_PIPELINES = """PTX any-attention
const S = 2, N = any;
{
  .global .align 128 .b8  q[128], kv[128*N + 128];
  .shared .align 128 .b8  sq[128], sk[S][128], sv[S][128];
  .shared .align 8   .b64 fq, fk[S], ek[S], fv[S], ev[S];
}
producer@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [fq], 1;
  for s in 0..S {
    mbarrier.init.shared::cta.b64 [fk[s]], 1;
    mbarrier.init.shared::cta.b64 [ek[s]], 32;
    mbarrier.init.shared::cta.b64 [fv[s]], 1;
    mbarrier.init.shared::cta.b64 [ev[s]], 32;
  }
  bar.sync 0;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [fq], 128;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sq], [q], 128, [fq];
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [ek[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [fk[k%S]], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sk[k%S]], [kv + 128*k], 128, [fk[k%S]];
    await mbarrier.try_wait.parity.shared::cta.b64 [ev[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [fv[k%S]], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sv[k%S]], [kv + 128*k], 128, [fv[k%S]];
  }
}
math@cta 0, warp 1 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [fq], 0;
  ld.shared.u32 r0, [sq + 4*%laneid];
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [fk[k%S]], (k/S)%2;
    ld.shared.u32 r1, [sk[k%S] + 4*%laneid];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [ek[k%S]];
    await mbarrier.try_wait.parity.shared::cta.b64 [fv[k%S]], (k/S)%2;
    ld.shared.u32 r2, [sv[k%S] + 4*%laneid];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [ev[k%S]];
  }
}
"""
"""A query, and two pipelines that one loop fills and drains."""


def gemm(ctas: int = 2, stages: int = 2, blocks: int = 2) -> str:
    """A persistent kernel: tiles without end, each of some blocks that all CTAs load together for all of them, with an
    epilogue that stores a tile while the next one is loaded.
    """
    share, mask = 256 // ctas, (1 << ctas) - 1
    return f"""PTX any-gemm
const S = {stages}, T = {blocks}, C = {ctas}, N = any;
{{
  .global .align 128 .b8  src[256], out[128*C*N + 128*C];
  .shared .align 128 .b8  buf[S][256], tile[128];
  .shared .align 8   .b64 full[S], empty[S];
}}
producer@cluster 0, cta 0..{ctas}, warp 0, lane 0 {{
  for s in 0..S {{
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], C;
  }}
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for t in 0..N {{
    for b in 0..T {{
      const k = t*T + b;
      await mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
      fence.proxy.async;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 256;
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [buf[k%S] + {share}*%cluster_ctarank], [src + {share}*%cluster_ctarank], {share}, [full[k%S]], {mask};
    }}
  }}
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}}
consumer@cluster 0, cta 0..{ctas}, warp 1, lane 0 {{
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for t in 0..N {{
    for b in 0..T {{
      const k = t*T + b;
      await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
      ld.shared.u32 r0, [buf[k%S]];
      fence.proxy.async;
      for c in 0..C {{
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [empty[k%S]@(c)];
      }}
    }}
    st.shared.u32 [tile], r0;
    fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [out + 128*C*t + 128*%cluster_ctarank], [tile], 128;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
  }}
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}}
"""


def tiles(place: str, more: str = "") -> str:
    """Two CTAs that know nothing of each other, of which each stores a tile of its own in every round, at a ``place``
    in tiles; ``more`` is what they wait for besides.
    """
    return f"""PTX any-tiles
const N = any;
{{
  .global .align 128 .b8 out[512*N + 8192];
  .shared .align 128 .b8 tile[128];
}}
storer@cta 0..2, warp 0, lane 0 {{
  for k in 0..N {{
    cp.async.bulk.global.shared::cta.bulk_group [out + 128*({place})], [tile], 128;
    cp.async.bulk.commit_group;
    {more}
  }}
  cp.async.bulk.wait_group.read 0;
}}
"""


TILES = {
    "tiles": tiles("2*k + %ctaid.x"), "tiles-in-turn": tiles("2*k + ((k+%ctaid.x) & 1)"),
    "tiles-in-order": tiles("2*k + %ctaid.x", "cp.async.bulk.wait_group 1;"),
}  # fmt: skip

HEAD = """PTX any-guarded
const S = 2, N = any;
{
  .global .align 128 .b8  src[1024*N + 1024];
  .shared .align 128 .b8  buf[S][1024];
  .shared .align 8   .b64 full[S], empty[S];
}
"""
INITS = """  for s in 0..S {
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 32;
  }
"""
LOAD = """mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf[k%S]], [src + 1024*k], 1024, [full[k%S]];"""
GUARDED = {
    "guards": f"""{HEAD}producer@cta 0, warp 0, lane 0 {{
{INITS}  bar.sync 0;
  for k in 0..N {{
    if (k >= S) {{
      await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k-S)/S)%2;
    }}
    {LOAD}
  }}
}}
{CONSUMER.replace("RELEASE", f"if (k + S < N) {{ {RELEASE} }}")}""",
    "ahead": f"""{HEAD}producer@cta 0, warp 0, lane 0 {{
{INITS}  bar.sync 0;
  for k in 0..S {{
    if (k < N) {{
      {LOAD}
    }}
  }}
  for j in 0..N {{
    const k = j + S;
    if (k < N) {{
      await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], (j/S)%2;
      {LOAD}
    }}
  }}
}}
{READER}""",
    "in-branches": f"""{HEAD}producer@cta 0, warp 0 {{
  if (%laneid == 0) {{
{INITS}  }}
  bar.sync 0;
  if (%laneid == 0) {{
    for k in 0..N {{
      await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
      {LOAD}
    }}
  }}
}}
{READER}""",
    "by-an-election": f"""{HEAD}producer@cta 0, warp 0 {{
  .reg .pred p;
  if (%laneid == 0) {{
{INITS}  }}
  bar.sync 0;
  setp.eq.u32 p, %laneid, 3;
  if (p) {{
    for k in 0..N {{
      await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
      {LOAD}
    }}
  }}
}}
{READER}""",
}
"""Rings whose first and last rounds are like no others, and loops in branches."""


TENSOR = f"""PTX any-tensor
const S = 2, N = any;
{{
  .global .align 128 .b8 src[16384];
  .global .align 64 .tensormap tm = {{ global_address = src, elemtype = f16, rank = 2, global_dim = {{64, 128}},
    global_stride = {{128}}, box_dim = {{64, 8}}, element_stride = {{1, 1}}, interleave_layout = none,
    swizzle_mode = none, swizzle_atomicity = 16B, fill_mode = zero }};
  .shared .align 128 .b8  buf[S][1024];
  .shared .align 8   .b64 full[S], empty[S];
}}
producer@cta 0, warp 0, lane 0 {{
{INITS}  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 1024;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
      [buf[k%S]], [tm, {{0, 8*k}}], [full[k%S]];
  }}
}}
{READER}"""
"""Tiles of a tensor, one further with every round."""
