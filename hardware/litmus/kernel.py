"""A litmus test as a kernel that runs very many instances of it.

Each warp runs one thread of the test for 32 instances, round after round. A round: shared memory is set, the warps of
the copy meet, lines are warmed, the pipe is filled, a random time passes; then comes the code of the test, then what it
left in flight is waited for, and the registers and shared words that the condition names go to the results.
Global memory is new in every round, for what an earlier round left would look like a weak outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hardware.emit import CannotEmit
from hardware.litmus import fragments, settings
from hardware.litmus.fit import owner_of, shape, warmable
from hardware.litmus.objects import GlobalObject, objects_of
from hardware.litmus.printer import LanePrinter
from hardware.litmus.watch import Watched, watch
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import performed_operation
from mcheck.ir.program import Program, Thread

VERSION = "9.0"
TARGET = "sm_90a"
SECTOR = 32
"""Bytes of memory that are moved at once: words of instances on two GPUs lie at least so far apart."""
MEETING = 15
"""The barrier at which a CTA waits for the other GPU; its one copy, or copies without barriers, have none so high."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The entry of a test and what the runner has to know about it: ``layout`` is the part of the plan's row that says
    how instances lie on the chip.
    """

    name: str
    text: str
    layout: Mapping[str, Any]
    objects: tuple[GlobalObject, ...]
    watched: tuple[Watched, ...]
    slots: int
    warm: bool
    pause: bool
    slot_gpus: tuple[int, ...] = ()
    """The GPU whose threads write a slot of the results."""


def kernel(program: Program, name: str, gpu: int | None = None) -> Kernel:
    """The entry ``name`` for ``program``, or for its threads on a ``gpu`` of two; raises ``CannotEmit``."""
    return _Kernel(program, name, gpu).build()


class _Kernel:
    def __init__(self, program: Program, name: str, gpu: int | None) -> None:
        self.program = program
        self.name = name
        self.gpu = gpu
        self.shape = shape(program, 1 if gpu is None else 2)
        own = [c.number for c in self.shape.ctas if gpu is None or c.gpu == gpu]
        if not own or own[-1] - own[0] >= len(own):
            raise CannotEmit("the CTAs of a GPU do not follow each other")
        self.first, self.own = own[0], len(own)
        if gpu is not None and len(self.shape.barriers) >= MEETING:
            raise CannotEmit("no barrier is left for the meeting of the GPUs")
        self.objects = objects_of(program, apart=4 if gpu is None else SECTOR)
        self.watch = watch(program, self.objects, lambda instance: self.shape.offsets[instance.object.name])
        self.pause = signals(program)
        self.warm = warmable(program)

    def build(self) -> Kernel:
        parts = [line for thread in self.threads for line in self.thread(thread)]
        text = "\n".join([*self.head(), *parts, *self.noise(), "}", ""])
        return Kernel(
            self.name,
            text,
            self.layout(),
            self.objects.all,
            tuple(self.watch.watched),
            self.watch.slots,
            self.warm,
            self.pause,
            self.slot_gpus(),
        )

    def slot_gpus(self) -> tuple[int, ...]:
        """The GPU of each slot's writer."""
        threads, ctas = self.program.threads, self.shape.ctas
        found = {slot: threads[k].place.cta.gpu for k, had in self.watch.registers.items() for slot, _ in had}
        found |= {slot: ctas[cta].gpu for cta, had in self.watch.dumped.items() for slot, _, _ in had}
        return tuple(found[slot] for slot in range(self.watch.slots))

    def layout(self) -> dict[str, Any]:
        s = self.shape
        return {
            "ctas": len(s.ctas),
            "cluster": s.cluster,
            "warps": s.warps,
            "threads": len(self.program.threads),
            "barriers": len(s.barriers),
            "block": s.block,
            "free": s.free,
        }

    @property
    def threads(self) -> list[Thread]:
        """The threads that the kernel runs."""
        return [t for t in self.program.threads if self.gpu is None or t.place.cta.gpu == self.gpu]

    @property
    def parameters(self) -> int:
        return settings.parameter_bytes(len(self.objects.all), len(self.shape.ctas), len(self.program.threads))

    # --- parts of the kernel ---------------------------------------------------------------------------------

    def head(self) -> list[str]:
        s = self.shape
        clusters = self.own // s.cluster
        cluster = f".reqnctapercluster {s.cluster}, 1, 1\n.explicitcluster\n" if s.clustered else ""
        lines = [
            f".visible .entry {self.name}(.param .align 8 .b8 A[{self.parameters}])\n{cluster}.maxntid 1024, 1, 1",
            "{",
            ".reg .u32 %thr, %lane, %warp, %tests, %copies, %copy, %slot, %group, %cta, %n, %turn, %clusters;",
            ".reg .u64 %wide; .reg .pred %go, %more;",
            "mov.u32 %thr, %tid.x;",
            "and.b32 %lane, %thr, 31;",
            "shr.u32 %warp, %thr, 5;",
            f"ld.param.u32 %copies, [A+{settings.at('copies')}];",
            "setp.eq.u32 %go, %thr, 0;",
            f"@%go st.shared.u32 [S+{settings.FLAG}], 0;",
            "barrier.sync 0;",
            f"mul.lo.u32 %tests, %copies, {s.warps};",
            "setp.ge.u32 %go, %warp, %tests;",
            "@%go bra NOISE;",
            # the role: a cluster of the program by the cluster of the grid, the CTA in it, the warp of the copy
            "mov.u32 %cta, %ctaid.x;",
            f"div.u32 %n, %cta, {s.cluster};",
            f"rem.u32 %cta, %cta, {s.cluster};",
            f"div.u32 %group, %n, {clusters};",
            f"ld.param.u32 %turn, [A+{settings.at('turn')}];",
            "add.u32 %n, %n, %turn;",
            f"rem.u32 %n, %n, {clusters};",
            *([f"add.u32 %n, %n, {self.first};"] if self.first else []),
            f"mad.lo.u32 %cta, %n, {s.cluster}, %cta;",
            f"ld.param.u32 %n, [A+{settings.at('spread')}];",
            "setp.ne.u32 %more, %n, 0;",
            "@%more div.u32 %slot, %warp, %copies;",
            "@%more rem.u32 %copy, %warp, %copies;",
            f"@!%more rem.u32 %slot, %warp, {s.warps};",
            f"@!%more div.u32 %copy, %warp, {s.warps};",
            f"mad.lo.u32 %slot, %cta, {s.warps}, %slot;",
        ]
        for thread in self.threads:
            cta, slot = s.slots[thread.index]
            lines += [f"setp.eq.u32 %go, %slot, {cta * s.warps + slot};", f"@%go bra T{thread.index};"]
        lines.append("exit;")
        return lines

    def thread(self, thread: Thread) -> list[str]:
        printer = LanePrinter(thread, None, program=self.program, shape=self.shape)  # type: ignore[arg-type]
        body = printer.body()
        k = thread.index
        cta = self.shape.slots[k][0]
        first = self.shape.slots[k][1] == 0
        lines = [f"T{k}:", *self.declarations(thread, printer), *self.place(k, cta, printer)]
        if first and self.shape.shared:
            lines += self.set_mbarriers(k)
        lines += [f"ROUND{k}:", *self.addresses(k, printer)]
        if first and self.shape.shared:
            lines += self.set_shared(k)
        lines += [*self.meet(k, cta), *self.stress(k), f"mov.u32 %stuck{k}, 0;", f"mov.u32 %polls{k}, 0;"]
        lines += ["// --- the test", *body, "// ---", *drain(thread.code), *self.store(thread)]
        if self.pause:
            lines += [f"ld.param.u32 %n{k}, [A+{settings.at('pause')}];", f"nanosleep.u32 %n{k};"]
        if self.shape.shared:
            lines += self.meet(k, cta)
        if first:
            lines += self.dump(k, cta)
        lines += [
            f"add.u32 %round{k}, %round{k}, 1;",
            f"ld.param.u32 %n{k}, [A+{settings.at('rounds')}];",
            f"setp.lt.u32 %p{k}, %round{k}, %n{k};",
            f"@%p{k} bra ROUND{k};",
        ]
        if first:
            lines += ["setp.eq.u32 %go, %lane, 0;", f"@%go red.shared.add.u32 [S+{settings.FLAG}], 1;"]
        return [*lines, "exit;"]

    def declarations(self, thread: Thread, printer: LanePrinter) -> list[str]:
        k = thread.index
        lines = [
            *fragments.declared(k),
            *(f".reg .u32 %bar{k}_{n};" for n in range(len(self.shape.barriers))),
            f".reg .u32 %meet{k};",
            *(fragments.register(f"%t{k}_{name}", kind) for name, kind in thread.types.items()),
        ]
        for (_, owner, _), register in printer.pointers.items():
            lines.append(f".reg .{'u64' if owner is None else 'u32'} {register};")
        for r in (r for words in printer.texels.values() for r in words.values()):
            lines.append(f".reg .u64 {r.handle}; .reg .u32 {r.x}, {r.y};")
        lines += [f".reg .b32 %x{k}_{n + 1};" for n in range(printer.words)]
        lines += [f".reg .b64 %y{k}_{n + 1};" for n in range(printer.longs)]
        return lines

    def place(self, k: int, cta: int, printer: LanePrinter) -> list[str]:
        """The lane's instance of round 0, and the numbers of the barriers of its copy."""
        objects, ctas = len(self.objects.all), len(self.shape.ctas)
        here = settings.thread_at(objects, ctas, k)
        lines = [
            f"ld.param.u32 %m{k}, [A+{here}];",
            f"ld.param.u32 %n{k}, [A+{here + 8}];",
        ]
        if self.shape.free:  # anywhere among the instances of the CTA
            lines += [
                f"mad.lo.u32 %l{k}, %copy, 32, %lane;",
                f"mad.lo.u32 %l{k}, %l{k}, %m{k}, %n{k};",
                f"mul.lo.u32 %n{k}, %copies, 32;",
                f"sub.u32 %n{k}, %n{k}, 1;",
                f"and.b32 %l{k}, %l{k}, %n{k};",
                f"ld.param.u32 %m{k}, [A+{settings.cta_at(objects, cta)}];",
                f"ld.param.u32 %n{k}, [A+{settings.at('groups')}];",
                f"mad.lo.u32 %i{k}, %group, %m{k}, {17 * cta};",
                f"and.b32 %i{k}, %i{k}, %n{k};",
            ]
        else:
            lines += [
                f"mad.lo.u32 %l{k}, %lane, %m{k}, %n{k};",
                f"and.b32 %l{k}, %l{k}, 31;",
                f"mad.lo.u32 %l{k}, %copy, 32, %l{k};",
                f"mov.u32 %i{k}, %group;",
            ]
        lines += [
            f"mul.lo.u32 %n{k}, %copies, 32;",
            f"mad.lo.u32 %base{k}, %i{k}, %n{k}, %l{k};",
            f"mul.lo.u32 %meet{k}, %copy, {1 + len(self.shape.barriers)};",
            *(f"add.u32 %bar{k}_{n}, %meet{k}, {n + 1};" for n in range(len(self.shape.barriers))),
            f"mov.u32 %s{k}, S;",
            f"mad.lo.u32 %s{k}, %l{k}, {self.shape.block}, %s{k};",
            f"add.u32 %s{k}, %s{k}, {settings.BLOCKS};",
            f"mov.u32 %round{k}, 0;",
            f"mov.u32 %acc{k}, 0;",
        ]
        for (name, owner, offset), register in printer.pointers.items():
            if owner is None:
                continue
            lines.append(f"add.u32 {register}, %s{k}, {self.shape.offsets[name] + offset};")
            if owner != cta:
                lines.append(f"mapa.shared::cluster.u32 {register}, {register}, {self.shape.ctas[owner].rank};")
        return lines

    def addresses(self, k: int, printer: LanePrinter) -> list[str]:
        """The instance of the round, and where its global objects lie."""
        lines = [
            f"ld.param.u32 %n{k}, [A+{settings.at('groups')}];",
            f"add.u32 %n{k}, %n{k}, 1;",
            f"mul.lo.u32 %n{k}, %n{k}, %copies;",
            f"mul.lo.u32 %n{k}, %n{k}, 32;",
            f"mad.lo.u32 %i{k}, %n{k}, %round{k}, %base{k};",
        ]
        used: dict[int, list[tuple[int, str]]] = {}
        for (name, owner, offset), register in printer.pointers.items():
            if owner is None:
                used.setdefault(self.objects.numbers[name], []).append((offset, register))
        for number, registers in used.items():
            lines += self.objects.pointers(k, number, ((str(offset), register) for offset, register in registers))
        lines += self.objects.texels(k, printer.texels)
        self.firsts = {number: min(registers) for number, registers in used.items()}
        self.texels = printer.texels
        return lines

    def set_mbarriers(self, k: int) -> list[str]:
        """Clears the mbarriers, once: an arrive that nobody waited for may be on its way when its round is over."""
        return [f"st.shared.u32 [%s{k}+{at}], 0;" for at in self.words(mbarriers=True)]

    def set_shared(self, k: int) -> list[str]:
        """Sets everything else in shared memory."""
        lines = [f"st.shared.u32 [%s{k}+{at}], 0;" for at in self.words(mbarriers=False)]
        return [*lines, "fence.proxy.async;"]

    def words(self, *, mbarriers: bool) -> list[int]:
        """The words of shared objects that are mbarriers to the end, or are not."""
        made, gone = (
            {
                op.address.value
                for t in self.program.threads
                for op in t.code
                if isinstance(op, kind) and isinstance(op.address, Const)
            }
            for kind in (ops.MbarrierInit, ops.MbarrierInval)
        )
        initialised = {owner_of(self.program, at).object.name for at in made - gone}
        found: dict[int, None] = {}
        for instance in self.program.memory.instances:
            name = instance.object.name
            if instance.cta is not None and (name in initialised) == mbarriers:
                start = self.shape.offsets[name]
                found.update(dict.fromkeys(range(start, start + instance.object.size, 4)))
        return list(found)

    def meet(self, k: int, cta: int) -> list[str]:
        """The warps of the copy, or all threads of the cluster, wait for each other."""
        if self.shape.clustered:
            return ["barrier.cluster.arrive;", "barrier.cluster.wait;"]
        if self.shape.threads[cta] == 1:
            return ["bar.warp.sync 0xffffffff;"]
        if self.shape.free:
            return []
        return [f"barrier.sync %meet{k}, {32 * self.shape.threads[cta]};"]

    def stress(self, k: int) -> list[str]:
        return [
            *self.objects.warm(k, self.firsts, self.texels, read=self.warm),
            f"ld.param.u64 %w{k}, [A+{settings.at('line')}];",
            f"setp.eq.u64 %p{k}, %w{k}, 0;",
            f"@%p{k} bra AWAY{k};",
            *(self.line(k) if self.gpu is None else self.line_of_two(k)),
            f"AWAY{k}:",
            *fragments.delay(k),
            *fragments.pipe(k),
        ]

    def line(self, k: int) -> list[str]:
        """All warps of the grid meet at a counter; the wait is bounded."""
        return [
            "setp.eq.u32 %go, %lane, 0;",
            f"@%go red.relaxed.gpu.global.add.u32 [%w{k}], 1;",
            # how many warps there are: those of the groups
            f"ld.param.u32 %n{k}, [A+{settings.at('groups')}];",
            f"add.u32 %n{k}, %n{k}, 1;",
            f"mul.lo.u32 %n{k}, %n{k}, %copies;",
            f"mul.lo.u32 %n{k}, %n{k}, {len(self.program.threads)};",
            f"add.u32 %v{k}, %round{k}, 1;",
            f"mul.lo.u32 %n{k}, %n{k}, %v{k};",
            f"mov.u32 %polls{k}, 0;",
            f"LINE{k}:",
            f"ld.relaxed.gpu.global.u32 %v{k}, [%w{k}];",
            f"setp.ge.u32 %p{k}, %v{k}, %n{k};",
            f"@%p{k} bra AWAY{k};",
            f"add.u32 %polls{k}, %polls{k}, 1;",
            f"setp.lt.u32 %p{k}, %polls{k}, 2000;",
            f"@%p{k} bra LINE{k};",
        ]

    def line_of_two(self, k: int) -> list[str]:
        """All CTAs of both grids meet at a counter, a thread for each, since many that poll a peer's memory would be
        late; the wait is bounded.
        """
        cta = self.shape.slots[k][0]
        meet = [f"mul.lo.u32 %n{k}, %copies, {32 * self.shape.threads[cta]};", f"barrier.sync {MEETING}, %n{k};"]
        return [
            *meet,
            f"setp.ne.u32 %p{k}, %thr, 0;",
            f"@%p{k} bra HERE{k};",
            f"red.relaxed.sys.global.add.u32 [%w{k}], 1;",
            f"ld.param.u32 %n{k}, [A+{settings.at('groups')}];",
            f"mad.lo.u32 %n{k}, %n{k}, {len(self.shape.ctas)}, {len(self.shape.ctas)};",
            f"mad.lo.u32 %n{k}, %n{k}, %round{k}, %n{k};",
            f"mov.u32 %polls{k}, 0;",
            f"LINE{k}:",
            f"ld.relaxed.sys.global.u32 %v{k}, [%w{k}];",
            f"setp.ge.u32 %p{k}, %v{k}, %n{k};",
            f"@%p{k} bra HERE{k};",
            f"add.u32 %polls{k}, %polls{k}, 1;",
            f"setp.lt.u32 %p{k}, %polls{k}, 20000;",
            f"@%p{k} bra LINE{k};",
            f"HERE{k}:",
            *meet,
        ]

    def store(self, thread: Thread) -> list[str]:
        k = thread.index
        lines = fragments.stuck(k)
        for slot, name in self.watch.registers.get(k, ()):
            lines += fragments.result(k, slot)
            lines += fragments.value(k, f"%t{k}_{name}", thread.types[name])
            lines.append(f"st.global.u64 [%to{k}], %g{k};")
        return lines

    def dump(self, k: int, cta: int) -> list[str]:
        lines = []
        for slot, offset, size in self.watch.dumped.get(cta, ()):
            lines += fragments.result(k, slot)
            lines += [f"ld.shared.u{8 * size} %g{k}, [%s{k}+{offset}];", f"st.global.u64 [%to{k}], %g{k};"]
        return lines

    def noise(self) -> list[str]:
        """Warps that keep the pipe of the SM, or the memory, busy until the copies of the CTA are done."""
        meet = ["barrier.cluster.arrive;", "barrier.cluster.wait;"] if self.shape.clustered else []
        lines = ["NOISE:", *fragments.declared_noise(), *fragments.begin_noise()]
        if meet:
            per_round = (2 if self.shape.shared else 1) + self.shape.cluster_barriers
            lines += [f"ld.param.u32 %left, [A+{settings.at('rounds')}];", f"mul.lo.u32 %left, %left, {per_round};"]
        else:
            lines.append("mov.u32 %left, 200000;")
        lines += ["AGAIN:", *meet[:1], *fragments.noise(), *meet[1:]]
        if not meet:
            lines += [
                f"ld.volatile.shared.u32 %seen, [S+{settings.FLAG}];",
                "setp.ge.u32 %go, %seen, %copies;",
                "@%go exit;",
            ]
        return [*lines, "sub.u32 %left, %left, 1;", "setp.ne.u32 %go, %left, 0;", "@%go bra AGAIN;", "exit;"]


def drain(code: Iterable[ops.Op]) -> list[str]:
    """Waits for what a thread with this code has left in flight, but for copies that signal an mbarrier."""
    code = tuple(code)
    families = {getattr(op, "family", "") for op in code}
    lines = []
    if any(isinstance(op, ops.CpAsync) for op in code):
        lines.append("cp.async.wait_all;")
    bulk = any(isinstance(op, ops.BulkCopy | ops.TensorCopy) and op.mbar is None for op in code)
    if bulk or "bulk" in families:
        lines += ["cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;"]
    return lines


def signals(program: Program) -> bool:
    """Whether copies signal an mbarrier: they may be in flight when the round ends, and nothing but time ends them."""
    kinds = (ops.BulkCopy, ops.TensorCopy, ops.AsyncStore)
    code = (performed_operation(op) for thread in program.threads for op in thread.code)
    return any(isinstance(op, kinds) and op.mbar is not None for op in code)


def module(kernels: list[str]) -> str:
    """A module of several entries."""
    head = [f".version {VERSION}", f".target {TARGET}", ".address_size 64", ".extern .shared .align 1024 .b8 S[];", ""]
    return "\n".join([*head, *kernels])
