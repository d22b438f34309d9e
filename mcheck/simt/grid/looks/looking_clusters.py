"""The execution of clusters that look at words of others, whatever they find there.

A *look* is a strong load of global memory at scope gpu or wider. From a look on the lanes of its warp are taken over
(``mcheck.simt.grid.looks.warp_exploration``) until they do something else than to look, compute and exchange values.
Which bits of registers are known is kept beside their values, for stores to words have a status beside unknown data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass as record
from mcheck.findings import finding as findings
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, low_mask, type_bits
from mcheck.frontend.ptx.launch import Extent, Launch
from mcheck.ir import ops
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.ops import Op
from mcheck.ir.scopes import GRID_SCOPES
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import COLLECTIVES, Kind
from mcheck.simt.execution.cluster import EXITED, Cluster, Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.loop_visits import statements
from mcheck.simt.execution.register_reads import places_after
from mcheck.simt.grid.looks.handed_takeover import HandedTakeover
from mcheck.simt.grid.looks.known_bits import EVERY, Bits, anything, compute
from mcheck.simt.grid.looks.published_cells import find_published
from mcheck.simt.grid.looks.warp_exploration import ENDLESS, NOT_FOLLOWED, QUIET, Exploration, meeting_places
from mcheck.simt.grid.looks.warp_states import Case, Look, State
from mcheck.simt.grid.looks.word_values import Stored, Words
from mcheck.simt.grid.pairs.cluster_accesses import Access, AccessReader, Execution, lanes_of
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.known_words import KnownWord
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.cluster_signals import is_draw, trace_signalling, with_threads
from mcheck.simt.grid.signals.others_signal import OthersSignal
from mcheck.simt.instructions.access_operands import to_generic
from mcheck.simt.trace_extraction import ClusterTrace

MAX_VISITS = 64
"""How often a warp may look at the same words at one place, outside of an exploration."""
WAITS_FOR_LATER = "a loop looks forever at words of clusters that need not have begun"
FREE = np.uint8(taint.UNKNOWN)
SCALARS = frozenset(f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)) | {"f32", "f64"}
"""The types of words."""
ROUND = frozenset((Kind.BRANCH, Kind.WARP_BARRIER, *COLLECTIVES, *QUIET))
"""What a round of a loop may consist of beside looks and computations, if it is to be like the one before."""


@record(frozen=True, slots=True)
class Stuck:
    """A lane that looks at words forever if the clusters before its own have ended, and no others have begun; the word
    that it looks at last, and all of them.
    """

    lane: int
    address: int
    size: int
    words: frozenset[int]
    statement: ptx.Statement


class StuckFound(NotReducible):
    """A thread looks forever unless a later cluster stores to a word: its last look, and what its cluster does else."""

    def __init__(self, waits: findings.Access, execution: Execution) -> None:
        super().__init__(WAITS_FOR_LATER, waits.span)
        self.waits, self.execution = waits, execution


@dataclass(slots=True, kw_only=True)
class OthersLook(OthersSignal):
    """The watch on an execution of clusters that look at words, the ``found`` ones. With ``follows`` their stores are
    noted.
    """

    found: Words
    check_time: Callable[[], None]
    follows: bool = True
    value: Word = field(init=False)
    unknown: Word = field(init=False)
    """By register and lane what is known of an unknown value, and which bits are not."""
    stuck: list[Stuck] = field(default_factory=list)
    visits: dict[tuple[object, ...], int] = field(default_factory=dict)
    """How often warps have been taken over, by place, warp and addresses."""
    rounds: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """By place and warp, its state when it was taken over there."""
    meets: dict[int, dict[int, int]] = field(default_factory=dict)
    """By the first place of a function, where the ways of its branches meet."""
    reachable: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict)
    """By the first place of a function and one in it, those that come behind it."""

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument looks, draws, stores to words, and computations."""
        self.compiler = compiler
        self.visits.clear()
        self.rounds.clear()
        self.stuck.clear()
        self.found.places = compiler.places
        self.value = np.zeros_like(compiler.lanes.values)
        self.unknown = np.full_like(compiler.lanes.values, EVERY)
        if self.follows:
            for number in self.numbers:
                self.found.begin(number)
        out = list(steps)
        handed = HandedTakeover(self, is_look)
        for at, statement, unit in statements(compiler):
            made = steps[at]
            if statement.kind is Kind.CALL:
                raise NotReducible("functions are called", statement.span)
            if is_look(statement):
                out[at] = handed.leave_out(unit, statement) or self._explore(unit, at)
                continue
            if statement.kind is Kind.ATOMIC and compiler.is_needed(unit, statement) and self._may_draw(statement):
                made = self._draw(unit, statement, made)
            if _is_word_store(statement):
                made = self._note_stores(unit, statement, made)
            if statement.defs:
                made = self._keep_known(unit, statement, made)
            if statement.kind is Kind.BRANCH and statement.guard is not None:
                made = self._explore_unknown(unit, at, statement.guard.register, made)
            elif statement.kind is Kind.VOTE and isinstance(register := _voted(statement), ptx.Register):
                made = self._explore_unknown(unit, at, register, made)
            out[at] = handed.take_over(unit, at, made)
        return out

    def _may_draw(self, statement: ptx.Statement) -> bool:
        opcode = statement.opcode
        return opcode.has("add") and opcode.vector == 1 and opcode.type in ("u32", "s32", "u64", "s64")

    # --- values -------------------------------------------------------------------------------------------------

    def bits(self, unit: Unit, operand: ptx.Operand) -> Bits:
        """What is known of an operand, in all lanes."""
        lanes = self.compiler.lanes
        if isinstance(operand, ptx.Register):
            row = unit.frame + operand.index
            free = lanes.quality[row] & FREE != 0
            return Bits(
                np.where(free, self.value[row], lanes.values[row]), np.where(free, self.unknown[row], np.uint64(0))
            )
        value, quality = self.compiler.fetch(unit, operand)()
        shape = (lanes.count,)
        free = np.broadcast_to(quality & FREE != 0, shape)
        value = np.where(free, np.uint64(0), np.broadcast_to(value, shape))
        return Bits(value, np.where(free, EVERY, np.uint64(0)))

    def set_lanes(self, row: int, mask: Mask, bits: Bits) -> None:
        """Set a register of these lanes."""
        lanes = self.compiler.lanes
        sure = mask & (bits.unknown == 0)
        lanes.values[row][sure] = bits.value[sure]
        lanes.quality[row][sure] = 0
        rest = mask & ~sure
        lanes.quality[row][rest] = taint.UNKNOWN_NAMELESS
        self.value[row][rest], self.unknown[row][rest] = bits.value[rest], bits.unknown[rest]

    def _keep_known(self, unit: Unit, statement: ptx.Statement, step: Step) -> Step:
        """A step that keeps which bits of its results are known."""
        rows = [(unit.frame + r.index, low_mask(type_bits(r.type) or 64)) for r in statement.defs]
        computes = statement.only_computes and statement.guard is None and self.compiler.is_needed(unit, statement)

        def run(c: Cluster, mask: Mask) -> Mask | None:
            made = None
            if computes:
                lanes = self.compiler.lanes
                uses = [unit.frame + r.index for r in statement.uses]
                if any((lanes.quality[row][mask] & FREE).any() for row in uses):
                    made = compute(statement, lambda o: self.bits(unit, o), mask.shape)
            done = step(c, mask)
            for row, _ in rows:
                self.value[row][mask], self.unknown[row][mask] = 0, EVERY
            if made is not None and len(made) == len(rows):
                for (row, width), result in zip(rows, made, strict=True):
                    free = mask & (c.lanes.quality[row] & FREE != 0)
                    given = Bits(result.value & width, result.unknown & width)
                    if (free & (given.unknown != width)).any():
                        self.set_lanes(row, free, given)
            return done

        return run

    def _note_stores(self, unit: Unit, statement: ptx.Statement, step: Step) -> Step:
        size = type_size(statement.opcode.type)
        source = statement.operands[2 if statement.kind is Kind.ATOMIC else 1]
        items = source.items if isinstance(source, ptx.Vector) else (source,)

        def run(c: Cluster, mask: Mask) -> Mask | None:
            mine = self.compiler.guarded(unit, statement.guard, mask)
            if self.follows and mine.any():
                place = self.bits(unit, statement.place)
                if place.unknown[mine].any():
                    raise NotReducible("an address is not known", statement.span)
                for k, item in enumerate(items):
                    at = to_generic(place.value) + np.uint64(k * size)
                    c.span = statement.span
                    self._store(c, mine, at, size, self.bits(unit, item))
            return step(c, mask)

        return run

    def _store(self, c: Cluster, mine: Mask, places: Word, size: int, given: Bits) -> None:
        """Lanes store to words."""
        width = low_mask(8 * size)
        for lane in np.flatnonzero(mine).tolist():
            value = Bits(given.value[lane : lane + 1] & width, given.unknown[lane : lane + 1] & width)
            number, at = self.numbers[int(c.lanes.cluster[lane])], int(places[lane])
            if GLOBAL_BASE <= at < SHARED_BASE:
                self.found.store(number, at, Stored(lane, size, value, c.span))

    # --- looks --------------------------------------------------------------------------------------------------

    def _explore_unknown(self, unit: Unit, at: int, register: ptx.Register, step: Step) -> Step:
        """A step where warps are taken over in which the value of a predicate is not known."""
        explore, row = self._explore(unit, at), unit.frame + register.index

        def run(c: Cluster, mask: Mask) -> Mask | None:
            free = mask & (c.lanes.quality[row] & FREE != 0)
            warps = np.repeat(free.reshape(-1, WARP).any(axis=1), WARP) & mask
            if not warps.any():
                return step(c, mask)
            rest = mask & ~warps
            if rest.any():
                done = step(c, rest)
                if done is not None:
                    c.pc[done] = at + 1
            explore(c, warps)
            return None

        return run

    def _explore(self, unit: Unit, at: int) -> Step:
        statement = unit.function.body[at - unit.start]

        def run(c: Cluster, mask: Mask) -> None:
            c.span = statement.span
            for warp in np.flatnonzero(mask.reshape(-1, WARP).any(axis=1)).tolist():
                self._explore_warp(c, unit, at, warp, mask)

        return run

    def looks_of(self, number: int, c: Cluster) -> Look:
        """What words may hold where a cluster of this number looks at them."""

        def look(address: int, size: int, *, final: bool) -> Sequence[Case]:
            return self.found.look(number, _generic(address), size, c.span, final=final)

        return look

    def meeting(self, unit: Unit) -> dict[int, int]:
        """Where the ways of the branches of a function meet."""
        if unit.start not in self.meets:
            self.meets[unit.start] = meeting_places(unit.function)
        return self.meets[unit.start]

    def _reachable(self, unit: Unit, place: int) -> frozenset[int]:
        """The places in a function to which lanes at this one may come."""
        key = unit.start, place
        if key not in self.reachable:
            todo, found = [place], {place}
            if any(statement.kind is Kind.INDEXED_BRANCH for statement in unit.function.body):
                todo, found = [], set(range(len(unit.function.body)))
            while todo:
                at = todo.pop()
                if 0 <= at < len(unit.function.body):
                    new = set(places_after(unit.function, at)) - found
                    found |= new
                    todo += new
            self.reachable[key] = frozenset(found)
        return self.reachable[key]

    def _explore_warp(self, c: Cluster, unit: Unit, at: int, warp: int, mask: Mask) -> None:
        there = slice(warp * WARP, (warp + 1) * WARP)
        number = self.numbers[int(c.lanes.cluster[warp * WARP])]

        def base(operand: ptx.Operand) -> Bits:
            found = self.bits(unit, operand)
            return Bits(found.value[there], found.unknown[there])

        look = self.looks_of(number, c)
        visit = at, warp, tuple(self.bits(unit, _place(unit, at)).value[there].tolist())
        self.visits[visit] = self.visits.get(visit, 0) + 1
        if self.visits[visit] >= MAX_VISITS:
            before, self.rounds[at, warp] = self.rounds.get((at, warp)), self._state(c, there)
            if self.visits[visit] > MAX_VISITS:
                if before != self.rounds[at, warp] or not self._note_same_round(c, unit, at, there, mask, number):
                    raise NotReducible(ENDLESS, c.span)
                return
        others = (c.status[there] != EXITED) & ~mask[there]
        ahead = [self._reachable(unit, pc - unit.start) for pc in set(c.pc[there][others].tolist())]
        stops = frozenset[int]().union(*ahead) & set(unit.function.labels.values())
        explored = Exploration(unit, self.meeting(unit), base, look, is_look, self.found.reads.update, self.check_time)
        mine = np.zeros_like(mask)
        mine[there] = mask[there]
        try:
            place, state = explored.run(at - unit.start, mask[there], stops)
        except NotReducible as error:
            if error.why != ENDLESS or not self._note_stuck(explored, unit, at, mine, number):
                raise
            c.status[mine] = EXITED
            return
        if place == at - unit.start:
            raise NotReducible(NOT_FOLLOWED, c.span)
        self.go_on(c, unit, mine, place, state)

    def _state(self, c: Cluster, warp: slice) -> bytes:
        """Where the lanes of a warp are, and all that is known of their registers."""
        lanes = self.compiler.lanes
        held = (lanes.values, lanes.quality, self.value, self.unknown)
        return b"".join((c.pc[warp].tobytes(), c.status[warp].tobytes(), *(rows[:, warp].tobytes() for rows in held)))

    def _note_same_round(self, c: Cluster, unit: Unit, at: int, warp: slice, mask: Mask, number: int) -> bool:
        """Note lanes of a warp that has come back to a look with the same registers, and so always will: it does
        nothing else in between but compute and vote, and its words hold one value. Returns whether that is so.
        """
        place = at - unit.start
        loop = {k for k in self._reachable(unit, place) if place in self._reachable(unit, k)}
        body = [unit.function.body[k] for k in loop]
        looks = [s for s in body if is_look(s)]
        if not all(is_look(s) or s.only_computes or s.kind in ROUND for s in body) or len(looks) != 1:
            return False
        statement, lanes = looks[0], np.flatnonzero(mask[warp])
        if statement is not unit.function.body[place] or statement.guard is not None or statement.opcode.vector != 1:
            return False
        size = type_size(statement.opcode.type)
        words = [int(_generic(a)) for a in self.bits(unit, statement.place).value[warp][lanes].tolist()]
        if any(len(self.found.look(number, word, size, c.span, final=False)) != 1 for word in words):
            return False
        self.stuck.append(Stuck(warp.start + int(lanes[0]), words[0], size, frozenset(words), statement))
        c.status[warp][np.isin(c.pc[warp] - unit.start, list(loop))] = EXITED
        return True

    def go_on(self, c: Cluster, unit: Unit, mine: Mask, place: int, state: State) -> None:
        """Let the lanes of a warp go on from where an exploration has led them."""
        first = int(np.flatnonzero(mine)[0]) // WARP * WARP
        there = slice(first, first + WARP)
        for row, bits in state.registers.items():
            whole = anything(64, mine.shape)
            value, unknown = whole.value.copy(), whole.unknown.copy()
            value[there], unknown[there] = bits.value, bits.unknown
            self.set_lanes(row, mine, Bits(value, unknown))
        if not c.path_condition.is_empty:
            for made in (True, False):
                c.path_condition.forget(list(state.registers), mine, made=made)
        c.pc[mine] = unit.start + place

    def _note_stuck(self, explored: Exploration, unit: Unit, at: int, mine: Mask, number: int) -> bool:
        """Note lanes that look forever, unless others of their cluster store what they look for; returns whether they
        do.
        """
        looked: list[tuple[int, int]] = []

        def look(address: int, size: int, *, final: bool) -> Sequence[Case]:
            looked.append((_generic(address), size))
            return self.found.look(number, _generic(address), size, None, final=final)

        again = replace(explored, look=look, steps=0, ended=set())
        lane = int(np.flatnonzero(mine)[0])
        first = lane // WARP * WARP
        try:
            if not again.is_stuck(at - unit.start, mine[first : first + WARP]) or not looked:
                return False
        except NotReducible:
            return False
        address, size = looked[-1]
        statement = next(s for s in unit.function.body[at - unit.start :] if is_look(s))
        self.stuck.append(Stuck(lane, address, size, frozenset(one for one, _ in looked), statement))
        return True


