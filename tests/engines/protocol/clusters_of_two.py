"""Clusters of two CTAs that fill stages of their own and of each other, whose consumers release the stages of both."""

from __future__ import annotations

from collections.abc import Sequence


def cluster(
    rounds: int,
    stages: int,
    *,
    before: tuple[str, str] = ("", ""),
    between: tuple[str, str] = ("", ""),
    order: tuple[str, str] = ("01", "01"),
    sem: str = "release",
    wait: str = "acquire",
    fence: str = "fence.proxy.async;",
    last: str = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;",
    primed: bool = False,
    while_priming: tuple[str, str] = ("", ""),
    drained: bool = False,
    by_lanes: bool = False,
) -> str:
    """Two CTAs: each loads its own tile, rank 0 multicasts another, and both consumers release the stages of both.

    ``before`` stands ahead of the releases of each consumer, ``between`` among them, which come in some ``order``;
    ``last`` is what all do at the end. If the stages are ``primed``, the consumers release them before the first round,
    too, with ``while_priming`` among those releases. If they are ``drained``, the producers wait for the last releases.
    ``by_lanes``: a lane for each CTA releases its stages, once both lanes have come.
    """
    if by_lanes:
        order = "(%laneid)", "(%laneid)"
    early = "(k/S)%2" if primed else "((k/S)%2)^1"
    empty = f"await mbarrier.try_wait.parity.{wait}.cluster.shared::cta.b64 [empty[k%S]], {early};"
    rest = f"for k in N..N+S {{ {empty} }}" if drained else ""
    text = f"""PTX cluster
{{
  .global .align 128 .b8 a[{64 * rounds}], b[{32 * rounds}];
  .shared .align 128 .b8 own[{stages}][32], both[{stages}][32];
  .shared .align 8 .b64 full[{stages}], empty[{stages}];
}}
const S = {stages}, N = {rounds};
"""
    for rank in (0, 1):
        multicast = """
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [both[k%S]], [b + 32*k], 32, [full[k%S]], 3;"""
        text += f"""producer{rank}@cluster 0, cta {rank}, warp 0, lane 0 {{
  for s in 0..S {{
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 2;
  }}
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for k in 0..N {{
    {empty}
    {fence}
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
      [own[k%S]], [a + 64*k + {32 * rank}], 32, [full[k%S]];{"" if rank else multicast}
  }}
  {rest}
  {last}
}}
consumer{rank}@cluster 0, cta {rank}, warp 1, lane {"0..2" if by_lanes else "0"} {{
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
{_releases([order[rank]] if by_lanes else order[rank], while_priming[rank], sem) if primed else ""}
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    {before[rank]}
    {fence}
    {"bar.warp.sync 3;" if by_lanes else ""}
"""
        for k, to in enumerate([order[rank]] if by_lanes else order[rank]):
            text += f"    {between[rank] if k else ''}\n"
            text += f"    mbarrier.arrive.{sem}.cluster.shared::cluster.b64 _, [empty[k%S]@{to}];\n"
        text += f"  }}\n  {last}\n}}\n"
    return text


def _releases(order: Sequence[str], among: str, sem: str) -> str:
    """The first releases of all stages."""
    each = f"\n    {among}\n".join(
        f"    mbarrier.arrive.{sem}.cluster.shared::cluster.b64 _, [empty[k]@{to}];" for to in order
    )
    return f"  for k in 0..S {{\n{each}\n  }}"


OWN, BOTH = "ld.shared.u32 r0, [own[k%S]];", "ld.shared.u32 r1, [both[k%S]];"
READS = OWN + BOTH
