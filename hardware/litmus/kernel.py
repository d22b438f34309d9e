"""A litmus test as a kernel that runs very many instances of it.

Each warp runs one thread of the test for 32 instances, round after round. A round: shared memory is set, the warps of
the copy meet, lines are warmed, the pipe is filled, a random time passes; then comes the code of the test, then what it
left in flight is waited for, and the registers and shared words that the condition names go to the results.
Global memory is new in every round, for what an earlier round left would look like a weak outcome.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from hardware.emit import CannotEmit
from hardware.litmus import settings, views
from hardware.litmus.fit import Shape, owner_of, shape, warmable
from hardware.litmus.printer import LanePrinter, window
from hardware.litmus.views import View
from mcheck.answers.final import terms_of
from mcheck.graph.terms import type_size
from mcheck.program import ops
from mcheck.program.condition import MemTerm, RegTerm
from mcheck.program.expr import Const
from mcheck.program.memory import MemObject
from mcheck.program.ops import performed
from mcheck.program.program import Program, Thread

VERSION = "9.0"
MAP = 128
"""Bytes of a tensor map."""
TARGET = "sm_90a"


@dataclass(frozen=True, slots=True)
class GlobalObject:
    """A global object: ``stride`` bytes from instance to instance, its initial bytes, its tensor maps. With a ``proxy``
    it is how the object is seen through that: a texture over its memory, or a surface that lies elsewhere.
    """

    item: MemObject
    stride: int
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class Watched:
    """A term of the condition: in ``slot`` of the results, or ``offset`` bytes into global object ``object``."""

    label: str
    size: int
    slot: int | None = None
    object: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Kernel:
    """The entry of a test and what the runner has to know about it."""

    name: str
    text: str
    shape: Shape
    objects: tuple[GlobalObject, ...]
    watched: tuple[Watched, ...]
    slots: int
    warm: bool
    pause: bool


def kernel(program: Program, name: str) -> Kernel:
    """The entry ``name`` for ``program``; raises ``CannotEmit``."""
    return _Kernel(program, name).build()


class _Kernel:
    def __init__(self, program: Program, name: str) -> None:
        self.program = program
        self.name = name
        self.shape = shape(program)
        stored = [
            GlobalObject(i.object, _stride(i.object))
            for i in program.memory.instances
            if i.cta is None and i.object.alias_proxy in (None, "generic")
        ]
        self.numbers = {o.item.name: k for k, o in enumerate(stored)}
        seen = views.views(program)
        self.views = {view: len(stored) + k for k, view in enumerate(seen)}
        through = (dataclasses.replace(stored[self.numbers[v.name]], proxy=v.proxy) for v in seen)
        self.objects = (*stored, *through)
        self.watched: list[Watched] = []
        self.registers: dict[int, list[tuple[int, str]]] = {}
        self.dumped: dict[int, list[tuple[int, int, int]]] = {}
        self.slots = 0
        for term in terms_of(program.condition):
            self.watch(term)
        if not self.watched:
            raise CannotEmit("it names nothing to observe")
        executed = [performed(op) for t in program.threads for op in t.code]
        # A copy that signals an mbarrier may be in flight when the round ends: nothing but time ends it for sure.
        signalled = (ops.BulkCopy, ops.TensorCopy, ops.AsyncStore)
        self.pause = any(isinstance(op, signalled) and op.mbar is not None for op in executed)
        self.warm = warmable(program)
        self.changes_maps = any(isinstance(op, ops.TensormapReplace | ops.TensormapCopyFence) for op in executed)
        self.fences_aliases = any(isinstance(op, ops.ProxyFence) and op.kind == "alias" for op in executed)

    def watch(self, term: object) -> None:
        if isinstance(term, RegTerm):
            thread = self.program.threads[term.thread]
            kind = thread.types.get(term.reg)
            if kind is None:
                raise CannotEmit(f"the register of {term.label} has no type")
            self.registers.setdefault(term.thread, []).append((self.slots, term.reg))
            self.watched.append(Watched(term.label, 1 if kind == "pred" else type_size(kind), slot=self.slots))
            self.slots += 1
        elif isinstance(term, MemTerm):
            if term.size not in (1, 2, 4, 8):
                raise CannotEmit(f"the size of {term.label}")
            instance = owner_of(self.program, term.address)
            if instance.cta is None:
                if View(instance.object.name, "surface") in self.views:
                    raise CannotEmit(views.NO_ADDRESS)
                at = term.address - instance.physical
                number = self.numbers[instance.object.name]
                self.watched.append(Watched(term.label, term.size, object=number, offset=at))
                return
            cta, _ = window(term.address)
            offset = self.shape.offsets[instance.object.name] + term.address - instance.physical
            self.dumped.setdefault(cta, []).append((self.slots, offset, term.size))
            self.watched.append(Watched(term.label, term.size, slot=self.slots))
            self.slots += 1

    def build(self) -> Kernel:
        parts = [line for thread in self.program.threads for line in self.thread(thread)]
        text = "\n".join([*self.head(), *parts, *self.noise(), "}", ""])
        return Kernel(
            self.name,
            text,
            self.shape,
            self.objects,
            tuple(self.watched),
            self.slots,
            self.warm,
            self.pause,
        )

    @property
    def parameters(self) -> int:
        return settings.parameter_bytes(len(self.objects), len(self.shape.ctas), len(self.program.threads))

    # --- parts of the kernel ---------------------------------------------------------------------------------

    def head(self) -> list[str]:
        s = self.shape
        clusters = len(s.ctas) // s.cluster
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
            f"mad.lo.u32 %cta, %n, {s.cluster}, %cta;",
            f"ld.param.u32 %n, [A+{settings.at('spread')}];",
            "setp.ne.u32 %more, %n, 0;",
            "@%more div.u32 %slot, %warp, %copies;",
            "@%more rem.u32 %copy, %warp, %copies;",
            f"@!%more rem.u32 %slot, %warp, {s.warps};",
            f"@!%more div.u32 %copy, %warp, {s.warps};",
            f"mad.lo.u32 %slot, %cta, {s.warps}, %slot;",
        ]
        for thread, (cta, slot) in zip(self.program.threads, s.slots, strict=True):
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
        lines += ["// --- the test", *body, "// ---", *self.drain(thread), *self.store(thread)]
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
            f".reg .u32 %i{k}, %base{k}, %l{k}, %round{k}, %n{k}, %m{k}, %stuck{k}, %polls{k}, %s{k}, %acc{k}, %v{k};",
            f".reg .u64 %g{k}, %to{k}, %w{k}; .reg .pred %p{k}, %q{k};",
            *(f".reg .u32 %bar{k}_{n};" for n in range(len(self.shape.barriers))),
            f".reg .u32 %meet{k};",
        ]
        for name, kind in thread.types.items():
            bits = "pred" if kind == "pred" else f"b{max(8 * type_size(kind), 16)}"
            lines.append(f".reg .{bits} %t{k}_{name};")
        for (_, owner, _), register in printer.pointers.items():
            lines.append(f".reg .{'u64' if owner is None else 'u32'} {register};")
        for r in (r for words in printer.texels.values() for r in words.values()):
            lines.append(f".reg .u64 {r.handle}; .reg .u32 {r.x}, {r.y};")
        lines += [f".reg .b32 %x{k}_{n + 1};" for n in range(printer.words)]
        lines += [f".reg .b64 %y{k}_{n + 1};" for n in range(printer.longs)]
        return lines

    def place(self, k: int, cta: int, printer: LanePrinter) -> list[str]:
        """The lane's instance of round 0, and the numbers of the barriers of its copy."""
        objects, ctas = len(self.objects), len(self.shape.ctas)
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
            f"ld.param.u32 %m{k}, [A+{settings.at('mask')}];",
        ]
        used: dict[int, list[tuple[int, str]]] = {}
        for (name, owner, offset), register in printer.pointers.items():
            if owner is None:
                used.setdefault(self.numbers[name], []).append((offset, register))
        for number, registers in used.items():
            at = settings.object_at(number)
            lines += [
                f"ld.param.u32 %v{k}, [A+{at + 8}];",
                f"mul.lo.u32 %v{k}, %v{k}, %i{k};",
                f"and.b32 %v{k}, %v{k}, %m{k};",
                f"ld.param.u64 %g{k}, [A+{at}];",
                f"mad.wide.u32 %g{k}, %v{k}, {self.objects[number].stride}, %g{k};",
                *(f"add.u64 {register}, %g{k}, {offset};" for offset, register in registers),
                # A map that the host wrote is acquired before its first use.
                *(
                    f"fence.proxy.tensormap::generic.acquire.sys [%g{k}+{MAP * n}], {MAP};"
                    for n in range(len(self.objects[number].item.tensor_map))
                ),
            ]
        for view, words in printer.texels.items():
            number = self.views[view]
            at = settings.object_at(number)
            lines += views.coordinates(view, at, self.objects[number].stride, k, words)
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
        lines = [f"ld.param.u32 %m{k}, [A+{settings.at('warm')}];"]
        for number, (offset, register) in self.firsts.items():
            if self.changes_maps and self.objects[number].item.tensor_map and offset % MAP == 0:
                lines += [*self.chosen(k, number), f"@%p{k} prefetch.tensormap [{register}];"]
        early = {number: f"ld.global.u8 %v{k}, [{register}];" for number, (_, register) in self.firsts.items()}
        for view, words in self.texels.items():
            early[self.views[view]] = views.read(view.proxy, f"%v{k}", min(words.items())[1])
        if self.warm and early:
            for number, read in early.items():
                lines += [
                    *self.chosen(k, number),
                    f"mov.u32 %v{k}, 0;",
                    f"@%p{k} {read}",
                    f"add.u32 %acc{k}, %acc{k}, %v{k};",
                ]
            lines += [  # never true: the reads have to be done, not to be used
                f"setp.eq.u32 %p{k}, %acc{k}, 0x7fffffff;",
                f"ld.param.u64 %w{k}, [A+{settings.at('scratch')}];",
                f"@%p{k} st.global.u32 [%w{k}], %acc{k};",
                # A program that keeps its aliases apart has nothing to do with these reads.
                *(["fence.proxy.alias;"] if self.fences_aliases else []),
            ]
        lines += [
            f"ld.param.u64 %w{k}, [A+{settings.at('line')}];",
            f"setp.eq.u64 %p{k}, %w{k}, 0;",
            f"@%p{k} bra AWAY{k};",
            *self.line(k),
            f"AWAY{k}:",
            # a delay of its own for each warp and round
            f"ld.param.u32 %n{k}, [A+{settings.at('seed')}];",
            f"mad.lo.u32 %v{k}, %round{k}, 0x9e3779b1, %n{k};",
            f"shr.u32 %n{k}, %base{k}, 5;",
            f"mad.lo.u32 %v{k}, %n{k}, 0x85ebca77, %v{k};",
            f"add.u32 %v{k}, %v{k}, {k * 0x27D4EB2F % 2**32};",
            f"shr.u32 %n{k}, %v{k}, 15;",
            f"xor.b32 %v{k}, %v{k}, %n{k};",
            f"mul.lo.u32 %v{k}, %v{k}, 0x2c1b3c6d;",
            f"shr.u32 %v{k}, %v{k}, 12;",
            f"ld.param.u32 %n{k}, [A+{settings.at('delay')}];",
            f"and.b32 %v{k}, %v{k}, %n{k};",
            f"mov.u32 %m{k}, %clock;",
            f"LATE{k}:",
            f"mov.u32 %n{k}, %clock;",
            f"sub.u32 %n{k}, %n{k}, %m{k};",
            f"setp.lt.u32 %p{k}, %n{k}, %v{k};",
            f"@%p{k} bra LATE{k};",
            # shared loads that are still queued when the test begins: nothing waits for their values
            f"ld.param.u32 %m{k}, [A+{settings.at('pipe')}];",
            f"setp.eq.u32 %p{k}, %m{k}, 0;",
            f"@%p{k} bra QUIET{k};",
            f"mov.u32 %n{k}, S;",
            f"mad.lo.u32 %n{k}, %lane, 128, %n{k};",
            f"PIPE{k}:",
            *(f"ld.volatile.shared.u32 %v{k}, [%n{k}+{settings.PIPE + 4 * n}];" for n in range(4)),
            f"sub.u32 %m{k}, %m{k}, 1;",
            f"setp.ne.u32 %p{k}, %m{k}, 0;",
            f"@%p{k} bra PIPE{k};",
            f"QUIET{k}:",
        ]
        return lines

    def chosen(self, k: int, number: int) -> list[str]:
        """Whether the setting has the line of an object warmed, which is in ``%m``."""
        return [f"and.b32 %n{k}, %m{k}, {1 << number};", f"setp.ne.u32 %p{k}, %n{k}, 0;"]

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

    def drain(self, thread: Thread) -> list[str]:
        families = {getattr(op, "family", "") for op in thread.code}
        lines = []
        if any(isinstance(op, ops.CpAsync) for op in thread.code):
            lines.append("cp.async.wait_all;")
        bulk = any(isinstance(op, ops.BulkCopy | ops.TensorCopy) and op.mbar is None for op in thread.code)
        if bulk or "bulk" in families:
            lines += ["cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;"]
        return lines

    def store(self, thread: Thread) -> list[str]:
        k = thread.index
        lines = [f"setp.ne.u32 %p{k}, %stuck{k}, 0;"]
        lines += [
            f"ld.param.u64 %w{k}, [A+{settings.at('stuck')}];",
            f"mad.wide.u32 %w{k}, %i{k}, 4, %w{k};",
            f"@%p{k} st.global.u32 [%w{k}], %stuck{k};",
        ]
        for slot, name in self.registers.get(k, ()):
            kind = thread.types[name]
            register = f"%t{k}_{name}"
            lines += self.result(k, slot)
            if kind == "pred":
                lines += [f"selp.u32 %v{k}, 1, 0, {register};", f"cvt.u64.u32 %g{k}, %v{k};"]
            elif type_size(kind) == 8:
                lines.append(f"mov.b64 %g{k}, {register};")
            else:
                bits = max(8 * type_size(kind), 16)
                lines.append(f"cvt.u64.u{bits} %g{k}, {register};")
                if type_size(kind) == 1:
                    lines.append(f"and.b64 %g{k}, %g{k}, 255;")
            lines.append(f"st.global.u64 [%to{k}], %g{k};")
        return lines

    def result(self, k: int, slot: int) -> list[str]:
        return [
            f"ld.param.u32 %m{k}, [A+{settings.at('mask')}];",
            f"add.u32 %m{k}, %m{k}, 1;",
            f"mad.lo.u32 %m{k}, %m{k}, {slot}, %i{k};",
            f"ld.param.u64 %to{k}, [A+{settings.at('results')}];",
            f"mad.wide.u32 %to{k}, %m{k}, 8, %to{k};",
        ]

    def dump(self, k: int, cta: int) -> list[str]:
        lines = []
        for slot, offset, size in self.dumped.get(cta, ()):
            lines += self.result(k, slot)
            lines += [f"ld.shared.u{8 * size} %g{k}, [%s{k}+{offset}];", f"st.global.u64 [%to{k}], %g{k};"]
        return lines

    def noise(self) -> list[str]:
        """Warps that keep the pipe of the SM, or the memory, busy until the copies of the CTA are done."""
        meet = ["barrier.cluster.arrive;", "barrier.cluster.wait;"] if self.shape.clustered else []
        lines = [
            "NOISE:",
            ".reg .u32 %where, %kind, %value, %left, %seen, %hash; .reg .u64 %far;",
            "mov.u32 %where, S;",
            "mad.lo.u32 %where, %lane, 128, %where;",
            f"ld.param.u32 %kind, [A+{settings.at('noise')}];",
            f"ld.param.u64 %far, [A+{settings.at('scratch')}];",
            "mov.u32 %hash, %ctaid.x;",
            "mad.lo.u32 %hash, %hash, 1024, %thr;",
        ]
        if meet:
            per_round = (2 if self.shape.shared else 1) + self.shape.cluster_barriers
            lines += [f"ld.param.u32 %left, [A+{settings.at('rounds')}];", f"mul.lo.u32 %left, %left, {per_round};"]
        else:
            lines.append("mov.u32 %left, 200000;")
        busy = [
            line
            for n in range(4)
            for line in (
                f"ld.volatile.shared.u32 %value, [%where+{settings.PIPE + 8 * n}];",
                f"st.volatile.shared.u32 [%where+{settings.PIPE + 8 * n + 64}], %value;",
            )
        ]
        lines += [
            "AGAIN:",
            *meet[:1],
            "and.b32 %n, %kind, 1;",
            "setp.eq.u32 %go, %n, 0;",
            "@%go bra CALM;",
            *busy,
            "CALM:",
            "and.b32 %n, %kind, 2;",
            "setp.eq.u32 %go, %n, 0;",
            "@%go bra STILL;",
            "mad.lo.u32 %hash, %hash, 1664525, 1013904223;",
            "shr.u32 %n, %hash, 10;",
            "and.b32 %n, %n, 0xfffff;",
            "mad.wide.u32 %wide, %n, 4, %far;",
            "ld.volatile.global.u32 %value, [%wide];",
            "st.volatile.global.u32 [%wide], %hash;",
            "STILL:",
            *meet[1:],
        ]
        if not meet:
            lines += [
                f"ld.volatile.shared.u32 %seen, [S+{settings.FLAG}];",
                "setp.ge.u32 %go, %seen, %copies;",
                "@%go exit;",
            ]
        return [*lines, "sub.u32 %left, %left, 1;", "setp.ne.u32 %go, %left, 0;", "@%go bra AGAIN;", "exit;"]


def module(kernels: list[str]) -> str:
    """A module of several entries."""
    head = [f".version {VERSION}", f".target {TARGET}", ".address_size 64", ".extern .shared .align 1024 .b8 S[];", ""]
    return "\n".join([*head, *kernels])


def _stride(item: MemObject) -> int:
    if item.align > 256:
        raise CannotEmit(f"{item.name} is aligned to {item.align} bytes")
    step = max(item.align, 4)
    return (item.size + step - 1) // step * step
