"""Which stores of lanes count as one, in a class of clusters, against each of its clusters executed by itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from mcheck.base.budget import Limit
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.memory import SHARED_BASE
from mcheck.ptx import check
from mcheck.simt.trace_extraction import ClusterTrace, extract_traces

SEEDS = 48
HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
.reqntid 64, 1, 1
{
	.reg .pred %p<60>;
	.reg .b32 %r<200>;
	.reg .b64 %rd<60>;
	.shared .align 16 .b8 s[256];
	ld.param.u64 %rd1, [a];
	ld.param.u64 %rd2, [b];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %tid.x;
	shr.u32 %r3, %r2, 5;
	and.b32 %r4, %r2, 31;
"""
DECIDED = "ld.global.u32 %r5, [%rd2]; setp.ne.u32 %p1, %r5, 0; @%p1 bra L;"


class Kernel:
    """Writes a kernel whose lanes compute, exchange, load and put values into shared memory, mostly several to one
    place, and load them again.
    """

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.lines: list[str] = []
        self.values, self.next, self.wide, self.predicates = [1, 1, 2, 3, 4], 10, 10, 2

    def fresh(self) -> int:
        self.next += 1
        self.values.append(self.next)
        return self.next

    def value(self) -> str:
        recent = self.values[-3:] if self.rng.random() < 0.5 else self.values
        return f"%r{self.rng.choice(recent)}"

    def compute(self) -> None:
        a, b, d = self.value(), self.value(), self.fresh()
        small = self.rng.choice((0, 1, 2, 3, 32))
        names = ("add.f32", "mul.f32", "add.u32", "xor.b32", "min.u32", "sub.u32")
        lines = [f"{name} %r{d}, {a}, {b};" for name in names] * 2
        lines += [f"and.b32 %r{d}, {a}, {small};", f"mul.lo.u32 %r{d}, {a}, {small};", f"ex2.approx.f32 %r{d}, {a};"]
        self.lines.append(self.rng.choice(lines))

    def select(self) -> None:
        self.predicates += 1
        a, b, c, d = self.value(), self.value(), self.value(), self.fresh()
        self.lines.append(f"setp.lt.u32 %p{self.predicates}, {c}, {self.rng.choice((1, 2, 3, 4, 30))};")
        self.lines.append(f"selp.b32 %r{d}, {a}, {b}, %p{self.predicates};")

    def load(self) -> None:
        self.wide += 2
        m, d, w = self.fresh(), self.fresh(), self.wide
        index = self.rng.choice(
            (
                f"mad.lo.u32 %r{m}, %r1, 16, %r4;",
                f"mad.lo.u32 %r{m}, %r1, 16, 3;",
                f"and.b32 %r{m}, {self.value()}, 63;",
            )
        )
        guard = ""
        if self.predicates > 2 and self.rng.random() < 0.3:
            self.lines.append(f"mov.u32 %r{d}, 0;")
            guard = f"@%p{self.rng.randint(3, self.predicates)} "
        self.lines += [
            index, f"mul.wide.u32 %rd{w}, %r{m}, 4;", f"add.u64 %rd{w}, %rd1, %rd{w};",
            f"{guard}ld.global.u32 %r{d}, [%rd{w}];",
        ]  # fmt: skip

    def shuffle(self) -> None:
        a, d, e = self.value(), self.fresh(), self.fresh()
        kind = self.rng.choice(
            (f"bfly.b32 %r{d}, {a}, 16, 31", f"bfly.b32 %r{d}, {a}, 1, 31", f"idx.b32 %r{d}, {a}, 0, 31")
        )
        self.lines += [f"shfl.sync.{kind}, -1;", f"{self.rng.choice(('add.f32', 'max.u32'))} %r{e}, {a}, %r{d};"]

    def through_shared(self) -> None:
        p, q, value, d = self.fresh(), self.fresh(), self.value(), self.fresh()
        place = self.rng.choice(("%r2", "%r4", "%r4", "%r4", "%r3", "0"))
        again = self.rng.choice(("%r2", "%r4", "%r4", "0", "%r3"))
        for register, index in ((p, place), (q, again)):
            del self.values[self.values.index(register)]
            self.lines += [f"mov.u32 %r{register}, s;", f"mad.lo.u32 %r{register}, {index}, 4, %r{register};"]
            if index == "0":
                self.lines[-1] = f"mov.u32 %r{register}, s;"
        guard = f"@%p{self.rng.randint(3, self.predicates)} " if self.predicates > 2 and self.rng.random() < 0.2 else ""
        self.lines += [
            f"{guard}st.shared.u32 [%r{p}], {value};",
            "bar.sync 0;",
            f"ld.shared.u32 %r{d}, [%r{q}];",
            "bar.sync 0;",
        ]

    def text(self) -> str:
        parts = (self.compute, self.select, self.load, self.shuffle, self.through_shared)
        for _ in range(self.rng.randint(4, 14)):
            self.rng.choices(parts, (4, 1.5, 2, 2, 3))[0]()
        self.through_shared()
        decided = DECIDED if self.rng.random() < 0.5 else ""
        return HEAD + decided + "".join(f"\t{line}\n" for line in self.lines) + "L:\tret;\n}\n"