def is_look(statement: ptx.Statement) -> bool:
    """Whether a load may be a look."""
    opcode = statement.opcode
    if statement.kind is not Kind.LOAD or not opcode.is_strong or opcode.has("mmio"):
        return False
    wide = opcode.has("volatile") or opcode.scope in GRID_SCOPES
    return wide and opcode.space in ("global", "generic") and _is_word(opcode.type)


def _is_word_store(statement: ptx.Statement) -> bool:
    """Whether an instruction may store to a word that others look at."""
    opcode = statement.opcode
    if opcode.space not in ("global", "generic") or not _is_word(opcode.type):
        return False
    if statement.kind is Kind.STORE:
        return opcode.is_strong
    return statement.kind is Kind.ATOMIC and opcode.has("exch") and opcode.vector == 1


def _is_word(kind: str) -> bool:
    """Whether an access, or each element of it, is a scalar (8.2.1), not packed."""
    return kind in SCALARS


def _place(unit: Unit, at: int) -> ptx.Operand:
    """The address of a look, or any operand that is the same each time."""
    statement = unit.function.body[at - unit.start]
    return statement.place if statement.kind is Kind.LOAD else ptx.Immediate(0)


def _generic(address: int) -> int:
    return int(to_generic(np.array([address], np.uint64))[0])


