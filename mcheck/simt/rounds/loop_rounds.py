"""Loops of which most rounds are not executed: each does what the one before it did, at other addresses.

*When.* Some lanes come back to the head of a loop together. Two of its rounds are executed; in the second one every
register is followed as a function of the number of rounds to come. The next rounds need not be executed if in it

1. only instructions were executed that compute, that access global memory by weak loads and stores (``_is_simple``), or
   that branch within the loop: nothing that synchronises, is asynchronous, strong or volatile, or exchanges values
   between lanes;
2. every guard and every address is known and affine in the number of the round, no address by a step that lanes differ
   in, and nothing that the loop reads from memory is known: so no value that decides anything is one that the loop, or
   another thread, may have written;
3. every register that is read in a round before it is written has grown by its step, or is unknown as before: so the
   round after it finds what it found, one step further, and by induction so does each of those that follow;
4. for so many rounds each guard has the result that it has in this one, each address stays in the object in which it
   is, and lanes write to different places.

*What is left.* The rounds up to the last but one of them are left out: the registers of 3. are set to what they are
then, and the accesses are kept as ``RepeatedAccess``, and in the footprint of the cluster. The last one is executed,
which leaves every other register as it would be, and the code behind the loop is executed as ever. In the footprint,
what the coordinates of a cluster have to satisfy is affine in the number of the round as well, and is required by the
rounds at both ends, hence by those between them (``_is_followed_by_watch``).

The accesses that were left out are not in the program of the cluster. That is right where they conflict with no access
of another lane, which is known at the end (``kept_apart``); if some may, the path is followed again, round by round.
So it is where values that other threads write decide: the paths then name accesses by their place in the code of a lane
(``mcheck.simt.branch_paths``), which how many rounds are left out must not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.lane_arithmetic import low_mask, type_bits
from mcheck.frontend.ptx.memory_layout import GAP
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE, Instance
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import GRID_DEPENDENCIES, PREFETCHES, Kind
from mcheck.isa.opcode import GENERIC
from mcheck.simt.execution.cluster import RUNNABLE, Cluster
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import jump_target, statements
from mcheck.simt.grid.footprints.footprint import AddedAccess
from mcheck.simt.grid.footprints.watched_execution import GridWatch
from mcheck.simt.parametric.affine import Numbers
from mcheck.simt.rounds.repeated_access import RepeatedAccess
from mcheck.simt.rounds.round_forms import RoundForms, register_widths, steps_between

Indices = NDArray[np.int64]
FIRST_VISITS = 8
"""Visits of a head before the first attempt; after each attempt without success the wait is twice as long."""
MOST_VISITS = 4_096
LEAST_ROUNDS = 16
"""As many rounds have to follow."""
MANY_ROUNDS = 1 << 40
"""As many follow only in a loop without an end."""
MOST_STATEMENTS = 2_000
"""The instructions of a round, at most."""
GLOBAL = GLOBAL_BASE + GAP
EVEN = frozenset(("mov", "cvta", "cvt", "add", "sub", "neg", "mul", "mad", "shl", "setp"))
"""Computations of which the conditions on the coordinates are affine in the operands."""
IDLE = PREFETCHES - {Kind.BULK_PREFETCH}


@dataclass(slots=True)
class _Attempts:
    """How often a head was visited, when the next attempt is due, and how long the one after it waits."""

    due: int
    wait: int
    visits: int = 0


@dataclass(frozen=True, slots=True)
class _Access:
    """An access of a round: its addresses, the step of these, and what it added to the footprint."""

    unit: Unit
    statement: ptx.Statement
    lanes: Indices
    starts: Indices
    stride: int
    added: tuple[AddedAccess, ...]

    @property
    def size(self) -> int:
        """The bytes that a lane accesses."""
        given = self.statement.operands[0 if self.statement.kind is Kind.LOAD else 1]
        items = len(given.items) if isinstance(given, ptx.Vector) else 1
        return type_size(self.statement.opcode.type) * items


class _Stopped(Exception):
    """The rounds that follow have to be executed."""


@dataclass(slots=True)
class LoopRounds:
    """The loops of one execution. ``simple`` are the instructions that rounds may consist of, by place."""

    compiler: Compiler
    watch: GridWatch | None
    simple: dict[int, tuple[Unit, ptx.Statement]] | None = None
    objects: Sequence[Instance] = ()
    bases: Indices = field(init=False)
    widths: Indices = field(init=False)
    attempts: dict[int, _Attempts] = field(default_factory=dict)
    is_busy: bool = False
    left_out: int = 0
    """Rounds of lanes that were not executed."""

    def _prepare(self) -> dict[int, tuple[Unit, ptx.Statement]]:
        """What all attempts need, computed at the first one."""
        k = self.compiler
        found = list(statements(k))
        waits = any(s.kind in GRID_DEPENDENCIES for _, s, _ in found)
        self.simple = {} if waits or k.code.stores_named else {at: (u, s) for at, s, u in found if _is_simple(k, u, s)}
        self.objects = [
            i for i in k.places.memory.instances
            if i.cta is None and GLOBAL <= i.base < SHARED_BASE and i.base == i.physical
            and not i.object.tensor_map and i.object.earlier_grid is None
        ]  # fmt: skip
        self.bases = np.array([i.base for i in self.objects], np.int64)
        self.widths = register_widths(k)
        return self.simple

    def visit(self, c: Cluster, mask: Mask, head: int, back: int) -> None:
        """Lanes have come back to the ``head`` of a loop, from a branch at ``back``: leave out what can be."""
        if self.is_busy:
            return
        attempts = self.attempts.setdefault(head, _Attempts(FIRST_VISITS, FIRST_VISITS))
        attempts.visits += 1
        if attempts.visits < attempts.due:
            return
        self.is_busy = True
        at, span = c.current_pc, c.span
        try:
            found = self._attempt(c, mask, head, back)
        finally:
            self.is_busy = False
            c.current_pc, c.span = at, span
        attempts.wait = FIRST_VISITS if found else min(2 * attempts.wait, MOST_VISITS)
        attempts.due = attempts.visits + attempts.wait

    def _attempt(self, c: Cluster, mask: Mask, head: int, back: int) -> bool:
        simple = self._prepare() if self.simple is None else self.simple
        if not all(at in simple for at in range(head, back + 1)) or _is_special(c):
            return False
        lanes = np.flatnonzero(mask)
        first = c.lanes.values[:, lanes]
        if not self._execute(c, mask, head, back, None):
            return False
        before, quality = c.lanes.values[:, lanes], c.lanes.quality[:, lanes]
        numbers = Numbers(MANY_ROUNDS, LEAST_ROUNDS, 0)
        steps = steps_between(first, before, self.widths)
        forms = RoundForms(self.compiler, numbers, lanes, steps, self.widths)
        round_ = _Round(self, c, forms)
        watched = None
        if self.watch is not None:
            watched, self.watch.footprint.latest = self.watch.forms_of(lanes), []
        returned = self._execute(c, mask, head, back, round_)
        if self.watch is not None:
            self.watch.footprint.latest = None
        if not returned or round_.stopped:
            return False
        if numbers.most >= MANY_ROUNDS or not forms.goes_on(before, quality):
            return False
        if self.watch and watched and not self.watch.keeps_forms(watched, forms.carried & forms.slopes.keys(), lanes):
            return False
        return self._leave_out(c, round_, numbers.most - 1)

    def _execute(self, c: Cluster, mask: Mask, head: int, back: int, round_: _Round | None) -> bool:
        """Execute a round; returns whether all lanes come to the head again, and by no other way than all of them."""
        at = head
        for _ in range(MOST_STATEMENTS):
            c.current_pc = at
            if round_ is not None:
                round_.before(at, mask)
            rest = c.steps[at](c, mask)
            c.step_count += 1
            if rest is None:
                where = np.unique(c.pc[mask])
                if len(where) > 1 or (c.status[mask] != RUNNABLE).any():
                    return False
                at = int(where[0])
            else:
                at += 1
                c.pc[rest] = at
                if not np.array_equal(rest, mask):
                    return False
            if round_ is not None:
                round_.after()
            if rest is None and at == head:
                return True
            if not head <= at <= back:
                return False
        return False

    def _leave_out(self, c: Cluster, round_: _Round, count: int) -> bool:
        """Leave out ``count`` rounds, each like the last one."""
        if count < LEAST_ROUNDS - 1:
            return False
        repeated = [self._repeat(c, one, count) for one in round_.accesses]
        if not all(repeated):
            return False
        forms, values, lanes = round_.forms, c.lanes.values, round_.forms.lanes
        for row in forms.carried & forms.slopes.keys():
            sure = c.lanes.quality[row][lanes] == 0
            grown = values[row][lanes] + (forms.steps[row] * np.int64(count)).astype(np.uint64)
            values[row][lanes[sure]] = (grown & low_mask(int(self.widths[row])))[sure]
        for access, one in zip(round_.accesses, repeated, strict=True):
            assert one is not None
            c.recorded.repeated_accesses.append(one)
            c.recorded.operations += count * len(one.lanes)
            for added in access.added:
                added.repeat(access.stride, count)
        self.left_out += count * len(lanes)
        return True

    def _repeat(self, c: Cluster, access: _Access, count: int) -> RepeatedAccess | None:
        """The access in the rounds that follow; ``None`` if it may be another one there."""
        statement, size = access.statement, access.size
        number = np.searchsorted(self.bases, access.starts, side="right") - 1
        if (number < 0).any() or access.stride % size or abs(access.stride) * count >= SHARED_BASE:
            return None
        nc = statement.opcode.has("nc")
        out = RepeatedAccess(
            access.lanes, access.starts + access.stride, access.stride, count, size,
            statement.kind is Kind.STORE, nc, statement.span,
        )  # fmt: skip
        low, high = out.hulls()
        ends = np.array([i.base + i.object.size for i in self.objects], np.int64)
        if (low < self.bases[number]).any() or (high > ends[number]).any():
            return None
        if out.writes and len(np.unique(access.starts)) < len(access.starts):
            return None
        matters = self.compiler.code.stores_decide if out.writes else self.compiler.is_needed(access.unit, statement)
        if matters and any(
            ((low < base + len(given[0])) & (high > base)).any()
            for base, given in zip(c.store.bases, c.store.given, strict=True)
        ):
            return None
        return out


@dataclass(slots=True)
class _Round:
    """The round that the next ones are compared with."""

    loops: LoopRounds
    c: Cluster
    forms: RoundForms
    accesses: list[_Access] = field(default_factory=list)
    stopped: bool = False
    current: tuple[Unit, ptx.Statement, Indices, Indices, int] | None = None
    """The access that is being executed."""

    def before(self, at: int, mask: Mask) -> None:
        """Follow an instruction that is about to be executed."""
        if self.stopped:
            return
        try:
            assert self.loops.simple is not None
            self._follow(*self.loops.simple[at], mask)
        except _Stopped:
            self.stopped = True

    def after(self) -> None:
        """The instruction has been executed."""
        watch = self.loops.watch
        added = () if watch is None else watch.footprint.take_added()
        if self.current is not None and not self.stopped:
            self.accesses.append(_Access(*self.current, added))
        self.current = None

    def _follow(self, unit: Unit, statement: ptx.Statement, mask: Mask) -> None:
        k, forms = self.loops.compiler, self.forms
        mine = np.ones(len(forms.lanes), np.bool_)
        computes = statement.only_computes
        if computes and not k.is_needed(unit, statement):
            return
        for row in k.register_rows(unit, statement.uses):
            if (k.lanes.quality[row][forms.lanes] & ~np.uint8(taint.UNKNOWN_NAMELESS)).any():
                raise _Stopped  # another thread, or the order of the threads, may decide it
        if statement.guard is not None:
            row = unit.frame + statement.guard.register.index
            forms.note_read(row, mine)
            if forms.form(row)[1].any() or k.lanes.quality[row][forms.lanes].any():
                if not computes:
                    raise _Stopped
                forms.set(k.register_rows(unit, statement.defs), mine, None)
                return
            mine = k.guarded(unit, statement.guard, mask)[forms.lanes]
        if self.loops.watch is not None:
            self._require_followed(self.loops.watch, unit, statement, mask)
        if statement.kind is Kind.BRANCH or statement.kind in IDLE or not mine.any():
            return
        if computes:
            forms.compute(unit, statement, mine)
            return
        self._access(unit, statement, mine)

    def _access(self, unit: Unit, statement: ptx.Statement, mine: Mask) -> None:
        k, c = self.loops.compiler, self.c
        place = statement.place
        value = self.forms.value(unit, place, k.fetch(unit, place), mine)
        if value.bad.any():
            raise _Stopped
        loads = statement.kind is Kind.LOAD
        own = statement.opcode.space in ("param", "const")
        if loads and k.is_needed(unit, statement):
            rows = k.register_rows(unit, statement.defs)
            if own:
                if value.slopes.any():
                    raise _Stopped
                zero = np.zeros_like(value.slopes)
                self.forms.set(rows, mine, type(value)(value.base, zero, value.bad))
            else:
                if c.lock_taken or c.strong_writes.disordered or k.code.atomics_decide:
                    raise _Stopped
                self.forms.set(rows, mine, None)
        if own:
            return
        if not loads and k.code.stores_decide and c.strong_writes.latest:
            raise _Stopped
        steps = np.unique(value.slopes[0])
        starts = value.base.astype(np.int64)
        if len(steps) != 1 or ((starts < GLOBAL) | (starts >= SHARED_BASE)).any():
            raise _Stopped
        self.current = unit, statement, self.forms.lanes[mine], starts, int(steps[0])

    def _require_followed(self, watch: GridWatch, unit: Unit, statement: ptx.Statement, mask: Mask) -> None:
        """Stop where what the coordinates have to satisfy may not be affine in the number of the round."""
        if not watch.is_even(unit, statement, EVEN, mask):
            raise _Stopped


def _is_simple(k: Compiler, unit: Unit, statement: ptx.Statement) -> bool:
    """Whether rounds with this instruction may be left out."""
    if find_fault(statement) is not None:
        return False
    rows = k.register_rows(unit, (*statement.uses, *statement.defs))
    if not k.in_flight.isdisjoint(rows):
        return False
    opcode, kind = statement.opcode, statement.kind
    if kind is Kind.BRANCH:
        return isinstance(statement.operands[0], ptx.Label) and jump_target(unit, statement) >= 0
    if statement.only_computes:
        return kind is not Kind.ACTIVE_MASK and kind is not Kind.CANCEL_QUERY
    if kind in IDLE:
        return True
    if kind not in (Kind.LOAD, Kind.STORE) or opcode.is_strong or opcode.has("volatile"):
        return False
    spaces = ("global", GENERIC, "param", "const") if kind is Kind.LOAD else ("global", GENERIC)
    return opcode.space in spaces and 0 < type_bits(opcode.type) <= 64


def _is_special(c: Cluster) -> bool:
    """Whether something is followed that an access, or the number of rounds, may matter to."""
    return bool(
        c.store.named or c.forced.wanted or c.looping or c.meetings.hands_on or c.meetings.receives
        or c.assumed_failures.by_lane or c.recorded.told_apart.held or c.meetings.waiting
    )  # fmt: skip