def stores(way: ClusterTrace) -> Counter[int]:
    """By place in shared memory, how many stores a cluster makes there."""
    out: Counter[int] = Counter()
    for thread in way.program.threads:
        for op in thread.code:
            if isinstance(op, ops.Store):
                assert isinstance(op.address, Lanes | Const)
                at = op.address.values[thread.place.lane] if isinstance(op.address, Lanes) else op.address.value
                if at >= SHARED_BASE:
                    out[int(at)] += 1
    return out


def kernel(seed: int) -> tuple[Module, Launch]:
    """A kernel, and its launch with words of which many are equal."""
    rng = Random(-seed - 1)
    words = b"".join(rng.choice((0, 0, 1)).to_bytes(4, "little") for _ in range(128))
    known = {"buffer": 512, "init": {"hex": words.hex()}} if rng.random() < 0.5 else {"buffer": 512}
    given = {
        "grid": [4],
        "first": [rng.randrange(4), 0, 0],
        "params": {"a": known, "b": {"buffer": 4, "init": {"hex": "00000000"}}},
    }
    read = parse_module(Kernel(seed).text(), f"names{seed}.ptx")
    return read, build_launch(read, from_object(given))


@cache
def look(seed: int) -> tuple[int, bool]:
    """How many clusters are said to be like the executed one, and whether stores of several lanes count as one."""
    read, given = kernel(seed)
    way, *others = extract_traces(read, given, Limit(None))
    if others or way.footprint is None:
        return 0, False
    space, mine, alike = way.footprint.space, stores(way), 0
    for x in range(4):
        if x == given.first[0] or not space.contains((x - given.first[0], 0, 0)):
            continue
        alike += 1
        one = next(extract_traces(read, replace(given, first=(x, 0, 0)), Limit(None)))
        assert stores(one) <= mine, x
    return alike, max(mine.values(), default=0) < 64


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(SEEDS))
def test_stores_that_count_as_one_do_so_in_all_clusters_of_the_class(seed: int) -> None:
    look(seed)


@pytest.mark.daily(days=4, least=0)
def test_clusters_are_often_alike() -> None:
    assert sum(alike == 3 for alike, _ in map(look, range(SEEDS))) > SEEDS // 8


@pytest.mark.parametrize("decided", ["", DECIDED])
@pytest.mark.parametrize(
    ("factor", "answer"), [("%r3", "RACE001"), ("1", "proved")], ids=["another-value", "the-same-value"]
)
def test_a_value_of_two_warps_that_is_one_in_the_first_cta_only(decided: str, factor: str, answer: str) -> None:
    """Warp 0 stores 0 and warp 1 ``%ctaid``; or both ``%ctaid``."""
    body = f"mov.u32 %r7, {factor}; mul.lo.u32 %r6, %r7, %r1; st.shared.u32 [s], %r6; L: ret;\n}}\n"
    given = {"grid": 20, "params": {"a": {"buffer": 4}, "b": {"buffer": 4, "init": {"hex": "00000000"}}}}
    found = check(HEAD + decided + body, given)
    assert ([f.code for f in found.findings] or [found.verdict]) == [answer], found.reason
