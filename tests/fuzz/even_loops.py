"""Random kernels with loops, most of whose rounds may be left out, and their executions round by round.

    python -m tests.fuzz.even_loops --programs 500 --seed 1

Loops count up or down to bounds that threads or CTAs may differ in, are nested, leave early, have values that go from
one round to the next, steps that are not the same in each round, words that are loaded, guards, and barriers. The
judge is the execution without the shortcut: the accesses of each lane, those of the footprint of the CTA and what it
rests on, and the registers that are known in the end have to be the same; so does the answer.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

from mcheck.base.budget import Limit, TimeOut
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.type_sizes import type_size
from mcheck.ptx import check
from mcheck.simt.execution import cluster
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.grid.footprints.watched_execution import GridWatch, grid_watch
from mcheck.simt.rounds import loop_rounds
from mcheck.simt.rounds.loop_rounds import LoopRounds
from mcheck.simt.trace_extraction import PathRules, follow_paths

BUFFERS = 3
SECONDS = 4.0
"""For an execution: some loops have no end."""
WORDS = 1 << 16
Given = dict[str, Any]
HEADER = """.version 8.0
.target sm_90
.address_size 64
.visible .entry loops(.param .u64 b0, .param .u64 b1, .param .u64 b2, .param .u32 n)
.reqntid THREADS, 1, 1
{
  .reg .pred %p<20>;
  .reg .b32 %r<60>;
  .reg .b64 %rd<30>;
  .reg .f32 %f<20>;
  .shared .align 4 .b8 words[1024];
  ld.param.u64 %rd0, [b0]; ld.param.u64 %rd1, [b1]; ld.param.u64 %rd2, [b2]; ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mov.f32 %f1, 0f00000000; mov.u32 %r5, 0; mov.u32 %r6, 3; mov.u32 %r7, 1; mov.u32 %r8, 0;
  mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd0, %rd3;
  mul.wide.u32 %rd5, %r4, 4; add.u64 %rd6, %rd1, %rd5;
  mul.wide.u32 %rd7, %r4, 4096; add.u64 %rd8, %rd2, %rd7;
"""


class _Writer:
    def __init__(self, random: Random) -> None:
        self.random, self.lines, self.labels = random, list[str](), 0

    def add(self, *lines: str) -> None:
        self.lines += lines

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def access(self, i: str) -> None:
        """An access of a place that may depend on the counter, or on what a register holds that moves."""
        r = self.random
        base = r.choice(("%rd0", "%rd1", "%rd4", "%rd6", "%rd8", "%rd8", "%rd12"))
        index = r.choice((i, i, i, "%r5", "%r6", "%r1", "%r8"))
        scale = r.choice((4, 4, 4, 128, 512, 0))
        address = r.choice(("%rd10", "%rd10", "%rd10", "%rd12"))
        self.add(f"mad.wide.s32 %rd10, {index}, {scale}, {base};")
        guard = r.choice(("", "", "", "@%p2 ", "@!%p3 "))
        what = r.randrange(8)
        if what < 3:
            self.add(f"{guard}ld.global.f32 %f2, [{address}];", "add.f32 %f1, %f1, %f2;")
        elif what < 4:
            self.add(f"{guard}ld.global.nc.u32 %r9, [{address}];")
        elif what < 5:
            self.add(f"{guard}ld.global.u32 {r.choice(('%r9', '%r9', '%r8'))}, [%rd4+4];")
        elif what < 7:
            self.add(f"{guard}st.global.f32 [{address}], %f1;")
        else:
            self.add(f"{guard}st.global.u32 [{address}], {r.choice((i, '%r5', '%r9'))};")

    def computation(self, i: str) -> None:
        """Something that goes from one round to the next, or a predicate."""
        r = self.random
        self.add(
            r.choice((
                f"mov.u32 %r5, {i};", "add.s32 %r5, %r5, 3;", f"add.s32 %r6, %r6, {i};", "xor.b32 %r7, %r7, 1;",
                f"and.b32 %r5, {i}, 7;", "add.s64 %rd12, %rd12, 4;", "add.s64 %rd12, %rd12, -64;",
                "mov.u64 %rd12, %rd6;",
                f"rem.u32 %r5, {i}, 5;", f"min.s32 %r5, {i}, 20;", f"setp.lt.s32 %p2, {i}, {r.randrange(40)};",
                "setp.lt.s32 %p3, %r4, 60;", f"setp.ne.s32 %p2, {i}, %r1;", "selp.b32 %r5, %r6, %r1, %p2;",
                "mul.lo.s32 %r6, %r6, 3;", f"shl.b32 %r5, {i}, 1;", "setp.eq.u32 %p3, %r7, 1;",
                f"sub.s32 %r5, %r4, {i};",
                f"div.u32 %r6, {i}, 3;", f"add.s32 %r8, %r4, {i};", f"cvt.u64.u32 %rd12, {i};",
            )) if r.random() < 0.95 else r.choice(("bar.sync 0;", "shfl.sync.idx.b32 %r5, %r5, 0, 31, -1;"))
        )  # fmt: skip

    def loop(self, depth: int) -> None:
        """A loop: a counter, a bound, a body."""
        r = self.random
        i, p, bound = f"%r{20 + depth}", f"%p{10 + depth}", f"%r{30 + depth}"
        head, end = self.label(), self.label()
        step = r.choice((1, 1, 1, 2, 4, -1, -2))
        rounds = r.choice((3, 12, 15, 20)) if not depth else r.choice((2, 9, 14))
        start = r.choice(("0", "%r1", "%r4", "5"))
        self.add(f"mov.u32 {i}, {start};", f"add.s32 {bound}, {i}, {rounds * step};")
        if r.random() < 0.4:
            self.add(f"add.s32 {bound}, {r.choice(('%r1', '%r2', '%r0', '%r4'))}, {rounds * step};")
        if r.random() < 0.2:
            self.add(f"and.b32 %r9, %r1, 1; mad.lo.s32 {bound}, %r9, {8 * step}, {bound};")
        test = r.choice(("lt", "le")) if step > 0 else r.choice(("gt", "ge"))
        if r.random() < 0.3 and abs(step) == 1:
            test = "ne"
        before = test != "ne" and r.random() < 0.4
        opposite = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
        self.add(f"{head}:")
        if before:
            self.add(f"setp.{opposite[test]}.s32 {p}, {i}, {bound};", f"@{p} bra {end};")
        for _ in range(r.randint(1, 5)):
            which = r.random()
            if which < 0.5:
                self.access(i)
            elif which < 0.85:
                self.computation(i)
            elif which < 0.92 and depth < 1:
                self.loop(depth + 1)
            elif which < 0.96:
                self.add(f"setp.eq.s32 %p4, {i}, {r.choice(('33', '%r1', '%r0', '%r2'))};", f"@%p4 bra {end};")
            else:
                over = self.label()
                self.add(f"@{r.choice(('%p2', '!%p3'))} bra {over};")
                self.access(i)
                self.add(f"{over}:")
        self.add(f"add.s32 {i}, {i}, {step};")
        if before:
            self.add(f"bra {head};")
        else:
            self.add(f"setp.{test}.s32 {p}, {i}, {bound};", f"@{p} bra {head};")
        self.add(f"{end}:")


def random_kernel(random: Random) -> tuple[str, Given]:
    """A module and its launch."""
    w = _Writer(random)
    w.add("mov.u64 %rd12, %rd8;", "setp.lt.s32 %p2, %r1, 8;", "setp.lt.s32 %p3, %r1, 40;")
    for _ in range(random.randint(1, 3)):
        w.loop(0)
        if random.random() < 0.3:
            w.add("bar.sync 0;")
    w.access("%r5")
    w.add("st.global.u32 [%rd8], %r5;", "st.global.u32 [%rd8+4], %r6;", "ret;", "}")
    threads = random.choice((1, 2, 4, 32, 40))
    text = HEADER.replace("THREADS", str(threads)) + "\n".join("  " + line for line in w.lines) + "\n"
    size = 4 * random.choice((WORDS, WORDS, 1 << 8, 1 << 20))
    buffers: list[Given] = [{"buffer": size} for _ in range(BUFFERS)]
    if random.random() < 0.2:
        buffers[0]["init"] = {"hex": "05000000" * 64}
    return text, {"grid": random.choice((1, 2, 7)), "params": [*buffers, random.choice((7, 30, 64))]}


Access = tuple[bool, int, int]


def lane_accesses(c: Cluster) -> Iterator[Counter[Access]]:
    """By lane: how often it writes or reads so many bytes at an address, in all rounds."""
    repeated: dict[int, Counter[Access]] = {}
    for one in c.recorded.repeated_accesses:
        for lane, starts in zip(one.lanes.tolist(), one.every_start().tolist(), strict=True):
            repeated.setdefault(lane, Counter()).update((one.writes, at, one.size) for at in starts)
    for lane, code in enumerate(c.recorded.code):
        found = repeated.get(lane, Counter[Access]())
        for op in code:
            if not isinstance(op, ops.Load | ops.Store):
                continue
            at = op.address
            assert isinstance(at, Const | Lanes)
            place = at.value if isinstance(at, Const) else at.values[lane % WARP]
            found[isinstance(op, ops.Store), place, type_size(op.type) * op.scalar_count] += 1
        yield found


def _execute(text: str, given: Given, *, shortcut: bool) -> list[tuple[Cluster, GridWatch | None]]:
    module = parse_module(text, "loops.ptx")
    launch = build_launch(module, from_object(given))
    rules = PathRules(leaves_rounds_out=shortcut, footprints_alone=True)
    with pytest.MonkeyPatch.context() as patch:
        short_loops(patch)
        for name in ("YIELD_AFTER", "STARVED_AFTER"):  # lanes that wait for others may execute a store apart from them
            patch.setattr(cluster, name, 1 << 40)
        found = follow_paths(module, launch, Limit(SECONDS), lambda: grid_watch(launch), rules=rules)
        return [(c, watch) for _, c, watch in found]


def short_loops(patch: pytest.MonkeyPatch) -> None:
    """Leave rounds out of short loops, too, which show as much."""
    patch.setattr(loop_rounds, "FIRST_VISITS", 2)
    patch.setattr(loop_rounds, "LEAST_ROUNDS", 4)


def _others(c: Cluster) -> list[list[str]]:
    """By lane, the operations that are no accesses."""
    return [[op.text for op in code if not isinstance(op, ops.Load | ops.Store)] for code in c.recorded.code]


def _footprint(watch: GridWatch | None) -> object:
    if watch is None:
        return None
    found = {}
    for form in watch.footprint.beginnings:
        for span, starts in watch.footprint.beginnings[form].items():
            each = [a[:, :1].reshape(-1) for a in starts]  # an access that may be anywhere has no beginning
            for one in watch.footprint.repeated.get(form, {}).get(span, []):
                each.append((one.starts[:, None] + one.stride * np.arange(one.count)).reshape(-1))
            found[form, span] = set(np.concatenate(each).tolist())
    space = watch.space
    return found, space.conditions, space.quotients, set(space.reasons_lost), watch.footprint.outside


def find_difference(text: str, given: Given) -> str:
    """What differs between the execution with the shortcut and that without; nothing if they agree."""
    plain, short = (_execute(text, given, shortcut=shortcut) for shortcut in (False, True))
    if len(plain) != len(short):
        return "paths"
    for (a, watch), (b, other) in zip(plain, short, strict=True):
        if list(lane_accesses(a)) != list(lane_accesses(b)) or a.recorded.operations != b.recorded.operations:
            return "accesses"
        if _others(a) != _others(b) or set(a.recorded.gaps) != set(b.recorded.gaps):
            return "operations"
        if _footprint(watch) != _footprint(other):
            return "footprint"
        needed = sorted(a_row for a_row in b.loop_rounds.compiler.code.needed_rows)
        unlike = a.lanes.quality[needed] != b.lanes.quality[needed]
        known = a.lanes.quality[needed] == 0
        if (unlike | (known & (a.lanes.values[needed] != b.lanes.values[needed]))).any():
            return "registers"
    return ""


def left_out(text: str, given: Given) -> int:
    """How many rounds of lanes are not executed."""
    return sum(c.loop_rounds.left_out for c, _ in _execute(text, given, shortcut=True))


def answers(text: str, given: Given) -> list[tuple[object, ...]]:
    """The answers with the shortcut and without."""
    found: list[tuple[object, ...]] = []
    for shortcut in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            short_loops(patch)
            if not shortcut:
                patch.setattr(LoopRounds, "visit", lambda *_: None)
            one = check(text, given, timeout=20.0)
        found.append((str(one.verdict), frozenset(f.code for f in one.findings)))
    return found


def main() -> None:
    """Compare random kernels."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--answers", action="store_true", help="compare the answers, too")
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    for number in range(asked.programs):
        text, given = random_kernel(Random(f"{asked.seed} {number}"))
        try:
            found = find_difference(text, given)
            counts["left out" if left_out(text, given) else "followed"] += 1
            if asked.answers and not found:
                one, other = answers(text, given)
                counts[str(one[0])] += 1
                found = "" if one == other else f"answers {one} {other}"
        except TimeOut:
            counts["late"] += 1
            continue
        except Exception as error:  # noqa: BLE001 - all of them count
            found = repr(error)
        if found:
            counts["different"] += 1
            print(f"--seed {asked.seed}, number {number}: {found}")
    print(dict(counts))


if __name__ == "__main__":
    main()
