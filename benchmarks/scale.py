#!/usr/bin/env python3
"""How ``mcheck check`` grows with a sketch: rounds, stages and consumer warps of a ring, CTAs of a multicast ring.

    python -m benchmarks.scale [--quick]

Prints a table per dimension: operations, seconds for reading and for checking, executions, verdict, and the exponent
that
fits the seconds against the size. Exit status 1 if a row is not proved, or if the rounds grow faster than ``EXPONENT``.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from time import perf_counter

from mcheck.cat import load_model
from mcheck.protocol.engine import check
from mcheck.syntax import parse

EXPONENT = 1.15
LIMIT = 20.0
"""Seconds that 512 rounds may take, reading included."""


@dataclass(frozen=True, slots=True)
class Row:
    """One size and what it took."""

    size: int
    operations: int
    reading: float
    checking: float
    executions: int
    verdict: str


def ring(rounds: int, stages: int = 4, warps: int = 4) -> str:
    """The full/empty ring: one bulk-copy producer, ``warps`` consumer warps whose lanes all read and arrive."""
    return f"""PTX ring-{rounds}-{stages}-{warps}
{{
  .global .align 128 .b8  src[{1024 * rounds}];
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
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];
  }}
}}
"""


def multicast(ctas: int, rounds: int = 32, stages: int = 4) -> str:
    """A ring in a cluster: every CTA's producer loads its share of each slot into all CTAs; consumers release to
    all.
    """
    share = 1024 // ctas
    return f"""PTX multicast-{ctas}
{{
  .global .align 128 .b8  src[{1024 * rounds}];
  .shared .align 128 .b8  buf[{stages}][1024];
  .shared .align 8   .b64 full[{stages}], empty[{stages}];
}}
const S = {stages}, N = {rounds}, C = {ctas};
producer@cluster 0, cta 0..{ctas}, warp 0, lane 0 {{
  for s in 0..S {{
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], C;
  }}
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  mov.u16 r1, {(1 << ctas) - 1};
  for k in 0..N {{
    await mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [buf[k%S] + {share}*%cluster_ctarank], [src + 1024*k + {share}*%cluster_ctarank], {share}, [full[k%S]], r1;
  }}
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}}
consumer@cluster 0, cta 0..{ctas}, warp 1 {{
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];
    fence.proxy.async;
    bar.warp.sync 0xffffffff;
    if (%laneid == 0) {{
      for c in 0..C {{
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [empty[k%S]@(c)];
      }}
    }}
  }}
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}}
"""


def measure(size: int, text: str) -> Row:
    """Reads and checks one sketch."""
    model = load_model("ptx-9.0")
    start = perf_counter()
    program = parse(text, "scale.litmus")
    read = perf_counter()
    found = check(program, model, timeout=120)
    end = perf_counter()
    operations = sum(len(t.code) for t in program.threads)
    return Row(size, operations, read - start, end - read, found.executions, found.verdict)


def exponent(rows: list[Row]) -> float:
    """The slope of the seconds against the size, both logarithmic, by least squares over the larger half."""
    points = [(math.log(r.size), math.log(r.reading + r.checking)) for r in rows[len(rows) // 2 - 1 :]]
    mean_x, mean_y = (sum(p[k] for p in points) / len(points) for k in (0, 1))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return float(slope)


def table(title: str, rows: list[Row]) -> float:
    """Prints a table; the fitted exponent."""
    print(f"\n{title:>24}  operations  reading  checking  executions  verdict")
    for r in rows:
        print(f"{r.size:>24}  {r.operations:>10}  {r.reading:7.2f}  {r.checking:8.2f}  {r.executions:>10}  {r.verdict}")
    slope = exponent(rows)
    print(f"{'':24}  seconds grow with exponent {slope:.2f}")
    return slope


def main() -> int:
    """Measures everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    quick = parser.parse_args().quick
    most = 128 if quick else 512
    measure(4, ring(4))  # what is imported on the way is not measured
    rounds = [measure(k, ring(k)) for k in (8, 16, 32, 64, 128, 256, 512) if k <= most]
    slope = table("rounds", rounds)
    every = list(rounds)
    for title, sizes, make in (
        ("stages", (2, 3, 4, 6, 8), lambda n: ring(64, stages=n)),
        ("consumer warps", (1, 2, 4, 8, 12), lambda n: ring(64, warps=n)),
        ("CTAs with multicast", (2, 4, 8), lambda n: multicast(n, 16 if quick else 32)),
    ):
        rows = [measure(n, make(n)) for n in sizes]
        table(title, rows)
        every += rows
    slow = rounds[-1].reading + rounds[-1].checking > LIMIT
    wrong = [r for r in every if r.verdict != "proved"]
    if slope > EXPONENT or slow or wrong:
        print(f"\nnot as it should be: exponent {slope:.2f}, {len(wrong)} rows not proved", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
