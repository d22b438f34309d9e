"""The code of a stream for a placement in which the threads of a test stand where the test says.

A constant address becomes a register of the thread, as in ``printer``; a constant that differs from thread to thread
becomes a ``Row``, a register that the frame sets before the code runs. Operations of all lanes of a warp keep their
form, and the lanes that do not take part in an operation go round it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hardware.emit import CannotEmit
from hardware.litmus import matrix
from hardware.litmus.fit import owner_of
from hardware.litmus.observe import matrix_registers
from hardware.litmus.printer import POLLS, LanePrinter, opcode_of_text
from hardware.litmus.streams import Step, Stream, Varying, of_warpgroup
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Reg, Unary
from mcheck.ir.memory import SHARED_BASE
from mcheck.ir.ops import Op

WARP = 32
WARPGROUP = 4


@dataclass(frozen=True, slots=True)
class Crew:
    """Who runs a stream: its ``threads`` by number with (CTA, warp, lane), and lanes that follow without a thread.

    Where the test names no thread, ``lanes`` of its warps take part in barriers and ``wgmma``, and ``warps`` has the
    lanes of the other warps of its warpgroups, which take part in ``wgmma``. They have numbers of their own.
    """

    threads: Mapping[int, tuple[int, int, int]]
    lanes: frozenset[int] = frozenset()
    warps: frozenset[int] = frozenset()

    @property
    def everybody(self) -> frozenset[int]:
        """All numbers."""
        return frozenset(self.threads)


@dataclass(slots=True)
class StreamPrinter(LanePrinter):
    """Prints a stream. ``rows`` are the values that threads bring to a register, ``places`` what makes a pointer."""

    stream: Stream = field(kw_only=True)
    crew: Crew = field(kw_only=True)
    counts: Mapping[tuple[int, int | None], tuple[int, int]] = field(kw_only=True)
    shared: Mapping[str, int] = field(kw_only=True)
    everywhere: int | None = field(default=None, kw_only=True)
    rows: dict[tuple[tuple[int, int], ...], str] = field(default_factory=dict, kw_only=True)
    places: dict[tuple[object, ...], str] = field(default_factory=dict, kw_only=True)
    memberships: dict[frozenset[int], str] = field(default_factory=dict, kw_only=True)
    members: frozenset[int] = frozenset()
    tiles: dict[tuple[tuple[str, ...], int], matrix.Tile] = field(default_factory=dict, kw_only=True)

    def body(self) -> list[str]:
        """The instructions of the stream, its registers set to their initial values."""
        k = self.thread.index
        self.words = self.longs = 0
        self.members = self.crew.everybody
        for name, kind in self.thread.types.items():
            start = self.initial(name)
            if kind == "pred":
                self.lines.append(f"setp.ne.u32 {self.named(name)}, {start}, 0;")
            elif kind in ("b64", "u64", "s64", "f64"):
                self.lines.append(f"mov.b64 {self.named(name)}, {start};")
            elif kind in ("b8", "u8", "s8", "b16", "u16", "s16", "f16", "bf16"):
                self.lines.append(f"cvt.u16.u32 {self.named(name)}, {start};" if "%" in start else
                                  f"mov.b16 {self.named(name)}, {start};")  # fmt: skip
            else:
                self.lines.append(f"mov.b32 {self.named(name)}, {start};")
        inside: frozenset[int] | None = None
        for at, step in enumerate(self.stream.steps):
            members = self.taking_part(step)
            if members != inside:
                self.close(inside)
                self.open(members)
                inside = members
            self.seen, self.members = at, members
            if step.label:
                self.lines.append(f"{self.label(step.label)}:")
            elif step.op is not None:
                self.operation(step.op)
        self.close(inside)
        self.lines.append(f"OUT{k}:")
        return self.lines

    def initial(self, name: str) -> str:
        values = {t.index: t.init.get(name, 0) for t in self.stream.threads}
        if len(set(values.values())) == 1:
            return str(next(iter(values.values())))
        return self.row(values)

    # --- who takes part -------------------------------------------------------------------------------------

    def taking_part(self, step: Step) -> frozenset[int]:
        """The threads of a step, and the lanes that stand beside them where a warp acts as one."""
        op = step.op
        if op is None:
            return step.members
        inner = ops.performed_operation(op)
        warps = {self.crew.threads[k][:2] for k in step.members}
        if isinstance(inner, ops.TensormapCopyFence):  # the program has it once for a warp, which executes it as one
            return frozenset(k for k, where in self.crew.threads.items() if where[:2] in warps)
        if not of_warpgroup(inner) and not isinstance(inner, ops.Barrier | ops.ClusterBarrier):
            return step.members
        beside = {k for k in self.crew.lanes if self.crew.threads[k][:2] in warps}
        if of_warpgroup(inner):
            groups = {(cta, warp // WARPGROUP) for cta, warp in warps}
            beside |= {k for k in self.crew.warps if self.group(k) in groups}
            everybody = {k for k in self.crew.threads if self.group(k) in groups}
            if isinstance(inner, ops.Wgmma) and everybody - beside - step.members:
                raise CannotEmit("a warp does not multiply with the others of its warpgroup")
        return step.members | beside

    def group(self, k: int) -> tuple[int, int]:
        """The CTA and the warpgroup of a member of the crew."""
        cta, warp, _ = self.crew.threads[k]
        return cta, warp // WARPGROUP

    def open(self, members: frozenset[int]) -> None:
        if members == self.crew.everybody:
            return
        self.labels += 1
        name = self.memberships.setdefault(members, f"%in{self.thread.index}_{len(self.memberships)}")
        self.lines.append(f"@!{name} bra R{self.thread.index}_{self.labels};")
        self.around = f"R{self.thread.index}_{self.labels}"

    def close(self, members: frozenset[int] | None) -> None:
        if members is not None and members != self.crew.everybody:
            self.lines.append(f"{self.around}:")

    around: str = ""

    # --- constants that differ ------------------------------------------------------------------------------

    def row(self, values: Mapping[int, int]) -> str:
        """The register of 32 bits in which each thread has its value."""
        if any(not -(1 << 31) <= v < 1 << 32 for v in values.values()):
            raise CannotEmit("a constant of 64 bits differs from lane to lane")
        key = tuple(sorted((k, v % (1 << 32)) for k, v in values.items()))
        return self.rows.setdefault(key, f"%v{self.thread.index}_{len(self.rows)}")

    def number(self, expr: Expr | Varying) -> str:
        if not isinstance(expr, Varying):
            return super(StreamPrinter, self).number(expr)
        values = dict(expr.values)
        addresses = [self.is_address(v) for v in values.values()]
        if any(addresses):
            if not all(addresses):
                raise CannotEmit("a constant is an address in some lanes only")
            return self.address(expr)
        return self.row(values)

    def extended(self, expr: Expr | Varying, *, generic: bool) -> str:
        if not isinstance(expr, Varying):
            return super(StreamPrinter, self).extended(expr, generic=generic)
        out = self.long()
        first = expr.values[0][1]
        if first >= SHARED_BASE and self.is_address(first):
            self.lines.append(f"cvt.u64.u32 {out}, {self.address(expr)};")
            if generic:
                self.lines.append(f"cvta.shared.u64 {out}, {out};")
            return out
        if self.is_address(first):
            return self.address(expr)
        self.lines.append(f"cvt.s64.s32 {out}, {self.number(expr)};")
        return out

    def address(self, expr: Expr | Varying) -> str:
        if isinstance(expr, Varying):
            return self.placed(dict(expr.values))
        return super(StreamPrinter, self).address(expr)

    def pointer(self, value: int) -> str:
        return self.placed(dict.fromkeys(self.members, value))

    def placed(self, values: Mapping[int, int]) -> str:
        """The register with the address, which each thread gives in the flat map."""
        found = {k: (owner_of(self.program, v), v) for k, v in values.items()}
        objects = {i.object.name for i, _ in found.values()}
        key: tuple[object, ...]
        if all(i.cta is None for i, _ in found.values()):
            if len(objects) > 1:
                raise CannotEmit("the lanes of an instruction name different objects")
            offsets = {k: v - i.base for k, (i, v) in found.items()}
            key = ("global", objects.pop(), self.offset(offsets))
        elif any(i.cta is None for i, _ in found.values()):
            raise CannotEmit("the lanes of an instruction name different state spaces")
        else:
            offsets = {k: self.shared[i.object.name] + v - i.base for k, (i, v) in found.items()}
            away = {k: i.cta.number != self.crew.threads[k][0] for k, (i, _) in found.items() if i.cta is not None}
            rank = None
            if any(away.values()):
                rank = self.offset({k: i.cta.rank for k, (i, _) in found.items() if i.cta is not None})
            key = ("shared", self.offset(offsets), rank)
        return self.places.setdefault(key, f"%a{self.thread.index}_{len(self.places)}")

    def offset(self, values: Mapping[int, int]) -> str:
        """A number where all threads that take part have one, else the register of a row."""
        if len(set(values.values())) == 1:
            return str(next(iter(values.values())))
        return self.row(values)

    def based(self, expr: Expr | Varying) -> bool:
        if isinstance(expr, Varying):
            return self.is_address(expr.values[0][1])
        return super(StreamPrinter, self).based(expr)

    def wide(self, expr: Expr | Varying) -> bool:
        if isinstance(expr, Varying):
            return expr.values[0][1] < SHARED_BASE
        return super(StreamPrinter, self).wide(expr)

    # --- operations of warps ----------------------------------------------------------------------------------

    def operation(self, op: Op) -> None:
        guard = ""
        if op.guard is not None:
            guard = f"@{'!' if op.guard.negated else ''}{self.reg(op.guard.reg)} "
        if of_warpgroup(op) and guard:
            raise CannotEmit("wgmma under a guard")
        if isinstance(getattr(op, "cta_mask", None), Varying):
            raise CannotEmit("the lanes of a warp copy to other CTAs")
        match op:
            case ops.WarpSync() if not op.text.lstrip("@! ").startswith("tensormap."):
                self.lines.append(f"{guard}bar.warp.sync {self.number(op.mask)};")
            case ops.WarpSync():
                pass  # of tensormap.cp_fenceproxy, whose lanes meet anyway
            case ops.Collective():
                operands = ", ".join(self.collective(op))
                self.lines.append(f"{guard}{self.spelled(op)} {operands};")
            case ops.Barrier():
                operands = self.barrier_operands(op)
                self.lines.append(f"{guard}{operands};")
            case ops.TensormapCopyFence():
                if guard or not self.whole_warps():
                    raise CannotEmit("tensormap.cp_fenceproxy without all lanes of the warp")
                self.lines.append(f"{opcode_of_text(op)} {', '.join(self.operands(op))};")
            case ops.Wgmma():
                self.lines += self.multiply(op)
            case ops.WgmmaFence():
                self.lines += [*self.together(), "wgmma.fence.sync.aligned;"]
            case ops.Commit(family="wgmma"):
                self.lines += [*self.together(), "wgmma.commit_group.sync.aligned;"]
            case ops.WaitGroup(family="wgmma"):
                self.lines += [*self.together(), f"wgmma.wait_group.sync.aligned {self.number(op.pending)};"]
            case _:
                super(StreamPrinter, self).operation(op)

    def awaited(self, op: ops.Await) -> None:
        """A wait; who has given up once waits no more, for an instance that is stuck would hold its CTA for long."""
        k, start = self.thread.index, len(self.lines)
        super(StreamPrinter, self).awaited(op)
        fresh = f"mov.u32 %polls{k}, 0;"
        assert self.lines[start] == fresh
        self.lines[start : start + 1] = [
            f"setp.ne.u32 %q{k}, %stuck{k}, 0;",
            f"selp.u32 %polls{k}, {POLLS}, 0, %q{k};",
        ]

    def whole_warps(self) -> bool:
        """Whether the warps of the members take part with all their lanes."""
        lanes = Counter(self.crew.threads[k][:2] for k in self.members)
        return all(count == WARP for count in lanes.values())

    def operands(self, op: Op) -> list[str]:
        if isinstance(op, ops.TensormapCopyFence):
            return [f"[{self.address(op.dst)}]", f"[{self.address(op.src)}]", self.number(op.size)]
        return super(StreamPrinter, self).operands(op)

    def together(self) -> list[str]:
        """Lanes without a thread have gone round what the threads of their warp did."""
        return [f"bar.warp.sync {(1 << WARP) - 1};"] if self.crew.lanes else []

    def multiply(self, op: ops.Wgmma) -> list[str]:
        shape = matrix.shape(op)
        key = matrix_registers(op), shape.registers
        tile = self.tiles.setdefault(key, matrix.Tile(*key, len(self.tiles)))
        a, b = (self.single(self.address(start), wide=False) for start, _ in op.reads)
        sizes = [self.plain(size) for _, size in op.reads]
        lines = self.together()
        descriptors = []
        for start, size, rows in zip((a, b), sizes, (shape.m, shape.n), strict=True):
            low, long = self.word(), self.long()
            descriptors.append(long)
            lines += matrix.descriptor(long, low, start, size, rows)
        return [*lines, matrix.instruction(shape, self.thread.index, tile, *descriptors)]

    def plain(self, expr: Expr | Varying) -> int:
        if not isinstance(expr, Const):
            raise CannotEmit("a size that is no constant")
        return expr.value

    def collective(self, op: ops.Collective) -> list[str]:
        value, predicate = op.dsts
        if op.op == "elect" or predicate is not None:
            first = f"{self.reg(value)}|{self.reg(predicate)}"
        else:
            first = self.reg(value)
        if value is None and predicate is not None and op.op.startswith("vote"):
            first = self.reg(predicate)
        sources = [self.source(s, op.type) for s in op.srcs]
        return [first, *sources, self.number(op.mask)]

    def source(self, expr: Expr | Varying, kind: str) -> str:
        """What a lane brings; a predicate may be negated."""
        if isinstance(expr, Unary) and expr.op == "!" and isinstance(expr.operand, Reg):
            return f"!{self.reg(expr.operand)}"
        if isinstance(expr, Const | Varying) and kind == "pred":
            raise CannotEmit("a predicate that is a constant")
        return self.number(expr)

    def barrier_operands(self, op: ops.Barrier) -> str:
        """A barrier with the number that the test gives it, or, in the table dialect, one of its own."""
        if op.instance is not None:
            logical = op.barrier.value if isinstance(op.barrier, Const) else None
            number, members = self.counts[op.instance, logical]
            quorum = self.plain(op.count) if op.count is not None else members
            return f"barrier.{op.kind} {number}, {WARP * quorum}"
        assert op.barrier is not None
        number_ = self.number(op.barrier)
        count = self.number(op.count) if op.count is not None else None
        if count is None and self.everywhere is not None:
            count = str(self.everywhere)
        operands = [number_, *([count] if count is not None else [])]
        if op.kind != "red":
            return f"barrier.{op.kind} {', '.join(operands)}"
        assert op.src is not None
        kind = "popc.u32" if op.red_op == "popc" else f"{op.red_op}.pred"
        return f"barrier.red.{kind} {', '.join([self.reg(op.dst), *operands, self.source(op.src, 'pred')])}"
