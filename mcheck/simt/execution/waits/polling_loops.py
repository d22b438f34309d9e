"""Polling loops: loops that only repeat a poll or a load until it succeeds, however they are spelled.

``mcheck.ir.spin_loops`` says why one iteration stands for any number of them, and finds the way from a failed attempt
back to it. What a module needs besides: whether something after the loop depends on what failed iterations left in
registers (``PollingLoop.is_noticed``), and which values end a loop around a load
(``mcheck.simt.execution.waits.value_waits``). So the state after the loop is the same however often it failed, but for
registers that nothing depends on.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

import numpy as np

from mcheck.base.records import replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.lane_arithmetic import divides_by_zero, lane_function
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir.spin_loops import Computation, SpinLoop, Step
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.traps import find_trap

LOOKAHEAD = 96
"""Instructions after a poll that are analysed."""
QUIET = frozenset((Kind.SLEEP, Kind.EVENT))
Known = dict[int, int]
"""The values of registers, by index."""
MAX_PLACES = 20_000
"""Places after a loop that are searched for a use of what it leaves in registers."""


def is_spin_loop(function: ptx.Function, at: int) -> bool:
    """Whether the poll of an mbarrier at ``at`` is repeated as long as its answer is false, and to no other effect. A
    loop that follows another poll of the same phase counts as one with it, if both order the same.
    """
    statement = function.body[at]
    if statement.guard is not None:
        return False
    answer = {r.index for r in statement.defs}
    loop = PollingLoop(function, at)
    return loop.returns(dict.fromkeys(answer, 0)) and not loop.is_noticed([dict.fromkeys(answer, 1)])


class PollingLoop:
    """The loop around the poll, load or atomic at ``at``, if there is one."""

    def __init__(self, function: ptx.Function, at: int) -> None:
        self.function, self.at = function, at
        self.poll = function.body[at]
        self._operands = {r.index for o in self.poll.operands[1:] for r in operand_registers(o)}
        self.asked: AbstractSet[int] = self._operands
        self.unchanged: AbstractSet[int] = frozenset()
        """Registers that hold the same after every iteration, as the user of the loop has found out."""
        self._loop = SpinLoop(self, at, {r.index for r in self.poll.defs}, LOOKAHEAD)

    def compare_with(self, registers: Iterable[int]) -> None:
        """Take these registers for what the answer of the poll is compared with."""
        self.asked = self._operands | set(registers)

    def returns(self, known: Known) -> bool:
        """Whether a poll after which these registers are ``known`` is repeated, with nothing done but computation."""
        return self._loop.leads_back(known)

    def may_return(self, known: Known) -> bool:
        """Whether a poll after which these registers are ``known`` may be repeated, with nothing done in between."""
        return self._loop.may_lead_back(known)

    @property
    def changed(self) -> AbstractSet[int]:
        """The registers that were known after a poll and may hold another value when it is repeated."""
        return self._loop.changed

    def step(self, place: int, known: Known) -> Step[int] | None:
        """A step of a failed iteration (``mcheck.ir.spin_loops.Body``); traps end the thread."""
        function = self.function
        if place >= len(function.body):
            return None
        statement = function.body[place]
        if find_fault(statement) is not None:  # a mistake, if it is ever executed
            return None
        kind, guard = statement.kind, statement.guard
        targets = {r.index for r in statement.defs}
        if kind is Kind.MBARRIER_WAIT and guard is None and self._is_same_poll(statement):
            known |= dict.fromkeys(targets, 0)
            return Step((place + 1,), writes=targets, is_attempt=True)
        if kind is Kind.TRAP:
            return Step(() if guard is None else (place + 1,))
        if kind is Kind.BRANCH:
            label = statement.operands[0]
            assert isinstance(label, ptx.Label)
            taken, target = guard_holds(guard, known), function.labels[label.name]
            return Step((place + 1, target) if taken is None else (target if taken else place + 1,))
        if kind in QUIET:
            return Step((place + 1,))
        if not statement.only_computes:
            return Step(()) if find_trap(function, place) is not None else None
        _compute(statement, known)
        return Step((place + 1,), targets)

    def _is_same_poll(self, other: ptx.Statement) -> bool:
        """Whether another poll tests the same phase and orders as much if it succeeds."""
        one, same = self.poll, other.operands[1:] == self.poll.operands[1:]
        return same and (one.opcode.orders, one.opcode.scope) == (other.opcode.orders, other.opcode.scope)

    def computed_before(self, place: int) -> Iterable[Computation[int]]:
        """The computations directly before a place (``mcheck.ir.spin_loops.Body``)."""
        body, start, labels = self.function.body, place, set(self.function.labels.values())
        while start and start not in labels and body[start - 1].guard is None and body[start - 1].only_computes:
            start -= 1
        for statement in body[start:place]:
            special = any(isinstance(o, ptx.Special) for o in statement.operands)  # a clock, perhaps
            what = None if special else (statement.opcode, statement.operands[1:])
            reads, writes = statement.uses, statement.defs
            yield Computation(what, tuple(r.index for r in reads), tuple(r.index for r in writes))

    def with_test(self, place: int, value: int) -> PollingLoop:
        """The loop where the test at a place finds this value, whatever the poll returns."""
        target, body = self.poll.operands[0], list(self.function.body)
        operands = tuple(ptx.Immediate(value) if o == target else o for o in body[place].operands)
        body[place] = replace(body[place], operands=operands)
        made = PollingLoop(replace(self.function, body=tuple(body)), self.at)
        made.asked = self.asked
        return made

    def left_behind(self) -> AbstractSet[int] | None:
        """What failed iterations leave changed in registers; ``None`` if another object may be polled the next time."""
        return self._loop.left_behind()

    def is_noticed(self, ways: Iterable[Known], left_behind: AbstractSet[int] | None = None) -> bool:
        """Whether something after the loop depends on what failed iterations left in registers. ``ways`` are what is
        known after a poll that succeeds. A value that is only computed with is no such thing, nor is a trap.
        """
        ways = [*ways]
        left_behind = self.left_behind() if left_behind is None else left_behind
        if left_behind is None:  # another object may be polled the next time
            return True
        left_behind = left_behind - self.unchanged
        todo = [(self.at + 1, frozenset(left_behind), known, LOOKAHEAD) for known in ways]
        # When the poll is reached again, later, whatever else was known may have changed.
        told = self.asked | {r.index for r in self.poll.defs}
        later = {r: v for r, v in ways[0].items() if r in told} if len(ways) == 1 else {}
        seen = set()
        while todo:
            k, old, known, left = todo.pop()
            key = k, old, frozenset(known.items())
            if not old or k >= len(self.function.body) or key in seen:
                continue
            seen.add(key)
            statement = self.function.body[k]
            used = not old.isdisjoint(r.index for r in statement.uses)
            if len(seen) > MAX_PLACES or statement.kind is Kind.INDEXED_BRANCH:
                return True
            following = self._following(k, known, used=used)
            if following is None:
                return True
            targets = {r.index for r in statement.defs}
            if used:
                old |= targets
            elif statement.guard is None:
                old -= targets
            if k == self.at:
                known = later
            elif statement.only_computes and left:
                known = dict(known)
                _compute(statement, known)
            else:
                known = {r: v for r, v in known.items() if r not in targets} if left else {}
            todo += [(way, old, known, max(left - 1, 0)) for way in following]
        return False

    def _following(self, k: int, known: Known, *, used: bool) -> list[int] | None:
        """The places after ``k``; ``None`` if what is ``used`` there, something left behind, makes a difference."""
        statement = self.function.body[k]
        kind, guard = statement.kind, statement.guard
        if kind in (Kind.BRANCH, Kind.RETURN, Kind.EXIT):
            taken = guard_holds(guard, known)
            label = statement.operands[0] if kind is Kind.BRANCH else None
            target = self.function.labels[label.name] if isinstance(label, ptx.Label) else len(self.function.body)
            ways = [way for way, barred in ((target, taken is False), (k + 1, taken is True)) if not barred]
            if used and len(ways) > 1:
                ways = [way for way in ways if find_trap(self.function, way) is None]
            return ways if len(ways) < 2 or not used else None
        if not used or kind is Kind.TRAP or guard_holds(guard, known) is False:
            return [k + 1]
        return [k + 1] if statement.only_computes else None


def guard_holds(guard: ptx.Guard | None, known: Known) -> bool | None:
    """Whether a guard holds, ``None`` if that is unknown."""
    if guard is None:
        return True
    value = known.get(guard.register.index)
    return None if value is None else bool(value) is not guard.negated


def _compute(statement: ptx.Statement, known: Known) -> None:
    """Evaluate a computation on the known values."""
    targets = [r.index for r in statement.defs]
    goes = guard_holds(statement.guard, known)
    if goes is False:
        return
    sources = [known_value(o, known) for o in statement.operands[1:]]
    function = (lambda a: (a,)) if statement.kind is Kind.MOVE else lane_function(statement.opcode)
    results: tuple[np.ndarray, ...] = ()
    if goes and function is not None and all(s is not None for s in sources):
        given = [np.array([s & (1 << 64) - 1], np.uint64) for s in sources if s is not None]
        results = () if divides_by_zero(statement.opcode, given).any() else function(*given)
    for k, target in enumerate(targets):
        known.pop(target, None)
        if k < len(results):
            known[target] = int(results[k][0])


def known_value(operand: ptx.Operand, known: Known) -> int | None:
    """The value of an operand, if it is known."""
    match operand:
        case ptx.Immediate(value):
            return value
        case ptx.Register(_, _, index):
            return known.get(index)
        case ptx.Negated(register):
            found = known.get(register.index)
            return None if found is None else 1 - found
    return None
