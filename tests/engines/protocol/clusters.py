"""Small clusters whose CTAs fill and drain a ring of stages together, any number of times: alike, right, or not."""

from __future__ import annotations

from random import Random

EMPTY = "await mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;"
FULL = "await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;"
READ = "ld.shared.u32 r0, [buf[k%S]];"
FENCE = "fence.proxy.async;"
MISTAKES = {
    "no-proxy-fence": (f"{EMPTY}\n      {FENCE}", EMPTY),
    "no-fence-behind-the-read": (f"{READ}\n      {FENCE}", READ),
    "no-proxy-fence-at-all": (FENCE, ""),
    "a-proxy-fence-that-ends": (FENCE, f"if (k < LATE) {{ {FENCE} }}"),
    "no-release": ("arrive.release.cluster.shared", "arrive.relaxed.cluster.shared"),
    "no-wait-for-the-stage": (EMPTY, ""),
    "no-wait-for-the-bytes": (FULL, ""),
    "bytes-too-many": ("[full[k%S]], BYTES;", "[full[k%S]], BYTES + 16;"),
    "late-bytes": ("[full[k%S]], BYTES;", "[full[k%S]], BYTES + 16*(k == LATE);"),
    "late-parity": (FULL, FULL.replace("(k/S)%2", "(k/S + k/LATE)%2")),
    "one-cta-fewer": ("for c in 0..C", "for c in 1..C"),
    "a-count-too-many": ("[empty[s]], C;", "[empty[s]], C + 1;"),
    "a-last-round": (READ, f"if (k == N-1) {{ st.shared.u32 [buf[0]], 1; }}\n      {READ}"),
    "the-tile-too-early": ("    cp.async.bulk.wait_group 0;\n", ""),
    "results-over-results": ("wait_group 0", "wait_group.read 0"),
}


def cluster(random: Random, mistake: str | None = None) -> str:
    """A sketch; its shape is drawn, and some have no place for some mistakes."""
    ctas, stages = random.choice((1, 2, 2, 3)), random.choice((1, 2, 2, 3))
    alike = random.random() < 0.6
    sources = ctas if alike else 1
    bytes_ = 64 * sources
    mask = (1 << ctas) - 1
    epilogue = random.random() < 0.5
    copy = f"""cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [buf[k%S] + 64*%cluster_ctarank], [src + 64*%cluster_ctarank], 64, [full[k%S]], {mask};"""
    store = """    st.shared.u32 [tile], r0;
    fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [out + 128*%cluster_ctarank], [tile], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
"""
    producers = "".join(
        f"""producer{rank}@cluster 0, cta {ranks}, warp 0, lane 0 {{
  for s in 0..S {{
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], C;
  }}
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for t in 0..N {{
      const k = t;
      {EMPTY}
      {FENCE}
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], BYTES;
      {copy if copies else ""}
  }}
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}}
"""
        for rank, ranks, copies in ([(0, f"0..{ctas}", True)] if alike else [(r, r, r == 0) for r in range(ctas)])
    )
    text = f"""PTX any-cluster
const S = {stages}, C = {ctas}, N = any;
{{
  .global .align 128 .b8  src[512], out[512];
  .shared .align 128 .b8  buf[S][256], tile[128];
  .shared .align 8   .b64 full[S], empty[S];
}}
{producers}consumer@cluster 0, cta 0..{ctas}, warp 1, lane 0 {{
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for t in 0..N {{
      const k = t;
      {FULL}
      {READ}
      {FENCE}
      for c in 0..C {{
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [empty[k%S]@(c)];
      }}
{store if epilogue else ""}  }}
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}}
"""
    if mistake is not None:
        old, new = MISTAKES[mistake]
        text = text.replace(old, new)
    return text.replace("BYTES", str(bytes_)).replace("LATE", str(random.choice((5, 33))))
