"""Polling loops: loops that only repeat a poll or a load until it succeeds, however they are spelled.

``mcheck.ir.spin_loops`` says why one iteration stands for any number of them, and finds the way from a failed attempt
back to it. What a module needs besides: which values end a loop around a load, which is found out by trying some
(``find_awaited``), and whether something after the loop depends on what failed iterations left in registers
(``PollingLoop.is_noticed``). So the state after the loop is the same however often it failed, but for registers that
nothing depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.lane_arithmetic import divides_by_zero, lane_function, type_bits
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir.expr import apply_binary
from mcheck.ir.spin_loops import COMPARISONS, NEGATED, SWAPPED, Computation, SpinLoop, Step
from mcheck.isa.kinds import JUMPS, Kind
from mcheck.simt.execution.traps import find_trap

LOOKAHEAD = 96
"""Instructions after a poll that are analysed."""
QUIET = frozenset((Kind.SLEEP, Kind.EVENT))
LEAVING_JUMPS = JUMPS - {Kind.TRAP}

Known = dict[int, int]


MAX_PLACES = 20_000
"""Places after a loop that are searched for a use of what it leaves in registers."""


def is_spin_loop(function: ptx.Function, at: int) -> bool:
    """Whether the poll of an mbarrier at ``at`` is repeated as long as its answer is false, and to no other effect. A
    loop that follows another poll of the same phase counts as one with it.
    """
    statement = function.body[at]
    if statement.guard is not None:
        return False
    answer = {r.index for r in statement.defs}
    loop = PollingLoop(function, at)
    return loop.returns(dict.fromkeys(answer, 0)) and not loop.is_noticed([dict.fromkeys(answer, 1)])


@dataclass(frozen=True, slots=True)
class AwaitedValue:
    """A load that is repeated until its value compares with ``right``, both of the integer type ``type``. ``told`` says
    that the thread learns nothing else of the value.
    """

    operator: str
    right: int
    type: str
    condition_only: bool

    def accepts(self, value: int) -> bool:
        """Whether this value ends the loop."""
        return bool(apply_binary(self.operator, as_number(value, self.type), self.right))


@dataclass(frozen=True, slots=True)
class ValueTest:
    """A comparison of what a poll has returned with ``right``, both of the integer type ``type``."""

    operator: str
    right: int
    type: str

    @property
    def examples(self) -> list[int]:
        """Values, as bits, that show which ones end a loop: those around ``right`` and the least and greatest ones."""
        top = (1 << type_bits(self.type)) - 1
        return sorted({(self.right + d) & top for d in (-1, 0, 1)} | {0, 1, top})

    def holds(self, value: int) -> bool:
        """Whether the comparison holds for this value."""
        return bool(apply_binary(self.operator, as_number(value, self.type), self.right))

    def ending_result(self, back: Mapping[int, bool]) -> bool | None:
        """The result of the comparison that ends the loop, given which examples lead back; ``None`` if that is not what
        decides.
        """
        if len(set(back.values())) < 2:
            return None
        ends = {self.holds(v) is not again for v, again in back.items()}
        return ends.pop() if len(ends) == 1 else None

    def until(self, *, ends: bool, alone: bool) -> AwaitedValue:
        """The condition of a loop that this result of the comparison ends. ``alone``: nothing else reads the value."""
        operator = self.operator if ends else NEGATED[self.operator]
        return AwaitedValue(operator, self.right, self.type, condition_only=alone or operator == "==")


def read_test(
    statement: ptx.Statement, target: ptx.Operand, value: Callable[[ptx.Operand], int | None]
) -> ValueTest | None:
    """What a comparison of ``target`` tests, if ``value`` knows the other operand."""
    left, right = statement.operands[1:3]
    other, kind = value(right if left == target else left), statement.opcode.type
    operator = COMPARISONS.get(statement.opcode.mode)
    if other is None or operator is None or kind[0] not in "bsu":
        return None
    return ValueTest(operator if left == target else SWAPPED[operator], as_number(other, kind), kind)


def find_tests(function: ptx.Function, at: int) -> list[int]:
    """The places, close after the load at ``at``, where its value is compared."""
    statement = function.body[at]
    target = statement.operands[0]
    if statement.guard is not None or not isinstance(target, ptx.Register):
        return []
    return [
        k
        for k in range(at + 1, min(at + LOOKAHEAD, len(function.body)))
        if (s := function.body[k]).kind is Kind.COMPARISON
        and len(s.opcode.parts) == 3
        and target in s.operands[1:]
        and find_fault(s) is None
    ]


SIGN_TESTS = frozenset((("gt", -1), ("ge", 0), ("lt", 0), ("le", -1)))
"""Comparisons that test the sign of a number."""


def find_sign_tests(function: ptx.Function, at: int) -> list[ptx.Operand]:
    """The operands with which the sign bit of what the load at ``at`` returns is compared, where nothing else reads it:
    by an exclusive or and a comparison of the result with 0, as in the grid barrier of cooperative groups.
    """
    target = function.body[at].operands[0]
    if function.body[at].guard is not None or not isinstance(target, ptx.Register):
        return []
    found = []
    end = min(at + LOOKAHEAD, len(function.body))
    for k in range(at + 1, end):
        made = function.body[k]
        if made.opcode.parts != ("xor", "b32") or made.guard is not None or find_fault(made):
            continue
        result, left, right = made.operands
        if target not in (left, right) or left == right or not isinstance(result, ptx.Register):
            continue
        for j in range(k + 1, end):
            test = function.body[j]
            if test.kind is not Kind.COMPARISON or test.opcode.parts[2:] != ("s32",) or find_fault(test):
                continue
            if test.operands[1] != result or (test.opcode.mode, _signed(test.operands[2])) not in SIGN_TESTS:
                continue
            if reads_only_at(function, target, k, at) and reads_only_at(function, result, j, k):
                found.append(right if left == target else left)
    return found


def _signed(operand: ptx.Operand) -> int:
    return as_number(operand.value, "s32") if isinstance(operand, ptx.Immediate) else 1


def _find_awaited_sign(
    loop: PollingLoop, value: Callable[[ptx.Operand], int | None], given: Known
) -> AwaitedValue | None:
    """The condition of a loop that repeats a load until its sign bit is another one, or the same."""
    target = loop.poll.operands[0]
    assert isinstance(target, ptx.Register)
    top = 1 << 31
    for operand in find_sign_tests(loop.function, loop.at):
        other = value(operand)
        if other is None:
            continue
        env = {r.index: other for r in operand_registers(operand)}
        loop.compare_with(env)
        ways = {v: {**given, **env, target.index: v} for v in (0, 1, top - 1, top, top + 1, 2 * top - 1)}
        back = {v: loop.returns(known) for v, known in ways.items()}
        again = {v >= top: returns for v, returns in back.items()}
        if again[False] is again[True] or any(returns is not again[v >= top] for v, returns in back.items()):
            continue
        if not loop.is_noticed(known for v, known in ways.items() if not back[v]):
            return AwaitedValue(">=" if again[True] else "<", 0, "s32", condition_only=True)
    return None


def find_awaited(function: ptx.Function, at: int, value: Callable[[ptx.Operand], int | None]) -> AwaitedValue | None:
    """The condition that the load, or the atomic, at ``at`` is repeated for, with nothing changed but registers;
    ``value`` gives what operands hold now.
    """
    statement = function.body[at]
    target = statement.operands[0]
    given = {
        r.index: v
        for o in statement.operands[1:]
        for r in operand_registers(o)
        if r == o and (v := value(o)) is not None
    }
    loop = PollingLoop(function, at)
    for place in find_tests(function, at):
        statement = function.body[place]
        test = read_test(statement, target, value)
        if test is None or not isinstance(target, ptx.Register):
            continue
        env = {
            r.index: v
            for o in statement.operands[1:3]
            if o != target
            for r in operand_registers(o)
            if (v := value(o)) is not None
        }
        loop.compare_with(env)
        back = {v: loop.returns({**given, **env, target.index: v}) for v in test.examples}
        examples = {test.holds(v): v for v in test.examples}
        fails = {test.holds(v) for v in test.examples if back[v]}
        if not _decides_alone(loop, place, {**given, **env}, examples, fails):
            continue
        alone = _only_reader(function, target, place)
        if len(examples) < 2 and not fails:  # no value fails, and nothing is repeated
            return test.until(ends=True in examples, alone=alone)
        ends = test.ending_result(back)
        if ends is not None:
            return test.until(ends=ends, alone=alone)
    return _find_awaited_sign(loop, value, given)


def _decides_alone(
    loop: PollingLoop, place: int, known: Known, examples: Mapping[bool, int], fails: Collection[bool]
) -> bool:
    """Whether the result of the test at ``place`` alone decides if the load is repeated, and nothing else is noticed of
    failed iterations: for each result ``examples`` has a value, and those in ``fails`` repeat it, whatever it returns.
    """
    target = loop.poll.operands[0]
    assert isinstance(target, ptx.Register)
    if may_change(loop.function, target, loop.at + 1, place):
        return False
    unknown = {r: v for r, v in known.items() if r != target.index}
    left: AbstractSet[int] | None = frozenset()
    for result, value in sorted(examples.items(), key=lambda one: one[0] not in fails):
        given = loop.with_test(place, value)
        if result in fails:
            if not given.returns(unknown):
                return False
            left = given.left_behind()
            if left is None:
                return False
        else:
            if given.may_return(unknown) and not reads_only_at(loop.function, target, place, loop.at):
                return False
            if given.is_noticed([unknown], left):
                return False
    return True


def as_number(value: int, kind: str) -> int:
    """The number that these bits are in a type."""
    size = type_bits(kind)
    value &= (1 << size) - 1
    return value - (1 << size) if kind[0] == "s" and value >> size - 1 else value


def may_change(function: ptx.Function, register: ptx.Register, since: int, place: int) -> bool:
    """Whether an instruction on a way from one place to another may write a register."""
    todo, known = [since], {place}
    while todo:
        k = todo.pop()
        if k in known or k >= len(function.body):
            continue
        known.add(k)
        statement = function.body[k]
        if register in statement.defs or statement.kind in (Kind.INDEXED_BRANCH, Kind.CALL):
            return True
        todo += places_after(function, k)
    return False


def places_after(function: ptx.Function, k: int) -> list[int]:
    """The places that may come after ``k``, which is no indexed branch."""
    statement = function.body[k]
    places = []
    if statement.kind is Kind.BRANCH:
        label = statement.operands[0]
        assert isinstance(label, ptx.Label)
        places.append(function.labels[label.name])
    if statement.guard is not None or statement.kind not in LEAVING_JUMPS:
        places.append(k + 1)
    return places


def _only_reader(function: ptx.Function, register: ptx.Register, place: int) -> bool:
    """Whether only the test at ``place`` reads what a register holds there, before it is overwritten."""
    return reads_only_at(function, register, place, place)


def reads_only_at(function: ptx.Function, register: ptx.Register, place: int, start: int) -> bool:
    """Whether only the test at ``place`` reads what a register holds after ``start``, before it is overwritten."""
    todo, known = [start + 1, place + 1], {place}
    while todo:
        k = todo.pop()
        if k in known or k >= len(function.body):
            continue
        known.add(k)
        statement = function.body[k]
        if register in statement.uses:
            return False
        if statement.kind in (Kind.INDEXED_BRANCH, Kind.CALL) and any(
            register in s.uses for j, s in enumerate(function.body) if j != place
        ):
            return False  # its targets and arguments are not analysed
        if statement.guard is not None or register not in statement.defs:
            todo += places_after(function, k)
    return True


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
        if kind is Kind.MBARRIER_WAIT and guard is None and statement.operands[1:] == self.poll.operands[1:]:
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
