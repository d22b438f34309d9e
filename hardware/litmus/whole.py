"""A litmus test as a kernel whose threads stand where the test says: an instance has CTAs of its own.

The warps and lanes that the test names run its roles; all others have ended. So operations of whole warps, barriers
with the numbers of the test, exits and ``wgmma`` mean on the chip what they mean in the test. An instance has its CTAs
from their start to their end: shared memory, mbarriers and barriers are new, and no arrival that is left over reaches
another instance. Where a test names one lane for a warp that multiplies matrices, the other lanes of its warpgroup
follow through ``wgmma`` and barriers, for these are operations of all lanes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from hardware.emit import CannotEmit
from hardware.litmus import fragments, settings
from hardware.litmus.fit import SHARED_LIMIT, may_leave_waiting, may_skip_a_meeting, refuse, warmable
from hardware.litmus.kernel import Kernel, drain, signals
from hardware.litmus.objects import objects_of
from hardware.litmus.rows import Position, computed
from hardware.litmus.stream_printer import WARP, WARPGROUP, Crew, StreamPrinter
from hardware.litmus.streams import Stream, of_warpgroup, streams
from hardware.litmus.watch import watch
from mcheck.ir import ops
from mcheck.ir.address_map import shared_size
from mcheck.ir.expr import Const
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW, Instance
from mcheck.ir.ops import performed_operation
from mcheck.ir.program import Program, Thread

MOST_WARPS = 32
LARGEST_CLUSTER = 8
"""CTAs of a cluster that every launch may have (PTX ISA 10.3, ``%cluster_nctaid``; larger ones need an attribute)."""
PAUSE = 6000
"""Cycles that copies which nobody waits for get before their CTA ends."""


def whole(program: Program, name: str) -> Kernel:
    """The entry ``name`` for ``program``; raises ``CannotEmit``."""
    return _Whole(program, name).build()


class _Whole:
    def __init__(self, program: Program, name: str) -> None:
        refuse(program)
        self.program = program
        self.name = name
        self.streams = streams(program)
        self.ctas = {t.place.cta.number: t.place.cta for t in program.threads}
        self.clustered = program.clustered or any(isinstance(op, ops.ClusterBarrier) for op in program.operations)
        ranks = 1 + max(c.rank for c in self.ctas.values())
        self.cluster = ranks if program.clustered else 1
        self.clusters = sorted({c.cluster for c in self.ctas.values()})
        if self.cluster > LARGEST_CLUSTER:
            raise CannotEmit(f"a cluster has {self.cluster} CTAs")
        self.positions = self.cluster * len(self.clusters) if program.clustered else len(self.ctas)
        self.warpgroups = self._warpgroups()
        self._refuse_unfenced()
        used = {t.place.warp for t in program.threads} | {
            4 * g + n for _, g in self.warpgroups for n in range(WARPGROUP)
        }
        self.warps = 1 + max(used)
        if self.warps > MOST_WARPS:
            raise CannotEmit(f"a CTA has {self.warps} warps")
        self.threads = WARP * self.warps
        shared = [i for i in program.memory.instances if i.cta is not None]
        first = min((i.cta.number for i in shared if i.cta is not None), default=0)
        self.block = (
            (shared_size(i.object for i in shared if i.cta is not None and i.cta.number == first) + 15) // 16 * 16
        )
        if self.block > SHARED_LIMIT:
            raise CannotEmit(f"a CTA takes {self.block} bytes of shared memory")
        self.offsets = {i.object.name: (i.base - SHARED_BASE) % SHARED_WINDOW for i in shared}
        self.objects = objects_of(program)
        self.watch = watch(program, self.objects, self.offset_of)
        self.pause = signals(program)
        self.warm = warmable(program)
        self.meets = self._meets_at_the_end()
        self._refuse_leftovers()
        self.dialect = self._dialect_barriers()
        self.tables: dict[tuple[int, ...], str] = {}

    def offset_of(self, instance: Instance) -> int:
        """Where a shared object lies in the block of its CTA."""
        return self.offsets[instance.object.name]

    # --- what is asked of the test ------------------------------------------------------------------------------

    def _warpgroups(self) -> set[tuple[int, int]]:
        """The warpgroups that multiply matrices: their CTA, their number in it."""
        code = ((t.place.warpgroup, op) for t in self.program.threads for op in map(performed_operation, t.code))
        return {group for group, op in code if of_warpgroup(op)}

    def _meets_at_the_end(self) -> bool:
        """Whether the threads of a cluster wait for each other before they end, for others may access their memory."""
        if not self.clustered or not self.block or self.positions == 1:
            return False
        codes = [[performed_operation(op) for op in t.code] for t in self.program.threads]
        waits = [[op for op in code if isinstance(op, ops.ClusterBarrier)] for code in codes]
        counts = {(sum(op.kind == "arrive" for op in found), len(found)) for found in waits}
        balanced = len(counts) == 1 and all(2 * arrivals == both for arrivals, both in counts)
        if not balanced or any(map(may_skip_a_meeting, self.program.threads)):
            raise CannotEmit("a thread exits while others wait at the barrier of the cluster")
        if may_leave_waiting(self.program):
            raise CannotEmit("a thread exits while others wait at a barrier, and its cluster waits for it")
        return True

    def _refuse_unfenced(self) -> None:
        """The assembler inserts a ``wgmma.fence`` that is missing: the chip would run another program."""
        for thread in self.program.threads:
            for op in map(performed_operation, thread.code):
                if isinstance(op, ops.WgmmaFence):
                    break
                if isinstance(op, ops.Wgmma):
                    raise CannotEmit("wgmma.mma_async without a wgmma.fence, which the assembler inserts")

    def _refuse_leftovers(self) -> None:
        """A warp waits forever where arrivals, which count whole warps, come to no whole number of rounds."""
        arrivals: dict[tuple[int, int, int], Counter[int]] = {}
        waits: set[tuple[int, int, int]] = set()
        for thread in self.program.threads:
            mine: Counter[tuple[int, int, int]] = Counter()
            for op in map(performed_operation, thread.code):
                if not isinstance(op, ops.Barrier) or op.instance is not None:
                    continue
                if not isinstance(op.barrier, Const) or not isinstance(op.count, Const | None):
                    return
                if op.count is not None:
                    key = thread.place.cta.number, op.barrier.value, op.count.value
                    mine[key] += 1
                    if op.kind != "arrive":
                        waits.add(key)
            for key, number in mine.items():
                warps = arrivals.setdefault(key, Counter())
                warps[thread.place.warp] = max(warps[thread.place.warp], number)
        if any(WARP * arrivals[key].total() % key[2] for key in waits):
            raise CannotEmit("a warp is left waiting at a barrier")

    def _dialect_barriers(self) -> dict[int, dict[tuple[int, int | None], tuple[int, int]]]:
        """By CTA, a number and the members of each barrier of the table dialect: the threads that name it."""
        found: dict[int, dict[tuple[int, int | None], set[int]]] = {}
        for thread in self.program.threads:
            for op in map(performed_operation, thread.code):
                if isinstance(op, ops.Barrier) and op.instance is not None:
                    if op.barrier is not None and not isinstance(op.barrier, Const):
                        raise CannotEmit("the number of a barrier of the table dialect is in a register")
                    logical = op.barrier.value if op.barrier is not None else None
                    named = found.setdefault(thread.place.cta.number, {})
                    named.setdefault((op.instance, logical), set()).add(thread.index)
        if found and any(n > 1 for n in Counter(t.place.own_warp for t in self.program.threads).values()):
            raise CannotEmit("a barrier of the table dialect counts the threads of a warp")
        return {
            cta: {key: (n, len(members)) for n, (key, members) in enumerate(named.items(), 1)}
            for cta, named in found.items()
        }

    # --- the kernel ---------------------------------------------------------------------------------------------

    def build(self) -> Kernel:
        parts = [line for k, stream in enumerate(self.streams) for line in self.stream(k, stream)]
        head = self.head()
        tables = [
            f".global .align 4 .u32 {name}[{len(values)}] = {{{', '.join(map(str, values))}}};"
            for values, name in self.tables.items()
        ]
        text = "\n".join([*tables, *head, *parts, *self.noise(), "}", ""])
        return Kernel(
            self.name,
            text,
            self.layout(),
            self.objects.all,
            tuple(self.watch.watched),
            self.watch.slots,
            self.warm,
            self.pause,
        )

    def layout(self) -> dict[str, Any]:
        return {
            "placement": "whole",
            "ctas": self.positions,
            "cluster": self.cluster,
            "warps": self.warps,
            "turns": 1 if self.warpgroups else self.warps,
            "block": self.block,
        }

    def crew(self, stream: Stream, numbers: count[int]) -> Crew:
        """The threads of a stream, and the lanes that follow it through what all lanes of a warpgroup do."""
        threads = {t.index: (t.place.cta.number, t.place.warp, t.place.lane) for t in stream.threads}
        groups = {t.place.warpgroup for t in stream.threads} & self.warpgroups
        taken = set(threads.values())
        warps = {(cta, warp) for cta, warp, _ in taken}
        lanes: dict[int, Position] = {}
        others: dict[int, Position] = {}
        for cta, group in sorted(groups):
            for warp in range(WARPGROUP * group, WARPGROUP * (group + 1)):
                for lane in range(WARP):
                    if (cta, warp, lane) not in taken:
                        (lanes if (cta, warp) in warps else others)[next(numbers)] = (cta, warp, lane)
        if (lanes or others) and any(isinstance(op, ops.Branch | ops.Exit) for op in stream.operations):
            raise CannotEmit("lanes without a thread cannot follow the branches of their warpgroup")
        return Crew({**threads, **lanes, **others}, frozenset(lanes), frozenset(others))

    def counted(self) -> int | None:
        """The threads of a barrier without a count where warps of the CTA stand beside the test: those that do not."""
        if not self.warpgroups:
            return None
        named = {t.place.own_warp for t in self.program.threads}
        if all((c, WARPGROUP * g + n) in named for c, g in self.warpgroups for n in range(WARPGROUP)):
            return None
        counts = Counter(cta for cta, _ in named)
        if len(set(counts.values())) > 1:
            raise CannotEmit("the CTAs of warpgroups with missing warps differ")
        return WARP * next(iter(counts.values()))

    def head(self) -> list[str]:
        cluster = f".reqnctapercluster {self.cluster}, 1, 1\n.explicitcluster\n" if self.clustered else ""
        size = settings.parameter_bytes(len(self.objects.all), 0, 0)
        lines = [
            f".visible .entry {self.name}(.param .align 8 .b8 A[{size}])\n{cluster}.maxntid {self.threads}, 1, 1",
            "{",
            ".reg .u32 %thr, %lane, %warp, %cta, %group, %inst, %n, %turn, %at, %me, %own, %mask, %here, %old, %base;",
            ".reg .u64 %wide; .reg .pred %go, %more;",
            "mov.u32 %thr, %tid.x;",
            "and.b32 %lane, %thr, 31;",
            "shr.u32 %warp, %thr, 5;",
            # the CTAs of an instance are neighbours; which of them is which turns from launch to launch
            "mov.u32 %n, %ctaid.x;",
            f"rem.u32 %own, %n, {self.cluster};",
            f"div.u32 %n, %n, {self.cluster};",
            f"div.u32 %group, %n, {self.positions // self.cluster};",
            f"ld.param.u32 %turn, [A+{settings.at('turn')}];",
            "add.u32 %n, %n, %turn;",
            f"rem.u32 %n, %n, {self.positions // self.cluster};",
            f"mad.lo.u32 %cta, %n, {self.cluster}, %own;",
            # the first ones make noise
            f"ld.param.u32 %n, [A+{settings.at('loud')}];",
            "setp.lt.u32 %go, %group, %n;",
            "@%go bra NOISE;",
            "sub.u32 %inst, %group, %n;",
            f"mad.lo.u32 %base, %inst, {self.positions}, %cta;",
        ]
        lines += self.clear()
        lines += [
            f"ld.param.u32 %n, [A+{settings.at('shift')}];",
            "add.u32 %warp, %warp, %n;",
            f"rem.u32 %warp, %warp, {self.warps};",
            f"mad.lo.u32 %at, %cta, {self.warps}, %warp;",
            f"mad.lo.u32 %me, %at, {WARP}, %lane;",
            "mov.u32 %n, 1;",
            "shl.b32 %here, %n, %lane;",
        ]
        for k, crew in enumerate(self.crews):
            lines += self.dispatch(k, crew)
        return [*lines, "exit;"]

    def clear(self) -> list[str]:
        """Shared memory is set, the CTAs of the instance meet, and its threads."""
        meet = ["barrier.cluster.arrive;", "barrier.cluster.wait;"] if self.clustered else ["barrier.sync 0;"]
        lines = ["setp.eq.u32 %go, %thr, 0;", f"@%go st.shared.u32 [S+{settings.FLAG}], 0;"]
        if self.block:
            lines += [
                "mul.lo.u32 %at, %thr, 4;",
                "mov.u32 %old, S;",
                "CLEAR:",
                f"setp.ge.u32 %go, %at, {self.block};",
                "@%go bra CLEARED;",
                "add.u32 %n, %old, %at;",
                f"st.shared.u32 [%n+{settings.BLOCKS}], 0;",
                f"add.u32 %at, %at, {4 * self.threads};",
                "bra CLEAR;",
                "CLEARED:",
                "fence.proxy.async.shared::cta;",
            ]
        if self.positions > self.cluster or (self.positions > 1 and not self.clustered):
            lines += [
                "setp.ne.u32 %go, %thr, 0;",
                "@%go bra MET;",
                f"ld.param.u64 %wide, [A+{settings.at('line')}];",
                "mad.wide.u32 %wide, %inst, 4, %wide;",
                "red.relaxed.gpu.global.add.u32 [%wide], 1;",
                "mov.u32 %at, 0;",
                "MEET:",
                "ld.relaxed.gpu.global.u32 %n, [%wide];",
                f"setp.ge.u32 %go, %n, {self.positions};",
                "@%go bra MET;",
                "add.u32 %at, %at, 1;",
                "setp.lt.u32 %go, %at, 2000;",
                "@%go bra MEET;",
                "MET:",
            ]
        return [*lines, *meet]

    def position(self, cta: int) -> int:
        """Which CTA of an instance a CTA of the program is."""
        if not self.program.clustered:
            return sorted(self.ctas).index(cta)
        place = self.ctas[cta]
        return self.clusters.index(place.cluster) * self.cluster + place.rank

    def key(self, where: Position) -> int:
        """The number of a thread in its instance."""
        cta, warp, lane = where
        return (self.position(cta) * self.warps + warp) * WARP + lane

    def dispatch(self, k: int, crew: Crew) -> list[str]:
        """Sends the threads of a stream to its code."""
        masks: dict[tuple[int, int], int] = {}
        for cta, warp, lane in crew.threads.values():
            masks[cta, warp] = masks.get((cta, warp), 0) | 1 << lane
        lines = []
        for (cta, warp), mask in masks.items():
            lines.append(f"setp.eq.u32 %go, %at, {self.position(cta) * self.warps + warp};")
            if mask != (1 << WARP) - 1:
                lines += [
                    f"and.b32 %mask, %here, {mask};",
                    "setp.ne.u32 %more, %mask, 0;",
                    "and.pred %go, %go, %more;",
                ]
            lines.append(f"@%go bra T{k};")
        return lines

    @property
    def crews(self) -> list[Crew]:
        numbers = count(len(self.program.threads))
        return [self.crew(stream, numbers) for stream in self.streams]

    def stream(self, k: int, stream: Stream) -> list[str]:
        crew = self.crews[k]
        printer = StreamPrinter(
            self.pseudo(k, stream),
            None,  # type: ignore[arg-type]
            program=self.program,
            shape=None,  # type: ignore[arg-type]
            stream=stream,
            crew=crew,
            counts=self.dialect.get(stream.threads[0].place.cta.number, {}),
            shared=self.offsets,
            everywhere=self.counted(),
        )
        body = printer.body()
        memberships = {
            members: printer.row({n: int(n in members) for n in crew.everybody}) for members in printer.memberships
        }
        lines = [f"T{k}:", *self.declarations(k, printer)]
        lines += [
            f"mov.u32 %i{k}, %inst;",
            f"mad.lo.u32 %base{k}, %base, {self.threads}, %thr;",
            f"mov.u32 %s{k}, S;",
            f"add.u32 %s{k}, %s{k}, {settings.BLOCKS};",
            f"mov.u32 %round{k}, 0;",
            f"mov.u32 %acc{k}, 0;",
            f"mov.u32 %stuck{k}, 0;",
            f"mov.u32 %polls{k}, 0;",
        ]
        for values, row in printer.rows.items():
            lines += self.row(k, crew, dict(values), row)
        for members, name in printer.memberships.items():
            lines.append(f"setp.ne.u32 {name}, {memberships[members]}, 0;")
        firsts = self.pointers(k, printer, lines)
        for tile in printer.tiles.values():
            lines += [f"mov.f32 {r}, 0f00000000;" for r in tile.all(k)]
        if printer.tiles:
            lines.append(f"setp.eq.u32 %add{k}, 0, 0;")
        lines += self.objects.texels(k, printer.texels)
        lines += self.objects.warm(k, firsts, printer.texels, read=self.warm)
        lines += [*fragments.delay(k), *fragments.pipe(k)]
        lines += ["// --- the test", *body, "// ---"]
        return [*lines, *self.end(k, stream, crew, printer)]

    def pseudo(self, k: int, stream: Stream) -> Thread:
        """A thread with the registers and labels of the stream, as the printer wants it."""
        types: dict[str, str] = {}
        for thread in stream.threads:
            for name, kind in thread.types.items():
                if types.setdefault(name, kind) != kind:
                    raise CannotEmit(f"a register {name} of two types")
        return replace(stream.threads[0], index=k, code=(), labels=stream.labels, types=types)

    def declarations(self, k: int, printer: StreamPrinter) -> list[str]:
        lines = fragments.declared(k)
        lines += [fragments.register(f"%t{k}_{name}", kind) for name, kind in printer.thread.types.items()]
        lines += [
            f".reg .{'u64' if key[0] == 'global' else 'u32'} {register};" for key, register in printer.places.items()
        ]
        lines += [f".reg .u32 {register};" for register in printer.rows.values()]
        lines += [f".reg .pred {register};" for register in printer.memberships.values()]
        for r in (r for words in printer.texels.values() for r in words.values()):
            lines.append(f".reg .u64 {r.handle}; .reg .u32 {r.x}, {r.y};")
        lines += [f".reg .b32 %x{k}_{n + 1};" for n in range(printer.words)]
        lines += [f".reg .b64 %y{k}_{n + 1};" for n in range(printer.longs)]
        if printer.tiles:
            lines.append(f".reg .pred %add{k};")
        return [*lines, *(f".reg .f32 {r};" for tile in printer.tiles.values() for r in tile.all(k))]

    def row(self, k: int, crew: Crew, values: Mapping[int, int], register: str) -> list[str]:
        """Sets a register to a value that the place of the thread decides."""
        lines = computed(register, {self.split(crew.threads[n]): v for n, v in values.items()})
        if lines is not None:
            return lines
        first = next(iter(values.values()))
        table = [first] * (self.positions * self.threads)
        for n, v in values.items():
            table[self.key(crew.threads[n])] = v
        name = self.tables.setdefault(tuple(table), f"{self.name}_{len(self.tables)}")
        return [
            f"mov.u64 %w{k}, {name};",
            f"mad.wide.u32 %w{k}, %me, 4, %w{k};",
            f"ld.global.u32 {register}, [%w{k}];",
        ]

    def split(self, where: Position) -> Position:
        return self.position(where[0]), where[1], where[2]

    def pointers(self, k: int, printer: StreamPrinter, lines: list[str]) -> dict[int, tuple[int | None, str]]:
        """Sets the registers of addresses; for each global object, an address in it and its offset is returned."""
        firsts: dict[int, tuple[int | None, str]] = {}
        bases: dict[int, list[tuple[str, str]]] = {}
        for key, register in printer.places.items():
            if key[0] == "global":
                bases.setdefault(self.objects.numbers[str(key[1])], []).append((str(key[2]), register))
                continue
            _, offset, rank = key
            lines.append(f"add.u32 {register}, %s{k}, {offset};")
            if rank is not None:
                lines.append(f"mapa.shared::cluster.u32 {register}, {register}, {rank};")
        for number, found in bases.items():
            lines += self.objects.pointers(k, number, found)
            start, register = found[0]
            firsts[number] = (int(start) if start.isdigit() else None, register)
        return firsts

    def end(self, k: int, stream: Stream, crew: Crew, printer: StreamPrinter) -> list[str]:
        """What is left in flight is waited for, registers are stored; the last thread of a CTA stores its words."""
        lines = []
        if printer.tiles:
            lines += [*printer.together(), "wgmma.wait_group.sync.aligned 0;"]
            for tile in printer.tiles.values():
                for r in tile.all(k):
                    lines += [f"mov.b32 %n{k}, {r};", f"xor.b32 %acc{k}, %acc{k}, %n{k};"]
                for name, r in zip(tile.names, tile.all(k), strict=False):
                    if printer.thread.types.get(name) in ("f32", "b32"):
                        lines.append(f"mov.b32 %t{k}_{name}, {r};")
            lines += [  # never true: the results have to be there, not to be used
                f"setp.eq.u32 %p{k}, %acc{k}, 0x7ffffffd;",
                f"ld.param.u64 %w{k}, [A+{settings.at('scratch')}];",
                f"@%p{k} st.global.u32 [%w{k}], %acc{k};",
            ]
        beside = crew.lanes | crew.warps
        if beside:
            row = self.row(k, crew, {n: int(n in beside) for n in crew.everybody}, f"%n{k}")
            lines += [*row, f"setp.ne.u32 %p{k}, %n{k}, 0;", f"@%p{k} bra BESIDE{k};"]
        lines += drain(op for t in stream.threads for op in t.code)
        lines += fragments.stuck(k)
        for thread in stream.threads:
            for slot, name in self.watch.registers.get(thread.index, ()):
                self.labels += 1
                lines += [
                    f"setp.ne.u32 %p{k}, %me, {self.key(crew.threads[thread.index])};",
                    f"@%p{k} bra OTHER{self.labels};",
                    *fragments.result(k, slot),
                    *fragments.value(k, f"%t{k}_{name}", thread.types[name]),
                    f"st.global.u64 [%to{k}], %g{k};",
                    f"OTHER{self.labels}:",
                ]
        if self.pause:
            lines += [f"mov.u32 %v{k}, {PAUSE};", *fragments.spin(f"PAUSE{k}", k)]
        if beside:
            lines.append(f"BESIDE{k}:")
        if self.meets:
            lines += ["barrier.cluster.arrive;", "barrier.cluster.wait;"]
        if beside:
            row = self.row(k, crew, {n: int(n in beside) for n in crew.everybody}, f"%n{k}")
            lines += [*row, f"setp.ne.u32 %p{k}, %n{k}, 0;", f"@%p{k} exit;"]
        return [*lines, *self.last(k)]

    labels = 0

    def last(self, k: int) -> list[str]:
        """The last thread of its CTA stores the words of shared memory, and says that the CTA is done."""
        totals = Counter(t.place.cta.number for t in self.program.threads)
        lines = [f"atom.acq_rel.cta.shared.add.u32 %old, [S+{settings.FLAG}], 1;"]
        for cta, total in totals.items():
            lines += [
                f"setp.ne.u32 %p{k}, %cta, {self.position(cta)};",
                f"@%p{k} bra NOT{k}_{cta};",
                f"setp.ne.u32 %p{k}, %old, {total - 1};",
                f"@%p{k} exit;",
                f"ld.param.u64 %w{k}, [A+{settings.at('done')}];",
                f"red.relaxed.gpu.global.add.u32 [%w{k}], 1;",
            ]
            if cta in self.watch.dumped:
                lines.append("fence.proxy.async.shared::cta;")
            for slot, offset, size in self.watch.dumped.get(cta, ()):
                lines += fragments.result(k, slot)
                lines += [f"ld.shared.u{8 * size} %g{k}, [%s{k}+{offset}];", f"st.global.u64 [%to{k}], %g{k};"]
            lines += ["exit;", f"NOT{k}_{cta}:"]
        return [*lines, "exit;"]

    def noise(self) -> list[str]:
        """CTAs that keep the banks of their SM, or the memory, busy until the instances are done, or long enough."""
        total = len(self.ctas)
        return [
            "NOISE:",
            *fragments.declared_noise(),
            *fragments.begin_noise(),
            "mov.u32 %left, 20000;",
            "AGAIN:",
            *fragments.noise(),
            f"ld.param.u64 %wide, [A+{settings.at('done')}];",
            "ld.relaxed.gpu.global.u32 %seen, [%wide];",
            f"ld.param.u32 %n, [A+{settings.at('mask')}];",
            "add.u32 %n, %n, 1;",
            f"mul.lo.u32 %n, %n, {total};",
            "setp.ge.u32 %go, %seen, %n;",
            "@%go exit;",
            "sub.u32 %left, %left, 1;",
            "setp.ne.u32 %go, %left, 0;",
            "@%go bra AGAIN;",
            "exit;",
        ]
