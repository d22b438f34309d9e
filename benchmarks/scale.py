#!/usr/bin/env python3
"""How ``mcheck check`` grows with a sketch: rounds, stages and consumer warps of a ring, CTAs of a multicast ring, CTAs
with a ring each, and stages of one whose CTAs are not alike; and a ring of any number of rounds.

    python -m benchmarks.scale [--quick] [--limit SECONDS] [--memory MEBIBYTES] [--repeat N]

Prints a table per dimension: operations, seconds for reading and for checking (of the processor), executions, peak
memory, verdict, and the exponent that fits the seconds against the size. Beside it the same ring as a Promela model
under SPIN, in the same time and memory: with a step per instruction, and with as much merged into one step as the ring
allows (``spin/ring.pml``), for any number of rounds with its counters modulo twice the stages; there is none of CTAs
apart, nor of such that are not alike. A row that SPIN does not finish says what ran out, after how many states; larger
sizes are then not tried. ``whole`` is all that the command takes from the file to the answer: ``mcheck check`` with its
start, SPIN with generating and compiling the verifier of this size. Each figure is the least of several runs of either
checker, each in a fresh process: other load on the machine only adds to it. Where SPIN is not installed its columns are
left out.

Exit status 1 if a row is not proved, if the rounds grow faster than ``EXPONENT``, or if SPIN finds an error.
"""

from __future__ import annotations

import argparse
import compileall
import math
import multiprocessing
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time

from benchmarks import promela
from benchmarks.processes import Finished, run_process
from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse

ROOT = Path(__file__).resolve().parent.parent
EXPONENT = 1.15
LIMIT = 20.0
"""Seconds that 512 rounds may take, reading included."""

GRANULARITIES: dict[str, tuple[str, ...]] = {"instructions": (), "merged": ("MERGED",)}
"""SPIN's columns and the macros of the model that make them."""


@dataclass(frozen=True, slots=True)
class Row:
    """One size and what it took."""

    size: int
    operations: int
    reading: float
    checking: float
    executions: int
    mebibytes: float
    verdict: str
    whole: float = 0.0
    """The command ``mcheck check``, from its start to its end."""

    @property
    def seconds(self) -> float:
        """Reading and checking."""
        return self.reading + self.checking


@dataclass(frozen=True, slots=True)
class Dimension:
    """What grows: the sketch of a size for mcheck, and the macros of the Promela model for the same, if it has any, and
    ``words``, those that are set for every size.
    """

    title: str
    sizes: tuple[int, ...]
    sketch: Callable[[int], str]
    macros: Callable[[int], dict[str, int]] | None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """What a row may take, and how often it is run."""

    seconds: float
    mebibytes: int
    repeat: int = 1


def ring(rounds: int | str, stages: int = 4, warps: int = 4, ctas: int = 1) -> str:
    """The full/empty ring: one bulk-copy producer, ``warps`` consumer warps whose lanes all read and arrive; of several
    CTAs each has its own. ``rounds`` may be ``any``.
    """
    where, tile = (f"0..{ctas}", "(N*%ctaid.x + k)") if ctas > 1 else ("0", "k")
    return f"""PTX ring-{rounds}-{stages}-{warps}
const S = {stages}, N = {rounds};
{{
  .global .align 128 .b8  src[1024*N*{ctas} + 1024];
  .shared .align 128 .b8  buf[{stages}][1024];
  .shared .align 8   .b64 full[{stages}], empty[{stages}];
}}
producer@cta {where}, warp 0, lane 0 {{
  for s in 0..S {{
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], {32 * warps};
  }}
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
      [buf[k%S]], [src + 1024*{tile}], 1024, [full[k%S]];
  }}
}}
consumer@cta {where}, warp 1..{1 + warps} {{
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];
  }}
}}
"""


def _consumers(ctas: int, *tiles: str) -> str:
    """A warp of each CTA that reads its words of the tiles of a stage, and releases the stage to all CTAs."""
    loads = "\n".join(f"    ld.shared.u32 r{k}, [{tile}[k%S] + 4*%laneid];" for k, tile in enumerate(tiles))
    return f"""consumer@cluster 0, cta 0..{ctas}, warp 1 {{
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
{loads}
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
{_consumers(ctas, "buf")}"""