def _voted(statement: ptx.Statement) -> ptx.Operand:
    operand = statement.operands[1]
    return operand.register if isinstance(operand, ptx.Negated) else operand


# --- executions -------------------------------------------------------------------------------------------------------


def has_looks(module: ptx.Module) -> bool:
    """Whether a module may look at words."""
    return any(is_look(s) for function in module.functions.values() for s in function.body)


def execute_looking(
    module: ptx.Module, launch: Launch, cluster: Extent, number: int, ticket: KnownWord | None, words: Words,
    shapes: dict[object, int], limit: Limit,
) -> Execution:  # fmt: skip
    """What the cluster of a number does but for looks and stores to words, which are noted in ``words``. ``shapes``
    numbers operations. Raises ``NotReducible``, and ``TicketFound``.
    """
    watch = OthersLook(launch, (number,), ticket, found=words, check_time=limit.check)
    try:
        whole = trace_signalling(module, launch, (cluster,), watch, limit)
    except NotReducible:
        if watch.stuck:
            raise NotReducible(ENDLESS, watch.stuck[0].statement.span) from None
        raise
    trace = _without_words(whole, words)
    reader = _Reader(memory=trace.program.memory, shapes=shapes, ticket=ticket)
    shape = reader.read_program(trace.program)
    reader.check_nothing_copied_to()  # what a thread has published is what it has stored
    if ticket is not None and reader.drawn != 1:
        raise NotReducible("a cluster does not draw exactly one ticket")
    accesses, lanes = reader.accesses(), lanes_of(trace.program)
    found = Execution(cluster, shape, accesses, lanes, watch.compiler.places)
    if watch.stuck:
        _raise_stuck(whole, words, number, watch.stuck[0], found)
    mine = {at: stores for at, stores in words.stored.items() if words.owners[at] == number}
    for at, cells in find_published(whole.program, lanes, accesses, mine).items():
        words.publish(at, cells)
    return found


