"""A ``Program`` as a PTX module: one kernel that runs it and then copies registers and shared memory out.

Every declared thread has its own stretch of code, reached by its CTA and thread number; threads that nobody declared
exit at once. Objects lie where ``mcheck.ir.address_map`` puts them, shared ones relative to a dynamic array aligned
to 1024 bytes, so that swizzles see the same low address bits. A wait polls a bounded number of times and then gives
up, so that no kernel hangs.

The kernel's parameters are the address of all global objects and that of the results: per CTA the shared address of the
array (8 bytes) and the shared bytes, then per thread a word that says whether it gave up, and its registers, 8 bytes
each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mcheck.ir import ops
from mcheck.ir.address_map import shared_size
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, SHARED_WINDOW, Cta
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.type_sizes import type_size

POLLS = 60_000
VERSION = "8.6"
TARGET = "sm_90a"
_OPERATORS = {"+": "add", "-": "sub", "*": "mul.lo", "&": "and", "|": "or", "^": "xor"}


class CannotEmit(Exception):
    """The program has an operation that this printer does not know."""


@dataclass(frozen=True, slots=True)
class Module:
    """PTX text, and what the runner has to know: sizes, the CTAs, and where each register is in the results."""

    text: str
    ctas: tuple[Cta, ...]
    threads_per_cta: int
    shared_bytes: int
    global_bytes: int
    clustered: bool
    registers: tuple[tuple[str, ...], ...]

    @property
    def cta_bytes(self) -> int:
        """Bytes of the results of one CTA."""
        return 16 + self.shared_bytes

    @property
    def result_bytes(self) -> int:
        """Bytes of all results."""
        return len(self.ctas) * self.cta_bytes + sum(16 + 8 * len(names) for names in self.registers)

    def thread_offset(self, index: int) -> int:
        """Where the results of a thread start."""
        before = sum(16 + 8 * len(names) for names in self.registers[:index])
        return len(self.ctas) * self.cta_bytes + before


def module(program: Program) -> Module:
    """The kernel of ``program``; raises ``CannotEmit``."""
    ctas = tuple(sorted({t.place.cta for t in program.threads}, key=lambda c: c.number))
    if [c.number for c in ctas] != list(range(len(ctas))):
        raise CannotEmit("the CTAs are not numbered from 0")
    instances = program.memory.instances
    shared = (shared_size(i.object for i in instances if i.cta in (None, ctas[0])) + 15) // 16 * 16
    ends = [i.base + i.object.size - GLOBAL_BASE for i in instances if i.cta is None]
    width = 32 * (1 + max(t.place.warp for t in program.threads))
    names = tuple(tuple(t.types) for t in program.threads)
    frame = Module("", ctas, width, max(shared, 16), max(ends, default=0) + 256, program.clustered, names)
    parts = [Printer(thread, frame).code() for thread in program.threads]
    return Module(_text(program, frame, parts), *(getattr(frame, n) for n in Module.__slots__ if n != "text"))


def _text(program: Program, frame: Module, parts: list[list[str]]) -> str:
    cluster = ""
    if program.clustered:
        cluster = f".reqnctapercluster {len(frame.ctas)}, 1, 1\n.explicitcluster\n"
    dispatch = []
    for thread in program.threads:
        place = thread.place
        key = place.cta.number * frame.threads_per_cta + 32 * place.warp + place.lane
        dispatch += [f"setp.eq.u32 %go, %me, {key};", f"@%go bra T{thread.index};"]
    declared = []
    for thread in program.threads:
        for name, kind in thread.types.items():
            bits = "pred" if kind == "pred" else f"b{max(8 * type_size(kind), 16)}"
            declared.append(f".reg .{bits} %t{thread.index}_{name};")
    first = {t.place.cta.number: t for t in reversed(program.threads)}
    dumpers = sorted(number * frame.threads_per_cta + 32 * t.place.warp + t.place.lane for number, t in first.items())
    body: list[str] = []
    for thread, part in zip(program.threads, parts, strict=True):
        body += [f"T{thread.index}:", *part]
    lines = [
        f".version {VERSION}", f".target {TARGET}", ".address_size 64",
        ".extern .shared .align 1024 .b8 S[];",
        f".visible .entry run(.param .u64 pg, .param .u64 pout)\n{cluster}.maxntid {frame.threads_per_cta}, 1, 1",
        "{",
        ".reg .u32 %me, %thr, %cta, %polls, %s, %word, %at;", ".reg .u64 %g, %out, %to;", ".reg .pred %go, %done;",
        ".reg .b32 %x<4000>;", ".reg .b64 %y<4000>;", ".reg .pred %q<2000>;",
        *declared,
        "mov.u32 %thr, %tid.x;", "mov.u32 %cta, %ctaid.x;", f"mad.lo.u32 %me, %cta, {frame.threads_per_cta}, %thr;",
        "ld.param.u64 %g, [pg];", "ld.param.u64 %out, [pout];", "mov.u32 %s, S;",
        *dispatch,
        "exit;",
        *body,
        "END:",
        "fence.proxy.async;", "barrier.sync 15;",
        *(["barrier.cluster.arrive;", "barrier.cluster.wait;"] if program.clustered else []),
        *_dump(frame, dumpers),
        "exit;",
        "}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _dump(frame: Module, dumpers: list[int]) -> list[str]:
    """One thread of each CTA copies its shared memory to the results."""
    out = []
    for key in dumpers:
        out += [f"setp.eq.u32 %go, %me, {key};", "@%go bra DUMP;"]
    out += [
        "exit;",
        "DUMP:",
        "cvt.u64.u32 %to, %cta;", f"mul.lo.u64 %to, %to, {frame.cta_bytes};", "add.u64 %to, %to, %out;",
        "st.global.u32 [%to], %s;", "add.u64 %to, %to, 16;", "mov.u32 %at, 0;",
        "COPY:",
        "add.u32 %word, %s, %at;", "ld.shared.u32 %word, [%word];", "st.global.u32 [%to], %word;",
        "add.u64 %to, %to, 4;", "add.u32 %at, %at, 4;",
        f"setp.lt.u32 %go, %at, {frame.shared_bytes};", "@%go bra COPY;",
    ]  # fmt: skip
    return out


@dataclass(slots=True)
class Printer:
    """Prints the code of one thread."""

    thread: Thread
    frame: Module
    lines: list[str] = field(default_factory=list)
    words: int = 0
    longs: int = 0
    predicates: int = 0
    labels: int = 0

    def code(self) -> list[str]:
        places = {}
        for label, at in self.thread.labels.items():
            places.setdefault(at, []).append(label)
        # Temporaries are told apart by thread.
        base = 100 * self.thread.index
        self.words = self.longs = base
        index = self.thread.index
        for name, kind in self.thread.types.items():
            if kind != "pred":
                zero = "0"
                self.lines.append(f"mov.b{max(8 * type_size(kind), 16)} %t{index}_{name}, {zero};")
            else:
                self.lines.append(f"setp.ne.u32 %t{index}_{name}, 0, 0;")
        for at, op in enumerate(self.thread.code):
            self.lines += [f"L{index}_{label}:" for label in places.get(at, ())]
            self.operation(op)
        self.lines += [f"L{index}_{label}:" for label in places.get(len(self.thread.code), ())]
        self.lines += ["mov.u32 %polls, 1;", f"bra OUT{index};", f"GIVEUP{index}:", "mov.u32 %polls, 0;"]
        self.lines.append(f"OUT{index}:")
        self.lines.append(f"add.u64 %to, %out, {self.frame.thread_offset(index)};")
        self.lines.append("st.global.u32 [%to], %polls;")
        for k, (name, kind) in enumerate(self.thread.types.items()):
            reg = f"%t{index}_{name}"
            where = f"[%to+{16 + 8 * k}]"
            if kind == "pred":
                self.lines += [f"selp.u32 %word, 1, 0, {reg};", f"st.global.u32 {where}, %word;"]
            else:
                self.lines.append(f"st.global.b{max(8 * type_size(kind), 16)} {where}, {reg};")
        self.lines.append("bra END;")
        return self.lines

    # --- operands -----------------------------------------------------------------------------------

    def word(self) -> str:
        self.words += 1
        return f"%x{self.words}"

    def long(self) -> str:
        self.longs += 1
        return f"%y{self.longs}"

    def reg(self, reg: Reg | None) -> str:
        return "_" if reg is None else f"%t{self.thread.index}_{reg.name}"

    def number(self, expr: Expr) -> str:
        """An immediate or a register."""
        if isinstance(expr, Const):
            return str(expr.value)
        if isinstance(expr, Reg):
            return self.reg(expr)
        if isinstance(expr, Binary) and expr.op in _OPERATORS:
            out = self.word()
            self.lines.append(f"{_OPERATORS[expr.op]}.u32 {out}, {self.number(expr.left)}, {self.number(expr.right)};")
            return out
        if isinstance(expr, Unary) and expr.op == "-":
            out = self.word()
            self.lines.append(f"neg.s32 {out}, {self.number(expr.operand)};")
            return out
        raise CannotEmit(f"the operand {expr}")

    def address(self, expr: Expr) -> str:
        """A register with an address: 64 bits for global memory, 32 for shared memory, also of another CTA."""
        if isinstance(expr, Reg):
            return self.reg(expr)
        if not isinstance(expr, Const):
            raise CannotEmit(f"the address {expr}")
        value = expr.value
        if value < SHARED_BASE:
            out = self.long()
            self.lines.append(f"add.u64 {out}, %g, {value - GLOBAL_BASE};")
            return out
        number, offset = divmod(value - SHARED_BASE, SHARED_WINDOW)
        out = self.word()
        self.lines.append(f"add.u32 {out}, %s, {offset};")
        if number != self.thread.place.cta.number:
            remote = self.word()
            rank = next(c.rank for c in self.frame.ctas if c.number == number)
            self.lines.append(f"mapa.shared::cluster.u32 {remote}, {out}, {rank};")
            return remote
        return out

    # --- operations ---------------------------------------------------------------------------------

    def operation(self, op: Op) -> None:
        if isinstance(op, ops.Await):
            self.awaited(op)
            return
        if isinstance(op, ops.Label):
            return
        if isinstance(op, ops.Exit):
            self.lines.append(f"bra OUT{self.thread.index};")
            return
        guard = ""
        if op.guard is not None:
            guard = f"@{'!' if op.guard.negated else ''}{self.reg(op.guard.reg)} "
        if isinstance(op, ops.Branch):
            self.lines.append(f"{guard}bra L{self.thread.index}_{op.target};")
            return
        self.lines.append(f"{guard}{opcode(op)} {', '.join(self.operands(op))};")

    def awaited(self, op: ops.Await) -> None:
        inner = op.inner
        if not isinstance(inner, ops.MbarrierWait):
            raise CannotEmit("an await of something else than an mbarrier")
        self.labels += 1
        label = f"W{self.thread.index}_{self.labels}"
        address = self.address(inner.address)
        what = self.number(inner.parity if inner.parity is not None else inner.state)  # type: ignore[arg-type]
        code = opcode(inner).replace("try_wait", "test_wait")
        self.lines += [
            f"mov.u32 %polls, {POLLS};",
            f"{label}:",
            f"{code} %done, [{address}], {what};",
            f"@%done bra {label}_done;",
            "sub.u32 %polls, %polls, 1;",
            "setp.ne.u32 %go, %polls, 0;",
            f"@%go bra {label};",
            f"bra GIVEUP{self.thread.index};",
            f"{label}_done:",
        ]

    def operands(self, op: Op) -> list[str]:
        match op:
            case ops.Alu():
                return [*(self.reg(d) for d in op.dsts), *(self.number(s) for s in op.srcs)]
            case ops.Load():
                dsts = [self.reg(d) for d in op.dsts]
                return [_vector(op, dsts), f"[{self.address(op.address)}]"]
            case ops.Store():
                srcs = [self.number(s) for s in op.srcs]
                return [f"[{self.address(op.address)}]", _vector(op, srcs)]
            case ops.Fence() | ops.ProxyFence() | ops.ClusterBarrier() | ops.Commit():
                return []
            case ops.Barrier():
                return [self.number(x) for x in (op.barrier, op.count) if x is not None]
            case ops.WaitGroup():
                return [] if op.commits else [self.number(op.pending)]
            case ops.MbarrierInit():
                return [f"[{self.address(op.address)}]", self.number(op.count)]
            case ops.MbarrierInval():
                return [f"[{self.address(op.address)}]"]
            case ops.MbarrierTx():
                return [f"[{self.address(op.address)}]", self.number(op.tx)]
            case ops.MbarrierArrive():
                more = [self.number(x) for x in (op.tx, op.count) if x is not None]
                return [self.reg(op.state), f"[{self.address(op.address)}]", *more]
            case ops.MbarrierWait():
                what = op.parity if op.parity is not None else op.state
                assert what is not None
                return [self.reg(op.dst), f"[{self.address(op.address)}]", self.number(what)]
            case ops.MbarrierPending():
                return [self.reg(op.dst), self.number(op.state)]
            case ops.CpAsync():
                more = [self.number(x) for x in (op.src_size, op.ignore_src) if x is not None]
                return [f"[{self.address(op.dst)}]", f"[{self.address(op.src)}]", self.number(op.size), *more]
            case ops.CpAsyncArrive():
                return [f"[{self.address(op.address)}]"]
            case ops.BulkCopy():
                out = [f"[{self.address(op.dst)}]", f"[{self.address(op.src)}]", self.number(op.size)]
                if op.mbar is not None:
                    out.append(f"[{self.address(op.mbar)}]")
                return [*out, *(self.number(x) for x in (op.cta_mask, op.byte_mask) if x is not None)]
            case ops.TensorCopy():
                return self.tensor(op)
        raise CannotEmit(type(op).__name__)

    def tensor(self, op: ops.TensorCopy) -> list[str]:
        coords = ", ".join(self.number(c) for c in op.coords)
        where = f"[{self.address(op.tensor_map)}, {{{coords}}}]"
        shared = f"[{self.address(op.shared)}]"
        if op.kind == "store":
            return [where, shared]
        out = [shared, where]
        if op.mbar is not None:
            out.append(f"[{self.address(op.mbar)}]")
        if op.im2col_info:
            out.append("{" + ", ".join(self.halfword(x) for x in op.im2col_info) + "}")
        if op.cta_mask is not None:
            out.append(self.number(op.cta_mask))
        return out

    def halfword(self, expr: Expr) -> str:
        """im2col offsets are 16-bit operands."""
        return self.number(expr)


def opcode(op: Op) -> str:
    """The opcode as it is written, without guard and ``await``."""
    text = op.text.strip().removeprefix("await").strip()
    while text.startswith("@"):
        text = text.split(None, 1)[1]
    return text.split(None, 1)[0].rstrip(";")


def _vector(op: ops.Load | ops.Store, values: list[str]) -> str:
    """The registers of an access; ldmatrix and stmatrix have one for 8 rows, in braces even if it is only one."""
    if op.matrix_rows:
        return "{" + ", ".join(values[: op.matrix_rows // 8]) + "}"
    return values[0] if len(values) == 1 else "{" + ", ".join(values) + "}"
