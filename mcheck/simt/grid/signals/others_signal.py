"""The execution of clusters while the others have signalled: whatever they wait for is there, and each draws the ticket
of its number, or is the last one of all where it is told so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Self

import numpy as np

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, type_bits
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.ir import ops
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.scopes import GRID_SCOPES
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch, FindBarrierWait, FindWaits
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import statements, with_action
from mcheck.simt.execution.waits.value_tests import AwaitedValue, find_sign_draws
from mcheck.simt.grid.counters.count_uses import CountUses
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.kept_operands import FindWait, Kept, find_kept_waits
from mcheck.simt.grid.pairs.known_words import KnownWord, known_word
from mcheck.simt.grid.pairs.only_path import LEARNED
from mcheck.simt.grid.pairs.reduction import NotReducible, clusters_of
from mcheck.simt.grid.signals.early_polls import FAILS, EarlyPoll, find_early_test
from mcheck.simt.grid.signals.synchronisations import Sign, Told
from mcheck.simt.instructions.access_operands import fetch_lanes, to_generic
from mcheck.simt.instructions.awaited_values import await_load, find_waits
from mcheck.simt.instructions.barrier_polls import find_barrier_waits, lone_lanes


class TicketFound(Exception):
    """A cluster is about to draw a number from a word whose initial value is given."""

    def __init__(self, ticket: KnownWord) -> None:
        super().__init__()
        self.ticket = ticket


@dataclass(frozen=True, slots=True)
class _Load:
    """A strong load of a scalar: how lanes execute it, and how to find what they wait for."""

    step: Step
    fetch: Fetch
    """Gives the address."""
    size: int
    rows: list[int]
    """The registers that it writes."""
    waits: FindWaits | None
    kept_waits: FindWait | None
    barrier_waits: FindBarrierWait | None
    early: ops.Load | None
    """What an early poll of a lone lane executes; ``None`` if no load here is one."""

    @property
    def may_be_lone(self) -> bool:
        """Whether it matters which lanes are the only ones of their CTA here."""
        return self.barrier_waits is not None or self.early is not None


@dataclass(slots=True)
class OthersSignal:
    """The watch on an execution in which the other clusters have stored what the executed ones wait for, and drawn the
    tickets before theirs. ``numbers`` are the numbers of the executed clusters. Without a ``ticket`` it raises
    ``TicketFound`` at the first draw, unless it is given which draws of each cluster are the ``last`` ones of all.
    """

    launch: Launch
    numbers: tuple[int, ...]
    ticket: KnownWord | None
    compiler: Compiler = field(init=False)
    kept: list[Kept] = field(default_factory=list)
    """The values in shared memory that lanes have waited for."""
    returned: Mapping[int, int] = field(default_factory=dict)
    """What early polls of lanes return; others fail."""
    early: list[EarlyPoll] = field(default_factory=list)
    compared: dict[int, set[int | None]] = field(default_factory=dict)
    """By lane, what the values of early polls have been compared with; ``None`` for what is not known."""
    last: tuple[frozenset[int], ...] | None = None
    returns: Sequence[tuple[int, Sequence[int | None]]] = ()
    """By executed cluster, a lane of it, and what loads of that which are not repeated are to return."""
    told: dict[int, dict[int, int | Sign | None]] = field(default_factory=dict)
    """By lane, what it is told by draws and looks."""
    signs_told: Sequence[Told] = ()
    """By executed cluster, what the thread that signals is told, by the place in its code: signs that it draws."""
    signs: set[int] = field(default_factory=set)
    """The words of atomics of whose results only the signs are asked."""
    seen: dict[int, list[int | None]] = field(default_factory=dict)
    """By lane, what loads that are not repeated have returned; ``None`` for what is not known."""
    drawn: dict[int, int] = field(default_factory=dict)
    """By lane, how often it has drawn."""
    words: dict[int, int] = field(default_factory=dict)
    """The words that are drawn from, and their sizes."""
    asked: dict[int, Span | None] = field(default_factory=dict)
    """The words of atomics that draw no number, and of whose results something may depend."""
    uses: CountUses | None = None
    """What is done with what is drawn, of one cluster."""

    @property
    def leaves_polls_out(self) -> bool:
        """Whether early polls are left out."""
        return self.last is None

    def restarted(self) -> Self:
        """The watch, at the beginning of an execution."""
        for record in (self.told, self.seen, self.drawn, self.words, self.asked, self.signs):
            record.clear()
        self.uses = CountUses() if self.last is not None and len(self.numbers) == 1 else None
        self.kept.clear()
        self.early.clear()
        self.compared.clear()
        return self

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the loads that may wait, and the atomics."""
        self.compiler = compiler
        out = list(steps) if self.uses is None else self.uses.instrument(compiler, steps)
        tests: dict[int, tuple[Unit, ptx.Operand]] = {}
        signs = {unit.start: find_sign_draws(unit.function) for unit in compiler.code.units}
        for at, statement, unit in statements(compiler):
            if statement.kind is Kind.LOAD and statement.opcode.is_strong:
                out[at] = self._load(unit, statement, at, out[at])
                if (test := find_early_test(unit.function, at - unit.start)) is not None:
                    tests[unit.start + test[0]] = unit, test[1]
            elif statement.kind is Kind.ATOMIC and compiler.is_needed(unit, statement):
                asks = self._ask_sign if at - unit.start in signs[unit.start] else self._draw
                out[at] = (asks if self.is_draw(statement) else self._note)(unit, statement, out[at])
        for at, (unit, other) in tests.items():
            out[at] = self._compare(unit, other, out[at])
        return out

    def is_draw(self, statement: ptx.Statement) -> bool:
        """Whether an atomic may draw a number."""
        return is_number(statement, "add")

    def _load(self, unit: Unit, statement: ptx.Statement, at: int, step: Step) -> Step:
        size = type_size(statement.opcode.type)
        if statement.opcode.vector != 1 or size > 8:
            return step
        op = operation_template(unit.function, statement)
        tested = find_early_test(unit.function, at - unit.start) is not None
        load = _Load(
            step,
            self.compiler.fetch(unit, statement.place),
            size,
            [unit.frame + r.index for r in statement.defs],
            find_waits(self.compiler, unit, at, size),
            find_kept_waits(self.compiler, unit, at - unit.start, size),
            find_barrier_waits(self.compiler, unit, at, size),
            op if tested and self.leaves_polls_out and isinstance(op, ops.Load) and op.scope in GRID_SCOPES else None,
        )
        guard = statement.guard

        def run(c: Cluster, mask: Mask) -> Mask | None:
            mine = mask if guard is None else _holds(self.compiler, unit, guard, mask)
            mine = mine & _is_shared_by_clusters(load.fetch, mask)
            rest, out = mask & ~mine, np.zeros_like(mask)
            if rest.any():
                out |= _continuing(step(c, rest))
            lone = lone_lanes(c, mine) if load.may_be_lone else []
            for some, wait in [(mine, None)] if load.waits is None else load.waits(mine):
                few = np.count_nonzero(some) <= len(self.numbers)  # a thread of each cluster
                for one in _each(some) if few or lone or wait is not None or load.kept_waits is not None else [some]:
                    out |= self._load_lanes(c, one, load, wait, lone)
            return out if out.any() else None

        return run

    def _load_lanes(
        self, c: Cluster, one: Mask, load: _Load, wait: AwaitedValue | None, lone: Sequence[int]
    ) -> Mask | bool:
        """Execute a load of lanes that wait for the same value, or for none, and make what they wait for true before.
        Returns those that continue behind it.
        """
        lane = np.flatnonzero(one)
        kept = load.kept_waits(c, int(lane[0])) if wait is None and load.kept_waits is not None else None
        if kept is not None:
            wait = kept[0]
        is_lone = lane[0] in lone
        if wait is None and load.barrier_waits is not None and is_lone and c.meetings.followed:
            around = load.barrier_waits(int(lane[0]))
            wait = None if around is None else around[0]
        if wait is None and load.early is not None and is_lone:
            self._poll_early(c, one, load.fetch, load.early, load.rows)
            return one
        if wait is None and len(lane) == 1 and len(load.rows) == 1:
            return _continuing(self._look(c, one, load.fetch, load.size, load.rows[0], load.step))
        if wait is None:
            return _continuing(load.step(c, one))
        address = to_generic(np.broadcast_to(load.fetch()[0], one.shape)[lane])
        _end_wait(c, address, load.size, lane, wait)
        out = _continuing(load.step(c, one))
        self.learn(load.rows, lane)
        if kept is not None:
            self.kept += kept[1]
            _make_wait(c, int(lane[0]), load.rows, wait)
        return out

    def _look(self, c: Cluster, one: Mask, fetch: Fetch, size: int, row: int, step: Step) -> Mask | None:
        """Let a lane load a word that is not awaited."""
        lane = np.flatnonzero(one)
        seen = self.seen.setdefault(int(lane[0]), [])
        cluster = int(c.lanes.cluster[lane[0]])
        if cluster < len(self.returns):
            place, values = self.returns[cluster]
            if lane[0] % (c.lanes.count // len(self.numbers)) == place and len(seen) < len(values):
                value = values[len(seen)]
                if value is not None:
                    address = to_generic(np.broadcast_to(fetch()[0], one.shape)[lane])
                    c.store.save(address, size, lane, np.array([value], np.uint64), np.zeros(1, np.uint8))
        done = step(c, one)
        unknown = c.lanes.quality[row][lane[0]] & ~np.uint8(taint.ORDER)
        seen.append(None if unknown else int(c.lanes.values[row][lane[0]]) & (1 << 8 * size) - 1)
        return done

    def _poll_early(self, c: Cluster, one: Mask, fetch: Fetch, op: ops.Load, rows: list[int]) -> None:
        """Leave the early poll of a lane out: it fails, unless it is to return something else."""
        lane, size = int(np.flatnonzero(one)[0]), type_size(op.type)
        address, unknown = fetch_lanes(fetch, one, np.array([lane]))
        if unknown[0]:
            raise NotReducible("an address is not known", c.span)
        at, place = int(to_generic(address)[0]), len(c.recorded.code[lane])
        self.early.append(EarlyPoll(lane, at, size, place, op.sem == "acquire", c.span))
        for row in rows:
            c.lanes.values[row][lane] = self.returned.get(lane, FAILS) & (1 << 8 * size) - 1
            c.lanes.quality[row][lane] = 0
        self.learn(rows, np.array([lane]))

    def _compare(self, unit: Unit, other: ptx.Operand, step: Step) -> Step:
        """Record what lanes compare with at the place where values of early polls are compared."""
        fetch = self.compiler.fetch(unit, other)

        def run(c: Cluster, mask: Mask) -> Mask | None:
            for lane in {poll.lane for poll in self.early if mask[poll.lane]}:
                value, unknown = fetch_lanes(fetch, mask, np.array([lane]))
                self.compared.setdefault(lane, set()).add(None if unknown[0] else int(value[0]))
            return step(c, mask)

        return run

    def learn(self, rows: list[int], lane: Numbers) -> None:
        """These registers of a lane hold what was waited for, or what an early poll returned."""

    def learn_draw(self, rows: list[int], lane: Numbers) -> None:
        """These registers of a lane hold a number that it was handed out, as its choice says."""

    def _draw(self, unit: Unit, statement: ptx.Statement, step: Step) -> Step:
        size = type_size(statement.opcode.type)
        fetch = self.compiler.fetch(unit, statement.place)
        rows = [unit.frame + r.index for r in statement.defs]

        def run(c: Cluster, mask: Mask) -> Mask | None:
            mine = self.compiler.guarded(unit, statement.guard, mask)
            for one in _each(mine):
                lane = np.flatnonzero(one)
                address = to_generic(np.broadcast_to(fetch()[0], mask.shape)[lane])
                handed_out = self._hand_out(c, address, size, lane)
                step(c, one)
                if handed_out:
                    self.learn_draw(rows, lane)
                elif self.ticket is None or int(address[0]) != self.ticket.address:
                    self.asked.setdefault(int(address[0]), statement.span)
                if self.uses is not None:
                    self.uses.certain = False
            rest = mask & ~mine
            if rest.any():
                step(c, rest)
            return mask

        return run

    def _ask_sign(self, unit: Unit, statement: ptx.Statement, step: Step) -> Step:
        """An addition of whose result only the sign is asked: it is as in the execution that is followed. That it is
        the same in all is for the order of signals to show.
        """
        size = type_size(statement.opcode.type)
        fetch = self.compiler.fetch(unit, statement.place)
        row = unit.frame + statement.defs[0].index

        def run(c: Cluster, mask: Mask) -> Mask | None:
            mine = self.compiler.guarded(unit, statement.guard, mask)
            for one in _each(mine):
                lane = np.flatnonzero(one)
                place = len(c.recorded.code[lane[0]])
                address = to_generic(np.broadcast_to(fetch()[0], mask.shape)[lane])
                self.signs.add(int(address[0]))
                known = self.signs_told[int(c.lanes.cluster[lane[0]])].get(place) if self.signs_told else None
                if isinstance(known, Sign):
                    held = np.array([int(known.is_set) << 8 * size - 1], np.uint64)
                    c.store.save(address, size, lane, held, np.zeros(1, np.uint8))
                step(c, one)
                if c.lanes.quality[row][lane[0]] & ~np.uint8(taint.ORDER):
                    raise NotReducible(LEARNED, statement.span)
                drawn = int(c.lanes.values[row][lane[0]])
                self.told.setdefault(int(lane[0]), {})[place] = Sign(bool(drawn >> 8 * size - 1 & 1))
            rest = mask & ~mine
            if rest.any():
                step(c, rest)
            return mask

        return run

    def _note(self, unit: Unit, statement: ptx.Statement, step: Step) -> Step:
        fetch = self.compiler.fetch(unit, statement.place)

        def before(c: Cluster, mine: Mask) -> None:
            del c
            found = to_generic(np.broadcast_to(fetch()[0], mine.shape)[mine])
            self.asked |= dict.fromkeys(found.tolist(), statement.span)

        return with_action(self.compiler, unit, statement, before, step)

    def _hand_out(self, c: Cluster, address: Word, size: int, lane: Numbers) -> bool:
        """Let a lane draw the number of its cluster, or the first or last one of all; returns whether it was told which
        of these.
        """
        cluster = int(c.lanes.cluster[lane[0]])
        if self.last is not None:
            found = known_word(self.compiler.places, int(address[0]), size)
            if found is None:
                return False
            number, count = self.drawn.get(int(lane[0]), 0), len(clusters_of(self.launch))
            is_last = number in self.last[cluster]
            drawn = found.first + (count - 1 if is_last else 0)
            c.store.save(address, size, lane, np.array([drawn], np.uint64), np.zeros(1, np.uint8))
            place = len(c.recorded.code[lane[0]])
            self.told.setdefault(int(lane[0]), {})[place] = drawn + 1 if is_last else None
            self.drawn[int(lane[0])] = number + 1
            self.words[found.address] = size
            if self.uses is not None:
                self.uses.certain = is_last
            return True
        if self.ticket is None:
            found = known_word(self.compiler.places, int(address[0]), size)
            if found is not None:
                raise TicketFound(found)
        elif int(address[0]) == self.ticket.address and size == self.ticket.size:
            drawn = self.ticket.first + self.numbers[cluster]
            c.store.save(address, size, lane, np.array([drawn], np.uint64), np.zeros(1, np.uint8))
        return False


def _holds(k: Compiler, unit: Unit, guard: ptx.Guard, mask: Mask) -> Mask:
    """The lanes for which a guard is sure to hold."""
    return np.asarray(k.guarded(unit, guard, mask) & (k.lanes.quality[unit.frame + guard.register.index] == 0))


def _is_shared_by_clusters(fetch: Fetch, mask: Mask) -> Mask:
    """The lanes whose address is not in shared memory: who waits there waits for a thread of its own cluster, which is
    executed.
    """
    at = to_generic(np.broadcast_to(fetch()[0], mask.shape))
    return np.asarray((at >= GLOBAL_BASE) & (at < SHARED_BASE))


def _continuing(lanes: Mask | None) -> Mask | bool:
    """The lanes that continue at the next instruction; none if a step has set where each continues."""
    return False if lanes is None else lanes


def _each(mask: Mask) -> Iterator[Mask]:
    """The lanes of a mask, one by one: two clusters may wait for different values of a word at the same time."""
    for lane in np.flatnonzero(mask).tolist():
        one = np.zeros_like(mask)
        one[lane] = True
        yield one


def is_number(statement: ptx.Statement, *operations: str) -> bool:
    """Whether an atomic is one of these operations, of an integer of 32 or 64 bits."""
    opcode = statement.opcode
    return opcode.has(*operations) and opcode.vector == 1 and opcode.type[0] in "us" and opcode.type[1:] in ("32", "64")


def _end_wait(c: Cluster, address: Word, size: int, lane: Numbers, wait: AwaitedValue) -> None:
    """Store what a lane waits for."""
    held, unknown = c.store.load(address, size, lane)
    top = 1 << type_bits(wait.type)
    if unknown[0] or not wait.holds(int(held[0])):
        for value in (wait.right, wait.right + 1, wait.right - 1):
            if wait.holds(value % top):
                c.store.save(address, size, lane, np.array([value % top], np.uint64), np.zeros(1, np.uint8))
                return


def _make_wait(c: Cluster, lane: int, rows: list[int], wait: AwaitedValue) -> None:
    """Make the load that a lane has done last a wait."""
    code = c.recorded.code[lane]
    load = code[-1]
    assert isinstance(load, ops.Load)
    code[-1] = c.recorded.intern(("kept", id(load), wait), lambda: await_load(load, wait, load.address))
    c.recorded.loaded.pop((lane, len(code) - 1), None)
    for row in rows:
        c.lanes.quality[row][lane] &= ~np.uint8(taint.ORDER)
