"""Random kernels whose CTAs count themselves, and what each CTA does alone, in two ways.

    python -m tests.fuzz.class_grids --programs 500 --seed 1

One way executes a CTA of each class and computes the others (``mcheck.simt.grid.pairs.class_executions``), the other
one executes every CTA. Both have to find the same operations at the same places, CTA by CTA. Addresses, stored values,
branches and loops depend on the coordinates in many ways: remainders, quotients, masks, the smaller of two; words are
stored and loaded again at other places, by some lanes or by all, alone or as vectors, directly or by shared memory.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import numpy as np

from mcheck.base.budget import Limit
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.counters.counted_clusters import Counted, execute_counted
from mcheck.simt.grid.counters.grid_counter import find_counter
from mcheck.simt.grid.pairs.class_executions import ClassExecutions, MakeWatch
from mcheck.simt.grid.pairs.reduction import NotReducible, clusters_of
from tests.fuzz.pair_answers import build

THREADS = 4
HEAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out, .param .u64 count, .param .u64 given)
.reqntid {threads}, 1, 1
{{
.reg .pred %p<9>;
.reg .b32 %r<60>;
.reg .b64 %a<60>;
.shared .align 16 .b32 said[64];
ld.param.u64 %a1, [data];
ld.param.u64 %a2, [out];
ld.param.u64 %a3, [count];
ld.param.u64 %a4, [given];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
mov.u32 %r3, %nctaid.x;
sub.u32 %r4, %r3, 1;
mov.u32 %r5, %ctaid.y;
mad.lo.u32 %r1, %r5, %r3, %r1;
mov.u32 %r5, %nctaid.y;
mul.lo.u32 %r3, %r3, %r5;
sub.u32 %r4, %r3, 1;
"""
FORMS = (
    "mov.u32 {r}, %r1;", "mov.u32 {r}, %r2;", "mad.lo.u32 {r}, %r1, {threads}, %r2;", "and.b32 {r}, %r1, 1;",
    "shr.u32 {r}, %r1, 1;", "rem.u32 {r}, %r1, 3;", "div.u32 {r}, %r1, 3;", "min.u32 {r}, %r1, 2;",
    "max.u32 {r}, %r1, 3;", "add.u32 {r}, %r1, %r2;", "xor.b32 {r}, %r1, 1;", "mov.u32 {r}, 3;", "mov.u32 {r}, 0;",
    "sub.u32 {r}, %r4, %r1;", "shl.b32 {r}, %r1, 1;", "mul.lo.u32 {r}, %r2, %r1;",
    "setp.lt.u32 %p8, %r1, 2;\nselp.u32 {r}, %r2, %r1, %p8;", "setp.eq.u32 %p8, %r2, 0;\nselp.u32 {r}, 0, %r1, %p8;",
)  # fmt: skip
GUARDS = (
    "setp.eq.u32 {p}, %r2, 0;", "setp.lt.u32 {p}, %r1, 3;", "setp.ne.u32 {p}, %r1, 2;", "setp.lt.u32 {p}, %r2, %r1;",
    "setp.lt.u32 {p}, %r2, 2;", "setp.eq.u32 {p}, %r2, %r1;",
)  # fmt: skip
TESTED = ("setp.eq.u32 {p}, {r}, 0;", "setp.lt.u32 {p}, {r}, 2;", "setp.eq.u32 {p}, {r}, %r1;")