def _raise_stuck(
    trace: ClusterTrace, words: Words, number: int, stuck: Stuck, execution: Execution
) -> NoReturn:  # fmt: skip
    """Raises ``StuckFound`` if no other thread of the cluster stores to a word that the lane looks at."""
    instance = trace.program.memory.find(stuck.address)
    place = np.flatnonzero(lanes_of(trace.program) == stuck.lane)
    if instance is None or not len(place) or any(words.owners.get(one) == number for one in stuck.words):
        raise NotReducible(ENDLESS, stuck.statement.span)
    start = stuck.address - instance.base
    raise StuckFound(
        findings.Access(
            thread=trace.program.threads[int(place[0])].name, instruction=stuck.statement.text,
            span=stuck.statement.span, object=instance.label, bytes=(start, start + stuck.size), strong=True,
        ),
        execution,
    )  # fmt: skip


def trace_looking(
    module: ptx.Module, launch: Launch, clusters: Mapping[int, Extent], ticket: KnownWord | None, words: Words,
    limit: Limit,
) -> ClusterTrace:  # fmt: skip
    """What clusters, by their numbers, do together but for looks and stores to words."""
    watch = OthersLook(launch, tuple(clusters), ticket, found=words, check_time=limit.check, follows=False)
    return _without_words(trace_signalling(module, launch, [*clusters.values()], watch, limit), words)