def one_sided(stages: int, rounds: int = 12, ctas: int = 2) -> str:
    """A product in a cluster: every CTA loads a tile of its own, rank 0 multicasts another one to all, and all
    consumers release the stages of all CTAs.
    """
    every = (1 << ctas) - 1
    shared = f"""
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [both[k%S]], [b + 1024*k], 1024, [full[k%S]], {every};"""
    producers = "".join(
        f"""producer{rank}@cluster 0, cta {rank}, warp 0, lane 0 {{
  for s in 0..S {{
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], C;
  }}
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed;
  barrier.cluster.wait.acquire;
  for k in 0..N {{
    await mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 2048;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
      [own[k%S]], [a + 1024*k + {1024 * rounds * rank}], 1024, [full[k%S]];{"" if rank else shared}
  }}
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
}}
"""
        for rank in range(ctas)
    )
    return f"""PTX one-sided-{stages}
{{
  .global .align 128 .b8  a[{1024 * rounds * ctas}], b[{1024 * rounds}];
  .shared .align 128 .b8  own[{stages}][1024], both[{stages}][1024];
  .shared .align 8   .b64 full[{stages}], empty[{stages}];
}}
const S = {stages}, N = {rounds}, C = {ctas};
{producers}{_consumers(ctas, "own", "both")}"""


def measure(size: int, text: str, seconds: float) -> Row:
    """Reads and checks one sketch; meant for a process of its own, whose peak memory is told.

    Seconds are those that the process computed, so that other load on the machine is not measured.
    """
    model, question = load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=seconds)
    ask(parse(ring("any", 1, 1), "warm.litmus", every=True), model, question)  # what is imported is not measured
    start = process_time()
    program = parse(text, "scale.litmus", every=True)
    read = process_time()
    found = ask(program, model, question)
    end = process_time()
    operations = sum(len(t.code) for t in program.threads)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (20 if sys.platform == "darwin" else 10))
    return Row(size, operations, read - start, end - read, found.executions, peak, found.verdict)


def alone(size: int, text: str, limits: Limits) -> Row:
    """``measure`` in fresh processes, and the command in others: the quickest of each."""
    rows = []
    for _ in range(limits.repeat):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            rows.append(pool.submit(measure, size, text, limits.seconds).result())
    least = min(rows, key=lambda row: row.seconds)
    return replace(least, whole=min(command(text, limits.seconds).processor for _ in rows))


def searched(macros: dict[str, int], words: tuple[str, ...], limits: Limits) -> promela.Searched:
    """SPIN's search, the quickest of several where it ends."""
    runs = [promela.search(macros, words, limits.seconds, limits.mebibytes)]
    while len(runs) < limits.repeat and not runs[0].why:
        runs.append(promela.search(macros, words, limits.seconds, limits.mebibytes))
    return replace(min(runs, key=lambda run: run.seconds), made=min(run.made for run in runs))


def command(text: str, seconds: float) -> Finished:
    """``mcheck check`` of a sketch."""
    with tempfile.TemporaryDirectory() as folder:
        sketch = Path(folder, "scale.litmus")
        sketch.write_text(text, encoding="utf-8")
        asked = [sys.executable, "-m", "mcheck", "check", str(sketch), "--jobs", "1", "--cpu-timeout", str(seconds)]
        return run_process(asked, check=True)


