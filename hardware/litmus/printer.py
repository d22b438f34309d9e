"""The code of one thread of a litmus test, for the instance of its lane.

A constant address becomes a register that holds the address of this instance's object. The frame sets those that
``pointers`` lists before the code runs, and the coordinates in ``texels``. Waits and loops poll a bounded number of
times: then the instance counts as stuck and the thread goes on, so that nobody else waits for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hardware.emit import CannotEmit, Printer
from hardware.litmus import views
from hardware.litmus.fit import Shape, owner_of
from hardware.litmus.views import Registers, View
from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, SHARED_WINDOW
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size

POLLS = 20_000

_COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_FLOATS = {"f32": ("0f", 8), "f64": ("0d", 16), "f16": ("", 0), "bf16": ("", 0), "f16x2": ("", 0), "bf16x2": ("", 0)}
_WIDE = ("b64", "u64", "s64")
Accessing = ops.MbarrierInit | ops.MbarrierArrive | ops.MbarrierWait | ops.MbarrierTx | ops.MbarrierInval
"""Operations that may have a generic address of shared memory (9.7.13.15)."""


@dataclass(slots=True)
class LanePrinter(Printer):
    """Prints the code of one thread; ``pointers`` maps (object, CTA or ``None``, offset) to the address's register."""

    program: Program = field(kw_only=True)
    shape: Shape = field(kw_only=True)
    pointers: dict[tuple[str, int | None, int], str] = field(default_factory=dict, kw_only=True)
    texels: dict[View, dict[int, Registers]] = field(default_factory=dict, kw_only=True)
    seen: int = 0

    def body(self) -> list[str]:
        """The instructions of the thread, its registers set to their initial values."""
        index = self.thread.index
        self.words = self.longs = 0
        for name, kind in self.thread.types.items():
            if kind == "pred":
                self.lines.append(f"setp.ne.u32 {self.named(name)}, 0, 0;")
            else:
                value = self.thread.init.get(name, 0)
                self.lines.append(f"mov.b{max(8 * type_size(kind), 16)} {self.named(name)}, {value};")
        places: dict[int, list[str]] = {}
        for label, at in self.thread.labels.items():
            places.setdefault(at, []).append(label)
        for at, op in enumerate(self.thread.code):
            self.lines += [f"{self.label(label)}:" for label in places.get(at, ())]
            self.seen = at
            self.operation(op)
        self.lines += [f"{self.label(label)}:" for label in places.get(len(self.thread.code), ())]
        self.lines.append(f"OUT{index}:")
        return self.lines

    # --- registers, numbers, addresses --------------------------------------------------------------------

    def reg(self, reg: Reg | None) -> str:
        if reg is not None and reg.name not in self.thread.types:
            raise CannotEmit("a register that nothing writes")
        return Printer.reg(self, reg)

    def named(self, name: str) -> str:
        return f"%t{self.thread.index}_{name}"

    def label(self, name: str) -> str:
        return f"L{self.thread.index}_{name.replace('.', '_')}"

    def word(self) -> str:
        self.words += 1
        return f"%x{self.thread.index}_{self.words}"

    def long(self) -> str:
        self.longs += 1
        return f"%y{self.thread.index}_{self.longs}"

    def number(self, expr: Expr) -> str:
        if isinstance(expr, Const) and expr.value >= GLOBAL_BASE and self.is_address(expr.value):
            return self.address(expr)
        return super(LanePrinter, self).number(expr)

    def is_address(self, value: int) -> bool:
        return any(i.base <= value < i.base + i.object.size for i in self.program.memory.instances)

    def literal(self, expr: Expr, kind: str) -> str:
        """An operand of an atomic: bits of a floating-point number are spelled so."""
        if not isinstance(expr, Const) or kind not in _FLOATS:
            return self.number(expr)
        prefix, digits = _FLOATS[kind]
        if not prefix:
            raise CannotEmit(f"a constant of type {kind}")
        return f"{prefix}{expr.value:0{digits}x}"

    def extended(self, expr: Expr, *, generic: bool) -> str:
        """An operand of 64 bits, where addresses of shared objects have 32."""
        if not isinstance(expr, Const) or expr.value < SHARED_BASE or not self.is_address(expr.value):
            return self.number(expr)
        out = self.long()
        self.lines.append(f"cvt.u64.u32 {out}, {self.address(expr)};")
        if generic:
            self.lines.append(f"cvta.shared.u64 {out}, {out};")
        return out

    def pointer(self, value: int) -> str:
        """The register with the address that ``value`` is in the flat map."""
        instance = owner_of(self.program, value)
        key = (instance.object.name, instance.cta.number if instance.cta else None, value - instance.base)
        return self.pointers.setdefault(key, f"%a{self.thread.index}_{len(self.pointers)}")

    def address(self, expr: Expr) -> str:
        if isinstance(expr, Const):
            return self.pointer(expr.value)
        if isinstance(expr, Reg):
            return self.reg(expr)
        if not isinstance(expr, Binary) or expr.op not in ("+", "-"):
            raise CannotEmit(f"the address {expr}")
        if isinstance(expr.right, Const) and not self.is_address(expr.right.value):
            return f"{self.address(expr.left)}+{expr.right.value if expr.op == '+' else -expr.right.value}"
        base, rest = expr.left, expr.right
        if not self.based(base):
            base, rest = rest, base
        if expr.op == "-" or not self.based(base):
            raise CannotEmit(f"the address {expr}")
        wide = self.wide(base)
        start = self.single(self.address(base), wide=wide)
        offset = self.number(rest)
        out = self.long() if wide else self.word()
        if wide:
            extended = self.long()
            self.lines.append(f"{'mov.b64' if self.is_long(rest) else 'cvt.u64.u32'} {extended}, {offset};")
            self.lines.append(f"add.u64 {out}, {start}, {extended};")
        else:
            self.lines.append(f"add.u32 {out}, {start}, {offset};")
        return out

    def based(self, expr: Expr) -> bool:
        """Whether an address of an object is part of ``expr``."""
        if isinstance(expr, Const):
            return self.is_address(expr.value)
        if isinstance(expr, Binary):
            return self.based(expr.left) or self.based(expr.right)
        return False

    def wide(self, expr: Expr) -> bool:
        if isinstance(expr, Const):
            return expr.value < SHARED_BASE
        return isinstance(expr, Binary) and any(self.wide(e) for e in (expr.left, expr.right) if self.based(e))

    def is_long(self, expr: Expr) -> bool:
        if isinstance(expr, Reg):
            return self.thread.types.get(expr.name) in _WIDE
        if isinstance(expr, Unary):
            return self.is_long(expr.operand)
        return isinstance(expr, Binary) and (self.is_long(expr.left) or self.is_long(expr.right))

    def single(self, address: str, *, wide: bool) -> str:
        """``address`` without an offset behind it."""
        if "+" not in address:
            return address
        start, offset = address.rsplit("+", 1)
        out = self.long() if wide else self.word()
        self.lines.append(f"add.{'u64' if wide else 'u32'} {out}, {start}, {offset};")
        return out

    # --- operations ----------------------------------------------------------------------------------------

    def operation(self, op: Op) -> None:
        index = self.thread.index
        guard = ""
        if op.guard is not None:
            guard = f"@{'!' if op.guard.negated else ''}{self.reg(op.guard.reg)} "
        match op:
            case ops.Label():
                return
            case ops.Await():
                self.awaited(op)
            case ops.Exit():
                self.lines.append(f"{guard}bra OUT{index};")
            case ops.Branch():
                self.branch(op, guard)
            case ops.WarpSync():
                return  # its one lane
            case ops.Barrier():
                if guard:
                    raise CannotEmit("a barrier under a guard")
                self.barrier(op)
            case ops.TensormapCopyFence():
                if guard or self.branches:
                    raise CannotEmit("tensormap.cp_fenceproxy behind a branch")
                self.copy_map(op)
            case ops.Alu(op="nop"):
                self.lines += [f"{guard}{line}" for line in self.without_effect(op)]
            case _ if views.proxy_of(op) is not None:
                self.viewed(op, guard)
            case _:
                self.lines.append(f"{guard}{self.spelled(op)} {', '.join(self.operands(op))};")

    def without_effect(self, op: ops.Alu) -> list[str]:
        """What touches no memory: a pause. Registers that a warp gives back or takes are others in this kernel."""
        opcode = opcode_of_text(op)
        if opcode.startswith("setmaxnreg."):
            return []
        operand = op.text.partition(opcode)[2].strip().rstrip(";").strip()
        name = operand.lstrip("%")
        if name in self.thread.types:
            operand = self.named(name)
        elif not re.fullmatch(r"\d+|0[xX][0-9a-fA-F]+", operand):
            raise CannotEmit(f"the operand {operand} of {opcode}")
        return [f"{opcode} {operand};"]

    @property
    def branches(self) -> bool:
        """Whether a lane of the thread may go another way than the others."""
        return any(isinstance(op, ops.Branch | ops.Exit) for op in self.thread.code)

    def copy_map(self, op: ops.TensormapCopyFence) -> None:
        """The copy is made by a warp, each lane a word of it (9.7.13.16), so the instances of a warp take turns."""
        index = self.thread.index
        self.labels += 1
        label = f"C{index}_{self.labels}"
        target, source = self.single(self.address(op.dst), wide=True), self.single(self.address(op.src), wide=False)
        turn, low, high, mine, to = self.word(), self.word(), self.word(), self.word(), self.long()
        self.lines += [
            f"mov.u32 {turn}, 0;",
            f"{label}:",
            "bar.warp.sync 0xffffffff;",  # what the instance of the turn wrote, before the others read it
            f"mov.b64 {{{low}, {high}}}, {target};",
            f"shfl.sync.idx.b32 {low}, {low}, {turn}, 31, 0xffffffff;",
            f"shfl.sync.idx.b32 {high}, {high}, {turn}, 31, 0xffffffff;",
            f"shfl.sync.idx.b32 {mine}, {source}, {turn}, 31, 0xffffffff;",
            f"mov.b64 {to}, {{{low}, {high}}};",
            f"{opcode_of_text(op)} [{to}], [{mine}], {self.number(op.size)};",
            "bar.warp.sync 0xffffffff;",  # what the others wrote, before it goes on
            f"add.u32 {turn}, {turn}, 1;",
            f"setp.lt.u32 %q{index}, {turn}, 32;",
            f"@%q{index} bra {label};",
        ]

    def viewed(self, op: Op, guard: str) -> None:
        """An access through the texture or the surface proxy, where the program has it."""
        view, word = views.view_of(self.program, op)
        where = self.texel(view, word)
        if isinstance(op, ops.Load):
            line = views.read(view.proxy, self.reg(op.dsts[0]), where)
        else:
            assert isinstance(op, ops.Store)
            value = self.word()
            self.lines.append(f"mov.b32 {value}, {self.number(op.srcs[0])};")
            line = views.write(value, where)
        self.lines += [views.KEPT, f"{guard}{line}", views.KEPT]

    def texel(self, view: View, word: int) -> Registers:
        """The registers that say where an access of a texture or a surface goes."""
        words = self.texels.setdefault(view, {})
        number = f"{self.thread.index}_{sum(map(len, self.texels.values()))}"
        return words.setdefault(word, Registers(f"%hv{number}", f"%cx{number}", f"%cy{number}"))

    def branch(self, op: ops.Branch, guard: str) -> None:
        index = self.thread.index
        if op.condition is not None:
            self.lines.append(f"setp.{self.test(op.condition)};")
            guard = f"@%p{index} "
        if self.thread.labels[op.target] > self.seen:
            self.lines.append(f"{guard}bra {self.label(op.target)};")
            return
        self.labels += 1
        skip = f"B{index}_{self.labels}"
        inverse = {"": "", f"@%p{index} ": f"@!%p{index} "}.get(guard)
        if inverse is None:
            inverse = guard.replace("@!", "@") if guard.startswith("@!") else guard.replace("@", "@!")
        if inverse:
            self.lines.append(f"{inverse}bra {skip};")
        self.lines += [
            f"add.u32 %polls{index}, %polls{index}, 1;",
            f"setp.lt.u32 %q{index}, %polls{index}, {POLLS};",
            f"@%q{index} bra {self.label(op.target)};",
            f"mov.u32 %stuck{index}, 1;",
            f"{skip}:",
        ]

    def test(self, condition: Expr) -> str:
        """What follows ``setp.`` for a condition of registers."""
        index = self.thread.index
        if isinstance(condition, Binary) and condition.op in _COMPARE:
            kind = "s32" if self.program.dialect else "u64" if self.is_long(condition) else "u32"
            left, right = self.number(condition.left), self.number(condition.right)
            return f"{_COMPARE[condition.op]}.{kind} %p{index}, {left}, {right}"
        if isinstance(condition, Reg) and self.thread.types.get(condition.name) == "pred":
            return f"ne.u32 %p{index}, 0, 0;\nor.pred %p{index}, %p{index}, {self.reg(condition)}"
        return f"ne.u32 %p{index}, {self.number(condition)}, 0"

    def awaited(self, op: ops.Await) -> None:
        index, inner = self.thread.index, op.inner
        self.labels += 1
        label = f"W{index}_{self.labels}"
        self.lines += [f"mov.u32 %polls{index}, 0;", f"{label}:"]
        if isinstance(inner, ops.MbarrierWait):
            what = self.number(inner.parity if inner.parity is not None else inner.state)  # type: ignore[arg-type]
            code = self.spelled(inner).replace("try_wait", "test_wait")
            self.lines.append(f"{code} %p{index}, [{self.reached(inner)}], {what};")
        else:
            if op.compare is None:
                raise CannotEmit("an await without a comparison")
            operator, right = op.compare
            self.lines.append(f"{self.spelled(inner)} {', '.join(self.operands(inner))};")
            first = (
                inner.dsts[0] if isinstance(inner, ops.Load) else inner.dst if isinstance(inner, ops.Atomic) else None
            )
            if first is None:
                raise CannotEmit(f"an await of {type(inner).__name__}")
            kind = self.thread.types[first.name].replace("b", "u")
            self.lines.append(f"setp.{_COMPARE[operator]}.{kind} %p{index}, {self.reg(first)}, {self.number(right)};")
        self.lines += [
            f"@%p{index} bra {label}_done;",
            f"add.u32 %polls{index}, %polls{index}, 1;",
            f"setp.lt.u32 %q{index}, %polls{index}, {POLLS};",
            f"@%q{index} bra {label};",
            f"mov.u32 %stuck{index}, 1;",
            f"{label}_done:",
        ]

    def barrier(self, op: ops.Barrier) -> None:
        """A barrier of the instance: the copies of the CTA have numbers of their own, and a warp counts 32."""
        assert isinstance(op.barrier, Const)
        index = self.thread.index
        number = f"%bar{index}_{self.shape.barriers.index(op.barrier.value)}"
        count = (
            self.number(op.count) if op.count is not None else str(32 * self.shape.threads[self.shape.slots[index][0]])
        )
        if op.kind != "red":
            self.lines.append(f"barrier.{op.kind} {number}, {count};")
            return
        assert op.src is not None
        kind = "popc.u32" if op.red_op == "popc" else f"{op.red_op}.pred"
        raise CannotEmit(f"barrier.red.{kind} would count the other instances of the warp")

    def reached(self, op: Accessing) -> str:
        """The address of an operation; one that names no state space wants a generic one."""
        start = self.address(op.address)
        text = opcode_of_text(op)
        shared = isinstance(op.address, Const) and op.address.value >= SHARED_BASE
        if self.program.dialect or not shared or ".shared" in text or ".global" in text:
            return start
        out = self.long()
        self.lines += [f"cvt.u64.u32 {out}, {start};", f"cvta.shared.u64 {out}, {out};"]
        return out

    def operands(self, op: Op) -> list[str]:
        if isinstance(op, ops.MbarrierInit) and op.count == Const(0):
            raise CannotEmit("the assembler takes no mbarrier.init of count 0")
        found = self.operands_of(op)
        if isinstance(op, Accessing):
            start, reached = self.address(op.address), self.reached(op)
            return [operand.replace(f"[{start}]", f"[{reached}]") for operand in found]
        return found

    def operands_of(self, op: Op) -> list[str]:
        """The operands, with addresses of the state space that an object is in."""
        match op:
            case ops.TensormapReplace():
                generic = op.space == "generic"
                where = self.extended(op.address, generic=True) if generic else self.address(op.address)
                more = [self.number(x) for x in (op.ordinal, op.value) if x is not None]
                return [f"[{where}]", *more]
            case ops.Prefetch():
                return self.prefetched(op)
            case ops.Atomic():
                first = [] if op.is_red else [self.reg(op.dst)]
                return [*first, f"[{self.address(op.address)}]", *(self.literal(s, op.type) for s in op.srcs)]
            case ops.Alu() if op.type in _WIDE:
                generic = op.op == "mapa" and "shared" not in op.text
                return [*(self.reg(d) for d in op.dsts), *(self.extended(s, generic=generic) for s in op.srcs)]
            case ops.AsyncStore():
                srcs = [self.number(s) for s in op.srcs]
                last = srcs[0] if len(srcs) == 1 else "{" + ", ".join(srcs) + "}"
                return [f"[{self.address(op.address)}]", last, *([f"[{self.address(op.mbar)}]"] if op.mbar else [])]
            case ops.ProxyFence() if op.address is not None and op.size is not None:
                return [f"[{self.address(op.address)}]", self.number(op.size)]
            case ops.MbarrierArrive() if op.space == "shared::cluster" and op.state is None:
                more = [self.number(x) for x in (op.tx, op.count) if x is not None]
                return ["_", f"[{self.address(op.address)}]", *more]
            case ops.Load() | ops.Store() if op.space not in ("generic", "global", "shared::cta", "shared::cluster"):
                raise CannotEmit(f"an access to .{op.space}")
        return super(LanePrinter, self).operands(op)

    def prefetched(self, op: ops.Prefetch) -> list[str]:
        """What a prefetch names: a tile, a tensor map, or bytes."""
        if op.tensor_map is not None:
            if op.mode != "tile":
                raise CannotEmit("a prefetch of im2col columns")
            where = self.address(op.tensor_map)
            coordinates = ", ".join(map(self.number, op.coords))
            return [f"[{where}, {{{coordinates}}}]" if op.coords else f"[{where}]"]
        if op.src is None or op.size is None:
            raise CannotEmit("a prefetch of a line")
        return [f"[{self.address(op.src)}]", self.number(op.size)]

    def spelled(self, op: Op) -> str:
        """The opcode. The table dialect's short forms lack what their locations say: global memory, 32 bits."""
        if not self.program.dialect:
            return opcode_of_block(op)
        match op:
            case ops.Load() if op.volatile:
                return f"ld.volatile.global.{op.type}"
            case ops.Store() if op.volatile:
                return f"st.volatile.global.{op.type}"
            case ops.Load() | ops.Store():
                name = "ld" if isinstance(op, ops.Load) else "st"
                return ".".join(x for x in (name, op.sem, op.scope, "global", op.type) if x)
            case ops.Atomic():
                kind = op.type
                if op.op in ("and", "or", "xor", "exch", "cas"):
                    kind = kind.replace("s", "b").replace("u", "b")
                if op.op not in ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"):
                    raise CannotEmit(f"an atomic {op.op}")
                return f"{'red' if op.is_red else 'atom'}.{op.sem}.{op.scope}.global.{op.op}.{kind}"
            case ops.Fence(restrict=None):
                return f"fence.{op.sem}.{op.scope}"
            case ops.ProxyFence(kind="alias"):
                return "fence.proxy.alias"
            case ops.Alu() if op.op in ("mov", "add", "sub", "mul.lo", "min", "max"):
                return f"{op.op}.{op.type}"
            case ops.Alu() if op.op in ("and", "or", "xor"):
                return f"{op.op}.b32"
        raise CannotEmit(f"{op.text} in the table dialect")


def opcode_of_text(op: Op) -> str:
    """The opcode as the file has it."""
    text = op.text.strip().removeprefix("await").strip()
    while text.startswith("@"):
        text = text.split(None, 1)[1]
    # A cache hint is an operand that the program does not keep.
    return text.split(None, 1)[0].rstrip(";").replace(".L2::cache_hint", "")


def opcode_of_block(op: Op) -> str:
    """The opcode as the file has it, for lanes that need not be together."""
    return opcode_of_text(op).removesuffix(".aligned")


def window(value: int) -> tuple[int, int]:
    """The CTA number and the offset of a shared address of the flat map."""
    return divmod(value - SHARED_BASE, SHARED_WINDOW)