def _without_words(trace: ClusterTrace, words: Words) -> ClusterTrace:
    """The trace without the stores to words."""

    def is_kept(op: Op, lane: int) -> bool:
        if not isinstance(op, ops.Store | ops.Atomic) or not isinstance(op.address, Const | Lanes):
            return True
        at = op.address.value if isinstance(op.address, Const) else op.address.values[lane]
        strong = op.sem != "weak" and op.scope in GRID_SCOPES and op.proxy == "generic" and op.multimem is None
        noted = _is_word(op.type) and at in words.stored
        return not strong or not noted or (isinstance(op, ops.Atomic) and op.op != "exch")

    threads = tuple(
        replace(t, code=tuple(op for op in t.code if is_kept(op, t.place.lane))) for t in trace.program.threads
    )
    return replace(trace, program=with_threads(trace.program, threads))


@dataclass(slots=True, kw_only=True)
class _Reader(AccessReader):
    """Collects the accesses of one execution, and the draw of its ticket."""

    ticket: KnownWord | None
    drawn: int = 0

    def is_ordering(self, op: Op, inner: Access, at: Numbers, size: int, threads: Numbers) -> bool:
        """Whether an access draws the ticket."""
        word = self.ticket
        if word is None or not ((at < word.address + word.size) & (at + size > word.address)).any():
            return False
        if not is_draw(op, inner, at, size, word) or len(threads) != 1:
            raise NotReducible("tickets are accessed otherwise than by one atomic of each cluster", op.span)
        self.drawn += 1
        return True