def exponent(rows: Sequence[Row]) -> float:
    """The slope of the seconds against the size, both logarithmic, by least squares over the larger half."""
    points = [(math.log(r.size), math.log(r.seconds)) for r in rows[len(rows) // 2 - 1 :]]
    mean_x, mean_y = (sum(p[k] for p in points) / len(points) for k in (0, 1))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return float(slope)


def head(title: str, granularities: Sequence[str]) -> str:
    """The two lines above a table."""
    ours = f"{title:>20}  operations  reading  checking  executions    MiB  verdict    whole"
    above, below = " " * len(ours), ours
    for name in granularities:
        columns = f"  |  {'states':>12}  {'seconds':>8}  {'MiB':>6}  {'ratio':>7}  {'whole':>7}  {'ratio':>7}"
        above += f"  |  {'SPIN, ' + name:<{len(columns) - 5}}"
        below += columns
    return f"{above.rstrip()}\n{below}"


def cells(ours: Row, theirs: promela.Searched | None) -> str:
    """SPIN's columns: the ratios are its seconds to ours, at least that where it stopped."""
    if theirs is None:
        return f"  |  {'-':>12}  {'-':>8}  {'-':>6}  {'-':>7}  {'-':>7}  {'-':>7}"
    stopped = ">" if theirs.why else ""
    whole = theirs.made + theirs.seconds
    search, command = (
        f"{stopped}{quotient:.0f}" if quotient >= 10 else f"{stopped}{quotient:.2g}"
        for quotient in (theirs.seconds / ours.seconds, whole / ours.whole)
    )  # fmt: skip
    seconds = f"{theirs.seconds:.2f}" if not theirs.why else theirs.why
    found = f"  |  {stopped + str(theirs.states):>12}  {seconds:>8}  {theirs.mebibytes:6.0f}  {search:>7}"
    return f"{found}  {stopped + f'{whole:.2f}':>7}  {command:>7}"


def table(dimension: Dimension, granularities: Sequence[str], limits: Limits) -> tuple[list[Row], int]:
    """Measures and prints a dimension: its rows and the errors that SPIN found."""
    print(f"\n{head(dimension.title, granularities)}", flush=True)
    rows: list[Row] = []
    stopped: set[str] = set()
    errors = 0
    for size in dimension.sizes:
        r = alone(size, dimension.sketch(size), limits)
        rows.append(r)
        line = f"{r.size:>20}  {r.operations:>10}  {r.reading:7.2f}  {r.checking:8.2f}  {r.executions:>10}"
        line += f"  {r.mebibytes:5.0f}  {r.verdict:<7}  {r.whole:7.2f}"
        for name in granularities:
            theirs = None
            if name not in stopped and dimension.macros is not None:
                macros = dimension.macros(size)
                words = (*GRANULARITIES[name], *dimension.words)
                theirs = searched(macros, words, limits)
                errors += theirs.errors
                if theirs.why:
                    stopped.add(name)
            line += cells(r, theirs)
        print(line, flush=True)
    print(f"{'':20}  mcheck's seconds grow with exponent {exponent(rows):.2f}")
    return rows, errors


def extras(limits: Limits) -> int:
    """What else the model can be: a process per lane; the errors found."""
    errors = 0
    print(f"\n{'SPIN, other forms':<44}  {'states':>12}  {'seconds':>8}  {'MiB':>6}")
    for title, sizes, words in (
        ("a process per lane: 4 warps, 8 rounds", {"K": 8, "S": 4, "W": 128}, ("MERGED",)),
        ("the same of 1 warp, 2 stages, 2 rounds", {"K": 2, "S": 2, "W": 32}, ("MERGED",)),
    ):
        got = promela.search(sizes, words, limits.seconds, limits.mebibytes)
        errors += got.errors
        states, seconds = (f">{got.states}", got.why) if got.why else (f"{got.states}", f"{got.seconds:.2f}")
        print(f"{title:<44}  {states:>12}  {seconds:>8}  {got.mebibytes:6.0f}", flush=True)
    return errors


def dimensions(quick: bool) -> list[Dimension]:
    """What is measured."""
    most, rounds = (128, 16) if quick else (512, 32)
    return [
        Dimension("rounds", tuple(k for k in (8, 16, 32, 64, 128, 256, 512) if k <= most), ring,
                  lambda n: {"K": n, "S": 4, "W": 4}),
        Dimension("stages", (2, 3, 4, 6, 8), lambda n: ring(64, stages=n), lambda n: {"K": 64, "S": n, "W": 4}),
        Dimension("consumer warps", (1, 2, 4, 8, 12), lambda n: ring(64, warps=n), lambda n: {"K": 64, "S": 4, "W": n}),
        Dimension("CTAs with multicast", (2, 4, 8), lambda n: multicast(n, rounds),
                  lambda n: {"K": rounds, "S": 4, "W": 1, "C": n}),
        Dimension("CTAs apart", (2, 4, 8, 16), lambda n: ring(rounds, warps=1, ctas=n), None),
        Dimension("stages, unlike CTAs", (2, 3, 4, 6), one_sided, None),
        Dimension("stages, any rounds", (2, 3, 4, 6, 8), lambda n: ring("any", stages=n),
                  lambda n: {"K": 100_000, "S": n, "W": 4}, ("CYCLIC",)),
        Dimension("warps, any rounds", (2, 4, 8, 12), lambda n: ring("any", warps=n),
                  lambda n: {"K": 100_000, "S": 4, "W": n}, ("CYCLIC",)),
    ]  # fmt: skip


def main() -> int:
    """Measures everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a row may take, of either checker")
    parser.add_argument("--memory", type=int, default=4096, help="mebibytes that SPIN may take")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each row, the quickest of which counts")
    options = parser.parse_args()
    compileall.compile_dir(ROOT / "mcheck", quiet=2)  # as its installation does, whatever Python is told of bytecode
    if options.repeat < 1:
        parser.error("--repeat has to be positive")
    limits = Limits(options.limit, options.memory, options.repeat)
    lacks = promela.missing()
    granularities = [] if lacks else list(GRANULARITIES)
    if lacks:
        print(f"{lacks} is not installed: the columns of SPIN are left out")
    every: list[Row] = []
    errors = 0
    for dimension in dimensions(options.quick):
        rows, wrong = table(dimension, granularities, limits)
        errors += wrong
        if not every:
            slope, slow = exponent(rows), rows[-1].seconds > LIMIT
        every += rows
    if granularities:
        errors += extras(limits)
    unproved = sum(r.verdict != "proved" for r in every)
    if slope > EXPONENT or slow or unproved or errors:
        said = f"exponent {slope:.2f}, {unproved} rows not proved, {errors} errors under SPIN"
        print(f"\nnot as it should be: {said}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
