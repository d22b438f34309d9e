"""What ``mcheck fences`` says can go, of a ring of four stages and of modules, with what that takes.

    python -m benchmarks.fences_removal [PATH...] [--seconds 120] [--list]

Without a path: the ring, whose 40 synchronisations are written out stage by stage, for any number of rounds, and the
modules of ``tests/simt/corpus`` that are proved. Each row has the synchronisations that were tried, the checks and the
seconds of the processor that it took, how many can go or be weaker alone, how many of the program's instructions are
edited in the largest set found, and whether a check of the program so edited, by itself, is ``proved``. ``--list``
shows what can go.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.fences.candidates import apply_edits
from mcheck.checking.fences.examination import Examined, Limits, examine
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.report.fences import lines

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests/simt/corpus"


@dataclass(frozen=True, slots=True)
class Row:
    """One program with what was found, and the verdict on it with the largest set of edits."""

    name: str
    examined: Examined
    seconds: float
    edited: Verdict | None

    def __str__(self) -> str:
        found = self.examined.removals
        if found is None:
            return f"| {self.name} | {self.examined.verdict} | | | {self.seconds:.1f} | | | | | |"
        gone = sum(each.candidate.removes for each in found.removable)
        places = {each.edit.start for each in (*found.removable, *found.needed, *found.undecided)}
        cells = (
            len(places), found.trials, f"{self.seconds:.1f}", gone, len(found.removable) - gone, len(found.undecided),
            len(found.together), self.edited or "",
        )  # fmt: skip
        return f"| {self.name} | {self.examined.verdict} | {' | '.join(map(str, cells))} |"


HEAD = """| program | verdict | synchronisations | checks | CPU s | go | weaker | open | edits together | with them |
|---|---|---|---|---|---|---|---|---|---|"""


def ring(stages: int = 4, warps: int = 4) -> str:
    """A producer fills the stages by bulk copies for consumer warps, with every fence that a cautious author writes."""
    produce, consume, init = [], [], []
    for s in range(stages):
        init += [
            f"  mbarrier.init.shared::cta.b64 [full[{s}]], 1;",
            f"  mbarrier.init.shared::cta.b64 [empty[{s}]], {warps};",
        ]
        produce += [
            f"    await mbarrier.try_wait.parity.shared::cta.b64 [empty[{s}]], (k+1)%2;",
            "    fence.proxy.async.shared::cta;",
            f"    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[{s}]], 1024;",
            "    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes",
            f"      [buf[{s}]], [src], 1024, [full[{s}]];",
        ]
        consume += [
            f"    await mbarrier.try_wait.parity.shared::cta.b64 [full[{s}]], k%2;",
            f"    ld.shared.u32 r0, [buf[{s}] + 4*%laneid];",
            "    fence.acq_rel.cta;",
            "    bar.warp.sync 0xffffffff;",
            "    if (%laneid == 0) {",
            "      fence.proxy.async.shared::cta;",
            "      fence.acq_rel.cta;",
            f"      mbarrier.arrive.shared::cta.b64 _, [empty[{s}]];",
            "    }",
        ]
    text = [
        f"PTX ring-of-{stages}-stages-and-{warps + 1}-warps",
        "const N = any;",
        "{",
        "  .global .align 128 .b8 src[1024];",
        f"  .shared .align 128 .b8 buf[{stages}][1024];",
        f"  .shared .align 8 .b64 full[{stages}], empty[{stages}];",
        "}",
        "producer@cta 0, warp 0, lane 0 {",
        *init,
        "  fence.mbarrier_init.release.cluster;",
        "  fence.proxy.async.shared::cta;",
        "  bar.sync 0;",
        "  for k in 0..N {",
        *produce,
        "  }",
        "}",
        f"consumer@cta 0, warp 1..{warps + 1} {{",
        "  bar.sync 0;",
        "  for k in 0..N {",
        *consume,
        "  }",
        "}",
    ]
    return "\n".join(text) + "\n"


def measure(path: Path, seconds: float) -> Row:
    """What can go of the program at a path, within so many seconds."""
    started = time.process_time()
    examined = examine(str(path), Limits(timeout=seconds, processor_time=True))
    took, edited = time.process_time() - started, None
    if examined.removals is not None and examined.removals.together:
        text = apply_edits(path.read_text(encoding="utf-8"), examined.removals.together)
        edited = check_case(
            Case(str(path), text=text), Settings(timeout=seconds, processor_time=True), Options()
        ).verdict
    return Row(path.stem, examined, took, edited)


def programs(given: list[str], folder: Path) -> Iterator[Path]:
    """The programs of the table."""
    if given:
        yield from map(Path, given)
        return
    path = folder / "ring-of-4-stages-and-5-warps.litmus"
    path.write_text(ring(), encoding="utf-8")
    yield path
    yield from sorted(CORPUS.rglob("*.ptx"))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--seconds", type=float, default=120.0, help="of the processor, for each program")
    parser.add_argument("--list", action="store_true", help="show what can go")
    options = parser.parse_args()
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for path in programs(options.paths, Path(folder)):
            row = measure(path, options.seconds)
            print(row, flush=True)
            if options.list:
                print("\n".join(lines(row.examined)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
