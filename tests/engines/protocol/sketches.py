"""Sketches that several tests vary: the full/empty ring, whole and with single faults."""

from __future__ import annotations

FENCE = "    fence.proxy.async.shared::cta;\n"
ARRIVE = "    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];\n"


def ring(rounds: int = 9, stages: int = 2, warps: int = 2) -> str:
    """One producer, ``warps`` consumer warps, ``stages`` slots."""
    return f"""PTX ring
{{
  .global .align 128 .b8  src[{1024 * max(rounds, 1)}];
  .shared .align 128 .b8  buf[{stages}][1024];
  .shared .align 8   .b64 full[{stages}], empty[{stages}];
}}
const S = {stages}, N = {rounds};
producer@cta 0, warp 0, lane 0 {{
  for s in 0..S {{
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], {32 * warps};
  }}
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf[k%S]], [src + 1024*k], 1024, [full[k%S]];
  }}
}}
consumer@cta 0, warp 1..{1 + warps} {{
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];
{FENCE}{ARRIVE}  }}
}}
"""


def changed(text: str, *changes: tuple[str, str]) -> str:
    """``text`` with every change made; each must apply."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text