@dataclass(slots=True)
class Writer:
    """Writes a random kernel."""

    random: Random
    number: int = 10

    def fresh(self) -> int:
        """The number of a register."""
        self.number += 1
        return self.number

    def form(self) -> tuple[list[str], str]:
        """The code of a number that depends on the coordinates, and its register."""
        register = f"%r{self.fresh()}"
        return [self.random.choice(FORMS).format(r=register, threads=THREADS)], register

    def place(self, size: int = 4) -> tuple[list[str], str]:
        """The code of an address of global memory, and its register."""
        code, index = self.form()
        address = f"%a{self.fresh()}"
        base = self.random.choice(("%a1", "%a1", "%a1", "%a2", "%a4"))
        return [*code, f"mul.wide.u32 {address}, {index}, {size};", f"add.s64 {address}, {base}, {address};"], address

    def step(self) -> Iterator[str]:
        """One thing that a CTA does."""
        kind = self.random.choice(
            ("store", "store", "store", "load", "branch", "loop", "vector", "shared", "test", "strong")
        )
        guard = ""
        if self.random.random() < 0.4:
            yield self.random.choice(GUARDS).format(p="%p1")
            guard = self.random.choice(("@%p1 ", "@!%p1 "))
        match kind:
            case "store" | "strong":
                code, at = self.place()
                more, value = self.form()
                how = "st.relaxed.gpu.global.u32" if kind == "strong" else "st.global.u32"
                given = self.random.choice((value, value, "7", "%r58"))
                yield from (*code, *more, f"{guard}{how} [{at}], {given};")
            case "load":
                code, at = self.place()
                yield from (*code, f"{guard}ld.global.u32 %r58, [{at}];")
            case "test":
                code, at = self.place()
                label = f"L{self.fresh()}"
                yield from (*code, f"ld.global.u32 %r57, [{at}];", self.random.choice(TESTED).format(p="%p2", r="%r57"))
                yield from (f"@%p2 bra {label};", "st.global.u32 [%a2], 1;", f"{label}:")
            case "branch":
                label = f"L{self.fresh()}"
                code, at = self.place()
                yield self.random.choice(GUARDS).format(p="%p3")
                yield from (*code, f"@%p3 bra {label};", f"st.global.u32 [{at}], 9;", f"{label}:")
            case "loop":
                code, bound = self.form()
                label, k, at = f"L{self.fresh()}", f"%r{self.fresh()}", f"%a{self.fresh()}"
                yield from (*code, f"min.u32 {bound}, {bound}, 3;", f"mov.u32 {k}, 0;", f"{label}:")
                yield from (f"mul.wide.u32 {at}, {k}, 4;", f"add.s64 {at}, %a1, {at};", f"ld.global.u32 %r56, [{at}];")
                yield from (f"add.u32 {k}, {k}, 1;", f"setp.lt.u32 %p4, {k}, {bound};", f"@%p4 bra {label};")
            case "vector":
                code, at = self.place(8)
                more, value = self.form()
                yield from (*code, *more, f"{guard}st.global.v2.u32 [{at}], {{{value}, 5}};")
            case "shared":
                code, value = self.form()
                at, other = f"%r{self.fresh()}", self.random.choice(("4", "0"))
                yield from (*code, f"shl.b32 {at}, %r2, 2;", "mov.u32 %r55, said;", f"add.u32 {at}, {at}, %r55;")
                yield from (f"st.shared.u32 [{at}], {self.random.choice((value, '3', '%r58'))};", "bar.sync 0;")
                yield f"ld.shared.u32 %r54, [said+{other}];"
                yield from (self.random.choice(TESTED).format(p="%p5", r="%r54"), "@%p5 st.global.u32 [%a2+4], 1;")
                yield "bar.sync 0;"

    def write(self) -> str:
        """The module."""
        lines = [HEAD.format(threads=THREADS)]
        for _ in range(self.random.choice((1, 2, 2, 3))):
            lines += self.step()
        lines += ["bar.sync 0;", "setp.ne.u32 %p6, %r2, 0;", "@%p6 bra COUNTED;", "fence.acq_rel.gpu;"]
        bound = self.random.choice(("%r4",) * 6 + ("%r1",))
        lines += ["atom.relaxed.gpu.global.add.u32 %r6, [%a3], 1;", f"setp.eq.u32 %p7, %r6, {bound};"]
        lines += ["selp.u32 %r7, 1, 0, %p7;", "st.shared.u32 [said+128], %r7;", "fence.acq_rel.gpu;", "COUNTED:"]
        lines += ["bar.sync 0;", "ld.shared.u32 %r8, [said+128];", "setp.ne.u32 %p7, %r8, 1;", "@%p7 bra DONE;"]
        for _ in range(self.random.choice((0, 1, 1, 2))):
            lines += self.step()
        return "\n".join([*lines, "DONE:", "ret;", "}", ""])


