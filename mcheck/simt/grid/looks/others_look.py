"""The watch on an execution of clusters that look at words of others, whatever they find there.

A *look* is a strong load of global memory at scope gpu or wider. From a look on the lanes of its warp are taken over
(``mcheck.simt.grid.looks.warp_exploration``) until they do something else than to look, compute and exchange values.
Which bits of registers are known is kept beside their values, for stores to words have a status beside unknown data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, low_mask, type_bits
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import EXITED, Cluster, Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.loop_visits import statements
from mcheck.simt.grid.looks.endless_looks import EndlessLooks, Stuck, generic_address
from mcheck.simt.grid.looks.handed_takeover import HandedTakeover
from mcheck.simt.grid.looks.known_bits import EVERY, Bits, anything, compute
from mcheck.simt.grid.looks.warp_exploration import ENDLESS, NOT_FOLLOWED, Exploration
from mcheck.simt.grid.looks.warp_states import Case, Look, State
from mcheck.simt.grid.looks.word_statements import is_look, is_word_store
from mcheck.simt.grid.looks.word_values import Stored, Words
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.others_signal import OthersSignal
from mcheck.simt.instructions.access_operands import to_generic

FREE = np.uint8(taint.UNKNOWN)


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
    endless: EndlessLooks = field(init=False)

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument looks, draws, stores to words, and computations."""
        self.compiler = compiler
        self.stuck.clear()
        self.endless = EndlessLooks(self, self.stuck)
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
            if is_word_store(statement):
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
            return self.found.look(number, generic_address(address), size, c.span, final=final)

        return look

    def _explore_warp(self, c: Cluster, unit: Unit, at: int, warp: int, mask: Mask) -> None:
        there = slice(warp * WARP, (warp + 1) * WARP)
        number = self.numbers[int(c.lanes.cluster[warp * WARP])]

        def base(operand: ptx.Operand) -> Bits:
            found = self.bits(unit, operand)
            return Bits(found.value[there], found.unknown[there])

        look = self.looks_of(number, c)
        if self.endless.come(c, unit, at, warp, mask, number):
            return
        others = (c.status[there] != EXITED) & ~mask[there]
        ways = self.found.explored.of(unit)
        ahead = [ways.reachable(pc - unit.start) for pc in set(c.pc[there][others].tolist())]
        stops = frozenset[int]().union(*ahead) & set(unit.function.labels.values())
        explored = Exploration(
            unit, base, self.found.explored, look, is_look, self.found.reads.update, self.check_time
        )  # fmt: skip
        mine = np.zeros_like(mask)
        mine[there] = mask[there]
        try:
            place, state = explored.run(at - unit.start, mask[there], stops)
        except NotReducible as error:
            if error.why != ENDLESS or not self.endless.note_stuck(explored, unit, at, mine, number):
                raise
            c.status[mine] = EXITED
            return
        if place == at - unit.start:
            raise NotReducible(NOT_FOLLOWED, c.span)
        self.go_on(c, unit, mine, place, state)

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


def _voted(statement: ptx.Statement) -> ptx.Operand:
    operand = statement.operands[1]
    return operand.register if isinstance(operand, ptx.Negated) else operand
