"""Random kernels whose addresses, guards, loops and masked copies depend on the coordinates of the cluster, and what
their clusters access if each is executed by itself.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from mcheck.base.budget import Limit
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.memory import SHARED_BASE
from mcheck.ir.ops import Op
from mcheck.ir.type_sizes import type_size
from mcheck.simt.trace_extraction import ClusterTrace, extract_traces

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
.reqntid 4, 1, 1
{
	.reg .pred %p<60>;
	.reg .b32 %r<200>;
	.reg .b64 %rd<60>;
	.shared .align 16 .b8 s[256];
	ld.param.u64 %rd1, [a];
	ld.param.u64 %rd2, [b];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ctaid.y;
	mov.u32 %r3, %tid.x;
	mov.u32 %r4, %clusterid.x;
"""
GRIDS = ([4, 1, 1], [3, 2, 1], [2, 2, 2], [7, 1, 1], [4, 2, 1], [8, 1, 1])


class Kernel:
    """Writes a kernel."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.lines: list[str] = []
        self.registers = [1, 1, 2, 3, 3, 4]
        self.next = 10
        self.predicates = 0
        self.wide = 10
        self.labels = 0

    def fresh(self) -> int:
        self.next += 1
        return self.next

    def source(self) -> str:
        if self.rng.random() < 0.3:
            return str(self.rng.choice((1, 2, 3, 4, 5, 7, 8, 12, 16, 64, 100, 128)))
        return f"%r{self.rng.choice(self.registers)}"

    def register(self) -> str:
        return f"%r{self.rng.choice(self.registers)}"

    def guard(self) -> str:
        return f"@{self.rng.choice(('', '!'))}%p{self.rng.randint(1, self.predicates)} " if self.predicates else ""

    def compute(self) -> None:
        rng, d = self.rng, self.fresh()
        small = rng.choice((1, 2, 3, 4, 5, 6, 7, 8))
        powers = rng.choice((1, 3, 7, 15, 0xFFFFFFFC, 0xFFFFFFF0, 31, 64, 6, 12, 1 << 20))
        kind = rng.choice(("s32", "u32"))
        forms = (
            f"add.s32 %r{d}, {self.register()}, {self.source()};",
            f"sub.s32 %r{d}, {self.register()}, {self.source()};",
            f"mul.lo.s32 %r{d}, {self.register()}, {small};",
            f"mad.lo.s32 %r{d}, {self.register()}, {small}, {self.register()};",
            f"shl.b32 %r{d}, {self.register()}, {rng.randint(0, 6)};",
            f"shr.{kind} %r{d}, {self.register()}, {rng.randint(0, 4)};",
            f"and.b32 %r{d}, {self.register()}, {powers};",
            f"or.b32 %r{d}, {self.register()}, {powers};",
            f"xor.b32 %r{d}, {self.register()}, {powers};",
            f"div.{kind} %r{d}, {self.register()}, {small};",
            f"rem.{kind} %r{d}, {self.register()}, {small};",
            f"min.{kind} %r{d}, {self.register()}, {self.source()};",
            f"max.{kind} %r{d}, {self.register()}, {self.source()};",
            f"bfe.u32 %r{d}, {self.register()}, {rng.randint(0, 3)}, {rng.randint(1, 4)};",
            f"bfi.b32 %r{d}, {self.register()}, {self.register()}, {rng.choice((2, 7))}, {rng.choice((3, 25, 30))};",
            f"mul.hi.u32 %r{d}, {self.register()}, {rng.choice((1431655766, 858993460, 613566757, 1227133513))};",
            f"neg.s32 %r{d}, {self.register()};",
            f"abs.s32 %r{d}, {self.register()};",
        )
        line = rng.choice(forms)
        if self.predicates and rng.random() < 0.1:
            self.lines.append(f"mov.u32 %r{d}, {self.register()};")
            line = self.guard() + line
        self.lines.append(line)
        self.registers.append(d)

    def compare(self) -> None:
        rng = self.rng
        self.predicates += 1
        p, kind = self.predicates, rng.choice(("s32", "u32"))
        test = rng.choice(("lt", "le", "gt", "ge", "eq", "ne"))
        if p > 2 and rng.random() < 0.3:
            name = rng.choice(("and", "or", "xor"))
            self.lines.append(f"{name}.pred %p{p}, %p{rng.randint(1, p - 1)}, %p{rng.randint(1, p - 1)};")
        else:
            self.lines.append(f"setp.{test}.{kind} %p{p}, {self.register()}, {self.source()};")
        if rng.random() < 0.4:
            d = self.fresh()
            self.lines.append(f"selp.b32 %r{d}, {self.source()}, {self.source()}, %p{p};")
            self.registers.append(d)

    def shuffle(self) -> None:
        d = self.fresh()
        self.lines.append(f"shfl.sync.idx.b32 %r{d}, {self.register()}, 0, 31, 15;")
        self.registers.append(d)

    def access(self, *, guarded: bool = True) -> None:
        rng = self.rng
        m, n = self.fresh(), self.fresh()
        base = rng.choice((1, 1, 2))
        w, at = self.wide + 1, self.wide + 2
        self.wide += 2
        self.lines += [
            f"and.b32 %r{m}, {self.register()}, 0x3ffffff;",
            f"mul.wide.u32 %rd{w}, %r{m}, {rng.choice((4, 4, 4, 16))};",
            f"add.s64 %rd{at}, %rd{base}, %rd{w};",
        ]
        guard = self.guard() if guarded and rng.random() < 0.3 else ""
        name = rng.choice(
            (f"st.global.u32 [%rd{at}], 1;",) * 3
            + (f"ld.global.u32 %r{n}, [%rd{at}];",) * 2
            + (f"red.global.add.u32 [%rd{at}], 1;", f"st.global.u32 [%rd{at}+4], 1;")
        )
        self.lines.append(guard + name)

    def branch(self) -> None:
        if not self.predicates:
            return
        self.labels += 1
        label = f"$L{self.labels}"
        self.lines.append(f"{self.guard()}bra {label};")
        self.access(guarded=False)
        self.lines.append(f"{label}:")

    def tiles_in_groups(self) -> None:
        """The row of a tile where tiles follow each other in groups of rows, and rows behind the last one are the first
        ones again.
        """
        rng = self.rng
        first, size, rest, m, n, row = (self.fresh() for _ in range(6))
        height, columns, rows = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 5)
        self.lines += [
            f"div.s32 %r{first}, {self.register()}, {height * columns};",
            f"mul.lo.s32 %r{first}, %r{first}, {height};",
            f"sub.s32 %r{size}, {rows}, %r{first};",
            f"min.s32 %r{size}, %r{size}, {height};",
            f"max.s32 %r{size}, %r{size}, 1;",
            f"rem.s32 %r{rest}, {self.register()}, {height * columns};",
            f"rem.s32 %r{m}, %r{rest}, %r{size};",
            f"add.s32 %r{m}, %r{m}, %r{first};",
            f"div.s32 %r{n}, %r{rest}, %r{size};",
            f"mad.lo.s32 %r{row}, %r{m}, 4, %r3;",
            f"rem.s32 %r{row}, %r{row}, {4 * rows - rng.randint(0, 3)};",
        ]
        self.registers += [m, n, row, row]

    def loop(self) -> None:
        self.labels += 1
        label, k, p = f"$L{self.labels}", self.fresh(), self.predicates + 1
        self.predicates += 1
        bound = self.fresh()
        self.lines += [f"and.b32 %r{bound}, {self.register()}, 3;", f"mov.u32 %r{k}, 0;", f"{label}:"]
        self.registers.append(k)
        self.access()
        self.lines += [f"add.u32 %r{k}, %r{k}, 1;", f"setp.lt.u32 %p{p}, %r{k}, %r{bound};", f"@%p{p} bra {label};"]

    def prefetch(self) -> None:
        """A loop over rows that copies rows ahead: with size 0 where there is none, mostly at places beyond the end."""
        rng = self.rng
        self.labels += 1
        label = f"$L{self.labels}"
        row, ahead, size, place = (self.fresh() for _ in range(4))
        p, q = self.predicates + 1, self.predicates + 2
        self.predicates += 2
        at = self.wide + 1
        self.wide += 1
        count, step = rng.randint(2, 9), rng.choice((2, 3, 4))
        copied = rng.choice(("4", "8", "16"))
        self.lines += [
            f"mov.u32 %r{row}, {rng.choice(('%ctaid.x', '%ctaid.y', '%clusterid.x', '%tid.x'))};",
            f"mad.lo.u32 %r{place}, %tid.x, 16, s;",
            f"{label}:",
            f"add.u32 %r{ahead}, %r{row}, {step * rng.randint(0, 2)};",
            f"setp.lt.u32 %p{p}, %r{ahead}, {count + rng.choice((0, 0, 0, 1))};",
            f"selp.b32 %r{size}, {copied}, {rng.choice(('0', '0', '4'))}, %p{p};",
            f"mad.lo.u32 %r{ahead}, %r{ahead}, 4, %tid.x;",
            f"mad.wide.u32 %rd{at}, %r{ahead}, 16, %rd{rng.choice((1, 2))};",
            f"cp.async.ca.shared.global [%r{place}], [%rd{at}], {copied}, %r{size};",
            f"add.u32 %r{row}, %r{row}, {step};",
            f"setp.lt.u32 %p{q}, %r{row}, {count};",
            f"@%p{q} bra {label};",
            "cp.async.wait_all;",
        ]

    def text(self) -> str:
        for _ in range(self.rng.randint(1, 9)):
            self.compute()
        for _ in range(self.rng.randint(1, 5)):
            part = self.rng.choices(
                (
                    self.compute,
                    self.compare,
                    self.access,
                    self.branch,
                    self.loop,
                    self.shuffle,
                    self.tiles_in_groups,
                    self.prefetch,
                ),
                (4, 3, 5, 1.5, 0.7, 0.5, 1.5, 1.5),
            )[0]
            part()
        self.access()
        return HEAD + "".join(f"\t{line}\n" for line in self.lines) + "\tret;\n}\n"


def kernel(seed: int) -> tuple[Module, Launch]:
    """The kernel of a seed, with its launch."""
    rng = Random(-seed - 1)
    grid = rng.choice(GRIDS)
    read = parse_module(Kernel(seed).text(), f"kernel{seed}.ptx")
    first = [rng.randrange(n) for n in grid]
    said = {"grid": grid, "first": first, "params": {"a": {"buffer": None}, "b": {"buffer": None}}}
    return read, build_launch(read, from_object(said))


Bytes = dict[str, set[int]]


def accessed(way: ClusterTrace) -> Bytes:
    """The bytes of global memory that a cluster reads, writes, reduces into."""
    out: Bytes = {"read": set(), "write": set(), "reduce": set()}
    for thread in way.program.threads:
        for op in thread.code:
            lane = thread.place.lane
            if isinstance(op, ops.CpAsync):
                at = _value(op.src, lane)
                out["read"].update(range(at, at + _value(op.src_size or op.size, lane)))
                continue
            kind, size = _kind(op)
            if kind is None:
                continue
            at = _value(op.address, lane)  # type: ignore[attr-defined]
            if at < SHARED_BASE:
                out[kind].update(range(at, at + size))
    return out


def _value(given: object, lane: int) -> int:
    assert isinstance(given, Lanes | Const)
    return int(given.values[lane] if isinstance(given, Lanes) else given.value)


def _kind(op: Op) -> tuple[str | None, int]:
    match op:
        case ops.Load():
            return "read", type_size(op.type) * len(op.dsts)
        case ops.Store():
            return "write", type_size(op.type) * len(op.srcs)
        case ops.Atomic():
            return "reduce", type_size(op.type)
    return None, 0


def each(read: Module, given: Launch) -> dict[tuple[int, ...], tuple[Bytes, int]]:
    """What every cluster accesses, and how many operations it has, by its distance from the first one."""
    out = {}
    for z in range(given.grid[2]):
        for y in range(given.grid[1]):
            for x in range(given.grid[0]):
                way = next(extract_traces(read, replace(given, first=(x, y, z)), Limit(None)))
                distance = tuple(a - b for a, b in zip((x, y, z), given.first, strict=True))
                out[distance] = accessed(way), way.operations
    return out