def launch_of(grid: list[int], data: int = 4 * THREADS * 96) -> dict[str, Any]:
    """A launch, with so many bytes of data."""
    size = 4 * THREADS * 96
    params: dict[str, Any] = {
        "data": {"buffer": data}, "out": {"buffer": size}, "count": {"buffer": 8, "init": {"hex": "00" * 8}},
        "given": {"buffer": size, "init": {"hex": "00" * size}},
    }  # fmt: skip
    return {"grid": grid, "block": THREADS, "params": params}


def generate(random: Random) -> tuple[str, dict[str, Any]]:
    """A module and its launch."""
    grid = random.choice(([7], [9], [12], [4, 3]))
    size = 4 * THREADS * 96
    return Writer(random).write(), launch_of(grid, random.choice((size, size, 4 * THREADS * 9)))


Done = Counted | str


def execute_each(module: Module, launch: Launch, *, last: bool, apart: bool, shapes: dict[object, int]) -> list[Done]:
    """What each CTA does alone, or why that is not known."""
    limit = Limit(60.0)
    counter = find_counter(module, launch, limit)
    clusters = clusters_of(launch)
    drawn = counter.first + (len(clusters) - 1) * last

    def execute(number: int, watch: MakeWatch | None) -> Counted:
        return execute_counted(module, launch, clusters[number], counter, drawn, shapes, limit, watch)

    found = ClassExecutions(module, launch, clusters, execute, few=1)
    found.apart |= apart
    done: list[Done] = []
    for number in range(len(clusters)):
        try:
            done.append(found[number])
        except NotReducible as error:
            done.append(error.why)
    execute_each.computed = len(clusters) - found.executed  # type: ignore[attr-defined]
    return done


def difference(random: Random) -> tuple[str, int]:
    """What differs between both ways about a random grid, and how many CTAs were computed."""
    return _difference(*generate(random))


def differences_of(code: str, grid: list[int]) -> tuple[str, int]:
    """The same about a grid whose CTAs have some code."""
    return _difference(f"{HEAD.format(threads=THREADS)}{code}\nret;\n}}\n", launch_of(grid))


def _difference(text: str, given: dict[str, Any]) -> tuple[str, int]:
    module, launch = build(text, given, cooperative=False)
    computed = 0
    for last in (False, True):
        shapes: dict[object, int] = {}
        run = partial(execute_each, module, launch, last=last, shapes=shapes)
        each = run(apart=True)
        by_class = run(apart=False)
        computed += max(0, execute_each.computed)  # type: ignore[attr-defined]
        refused = {why for why in each if isinstance(why, str)}
        for number, (one, other) in enumerate(zip(each, by_class, strict=True)):
            if isinstance(one, str) or isinstance(other, str):
                why = [x if isinstance(x, str) else "known" for x in (one, other)]
                if why[0] == "known" and why[1] in refused:  # one of the CTAs that span the class is not known
                    continue
                if "known" in why:
                    return f"CTA {number}, {last}: {why[0]}; by classes {why[1]}\n{text}", computed
                continue
            same = one.cluster == other.cluster and one.alike == other.alike
            names = ("starts", "ends", "threads", "roles", "codes", "places", "segments", "writes", "strong", "counts")
            same &= all(np.array_equal(getattr(one.accesses, n), getattr(other.accesses, n)) for n in names)
            if not same:
                return f"CTA {number}, {last} does something else\n{text}", computed
    return "", computed


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tally: Counter[str] = Counter()
    for seed in range(given.seed, given.seed + given.programs):
        wrong, computed = difference(Random(seed))
        tally["computed" if computed else "executed"] += 1
        if wrong:
            print(f"seed {seed}: {wrong}", flush=True)
            tally["wrong"] += 1
        if seed % 10 == 0:
            print(seed, dict(tally), flush=True)
    print(dict(tally))
    return 0


if __name__ == "__main__":
    sys.exit(main())
