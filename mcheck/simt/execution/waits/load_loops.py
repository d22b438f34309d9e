"""Loops that repeat several strong loads until tests of their values let the thread go on, and do nothing else:
``while (load(wants) == 1 && load(turn) == other) {}``.

Such a loop is recorded as it is, with its labels and branches, at its first load. So the engine, which knows loops
(``mcheck.engines.protocol.operations.control_flow``), follows every failed attempt, what it reads and what it orders,
and whether the loop ends; one path of the thread stands for any number of attempts. That holds if

* an iteration only loads words of known addresses by strong loads, and computes;
* its branches depend on comparisons of these values with known ones, and on values that no iteration changes;
* there is one place behind the loop, and nothing from there on reads what the loop leaves in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import NamedTuple, TypeGuard

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.ir import ops
from mcheck.ir.alu import wrap
from mcheck.ir.expr import Binary, Const, Reg
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import JUMPS, Kind
from mcheck.simt.execution.register_reads import is_read_from, places_after
from mcheck.simt.execution.waits.polling_loops import Known, PollingLoop
from mcheck.simt.execution.waits.value_tests import ValueTest, is_plain_test, read_test

MAX_PLACES = 96
"""Maximum number of statements of a loop."""
MAX_OPERATIONS = 64
"""Maximum number of operations that a loop is recorded as."""
HEAD, LEFT = "head", "left"
Make = Callable[[ptx.Statement, Mapping[int, int]], ops.Load | None]
"""The load of a statement, given the registers that the loop does not change; ``None`` if it cannot be followed."""


@dataclass(frozen=True, slots=True)
class LoopShape:
    """The statements of a loop around the load at ``at``, whatever the registers hold."""

    function: ptx.Function
    at: int
    places: frozenset[int]
    """Those from which the thread may come back to ``at`` with nothing but loads and computation in between."""
    loads: frozenset[int]
    left_at: int
    """The place behind the loop."""
    used: frozenset[int]
    """The registers that it reads and does not write."""


@dataclass(frozen=True, slots=True)
class LoadLoop:
    """A loop as one thread executes it: ``known`` are registers that it does not change."""

    shape: LoopShape
    known: Mapping[int, int]
    code: tuple[ops.Op, ...]
    """What is recorded; labels are ``HEAD``, ``LEFT`` and numbers."""

    def repeats(self, loaded: Mapping[int, int], at: int) -> bool:
        """Whether the thread is still in the loop after the load at ``at``, with what this iteration has ``loaded``."""
        loop, place, held = PollingLoop(self.shape.function, self.shape.at), at + 1, {**self.known, **loaded}
        for _ in range(MAX_PLACES):
            if place not in self.shape.places:
                return False
            if place in self.shape.loads:
                return True
            step = loop.step(place, held)
            if step is None or len(step.following) != 1:
                return True
            (place,) = step.following
        return True


def find_shape(function: ptx.Function, at: int) -> LoopShape | None:
    """The loop of several strong loads around the one at ``at``, if it is one."""
    if not _is_load(function.body[at]):
        return None
    places = _places_of_loop(function, at)
    loads = frozenset(k for k in places if function.body[k].kind is Kind.LOAD)
    if len(loads) < 2:
        return None
    left = {after for k in places for after in places_after(function, k) if after not in places}
    if len(left) != 1 or len(function.body) in left:
        return None
    (behind,) = left
    written = {r for k in places for r in function.body[k].defs}
    if any(is_read_from(function, register, behind) for register in written):
        return None
    read = {r.index for k in places for r in function.body[k].uses}
    return LoopShape(function, at, places, loads, behind, frozenset(read - {r.index for r in written}))


def _is_load(statement: ptx.Statement) -> bool:
    """Whether a statement is a strong load of one register."""
    return (
        statement.kind is Kind.LOAD
        and statement.guard is None
        and statement.opcode.is_strong
        and isinstance(statement.operands[0], ptx.Register)
        and find_fault(statement) is None
    )


def _is_quiet(statement: ptx.Statement) -> bool:
    """Whether no other thread notices a statement, but for what a strong load reads."""
    if find_fault(statement) is not None or statement.kind in JUMPS - {Kind.BRANCH}:
        return False
    plain = statement.only_computes or statement.kind in (Kind.BRANCH, Kind.SLEEP)
    return _is_load(statement) or plain


def _places_of_loop(function: ptx.Function, at: int) -> frozenset[int]:
    """The places on ways from the load at ``at`` back to it that do nothing but load and compute."""
    reached, todo = set[int](), [at]
    before: dict[int, set[int]] = {}
    while todo and len(reached) <= 2 * MAX_PLACES:
        k = todo.pop()
        if k in reached or k >= len(function.body) or not _is_quiet(function.body[k]):
            continue
        reached.add(k)
        for after in places_after(function, k):
            before.setdefault(after, set()).add(k)
            todo.append(after)
    if len(reached) > 2 * MAX_PLACES:
        return frozenset()
    found, todo = set[int](), [at]
    while todo:
        for k in before.get(todo.pop(), ()):
            if k not in found:
                found.add(k)
                todo.append(k)
    return frozenset(found) if at in found and len(found) <= MAX_PLACES else frozenset()


def write_loop(shape: LoopShape, known: Known, make: Make) -> LoadLoop | None:
    """The loop of a thread for which these registers are known; ``None`` if a branch of it depends on more."""
    writer = _Writer(shape, known, make)
    try:
        writer.write()
    except _NotFollowed:
        return None
    return LoadLoop(shape, known, tuple(_without_detours(writer.code)))


def _without_detours(code: Sequence[ops.Op]) -> list[ops.Op]:
    """The same code with branches that go where they lead at once, as the loop is written."""
    at = {op.name: k for k, op in enumerate(code) if isinstance(op, ops.Label)}

    def final(name: str) -> str:
        after = code[at[name] + 1] if at[name] + 1 < len(code) else None
        return after.target if after is not None and _is_jump(after) else name

    code = [replace(op, target=final(op.target)) if isinstance(op, ops.Branch) else op for op in code]
    targets = {op.target for op in code if isinstance(op, ops.Branch)} | {HEAD, LEFT}
    code = [op for op in code if not isinstance(op, ops.Label) or op.name in targets]
    code = [op for before, op in pairwise([None, *code]) if op is not None and not (_is_jump(before) and _is_jump(op))]
    leads_on = (
        _is_jump(op) and isinstance(after, ops.Label) and op.target == after.name for op, after in pairwise(code)
    )
    return [op for op, idle in zip(code, (*leads_on, False), strict=True) if not idle]


def _is_jump(op: ops.Op | None) -> TypeGuard[ops.Branch]:
    return isinstance(op, ops.Branch) and op.condition is None


def with_labels(code: tuple[ops.Op, ...], number: int) -> tuple[ops.Op, ...]:
    """The code of a loop with labels of its own: it is the one of this ``number`` in its thread."""
    out: list[ops.Op] = []
    for op in code:
        match op:
            case ops.Label(name=name):
                out.append(replace(op, name=f"{name}.{number}"))
            case ops.Branch(target=name):
                out.append(replace(op, target=f"{name}.{number}"))
            case _:
                out.append(op)
    return tuple(out)


class _NotFollowed(Exception):
    """The loop depends on more than is known."""


class _Held(NamedTuple):
    """What a register holds: the value of a load, whose operation is at a place in the code."""

    register: Reg
    place: int


@dataclass(slots=True)
class _Writer:
    """Writes the operations of a loop: a tree of tests, each of whose leaves repeats the loop or leaves it."""

    shape: LoopShape
    known: Known
    make: Make
    code: list[ops.Op] = field(default_factory=list)
    labels: int = 0

    def write(self) -> None:
        self._label(HEAD)
        self._load(self.shape.at, dict(self.known), {})
        self._label(LEFT)

    def _label(self, name: str) -> None:
        load = self.shape.function.body[self.shape.at]
        self.code.append(ops.Label(name=name, span=load.span, text=load.text))

    def _load(self, at: int, known: Known, held: Mapping[int, _Held]) -> None:
        statement = self.shape.function.body[at]
        made = self.make(statement, known)
        if made is None or len(self.code) > MAX_OPERATIONS:
            raise _NotFollowed
        register = Reg(f"spun{len(self.code)}")
        (target,) = statement.defs
        known.pop(target.index, None)
        held = {**held, target.index: _Held(register, len(self.code))}
        self.code.append(replace(made, dsts=(register,)))
        self._go_on(at + 1, known, held)

    def _go_on(self, place: int, known: Known, held: Mapping[int, _Held]) -> None:
        """Follow the way from a place to the next load, to a test, or to the end of the iteration."""
        body, loop = self.shape.function.body, PollingLoop(self.shape.function, self.shape.at)
        for _ in range(MAX_PLACES):
            if place == self.shape.at or place not in self.shape.places:
                self._branch(HEAD if place == self.shape.at else LEFT, None, body[self.shape.at])
                return
            statement = body[place]
            if statement.kind is Kind.LOAD:
                self._load(place, known, held)
                return
            test = self._test(statement, known, held)
            if test is not None:
                self._fork(statement, *test, place, known, held)
                return
            step = loop.step(place, known)
            if step is None or len(step.following) != 1:
                raise _NotFollowed
            held = {r: v for r, v in held.items() if r not in step.writes}
            (place,) = step.following
        raise _NotFollowed

    def _test(
        self, statement: ptx.Statement, known: Known, held: Mapping[int, _Held]
    ) -> tuple[_Held, ValueTest] | None:
        """The test of a loaded value that a statement makes."""
        if not is_plain_test(statement) or statement.guard is not None:
            return None
        tested = [o for o in statement.operands[1:] if isinstance(o, ptx.Register) and o.index in held]
        if len(tested) != 1 or not isinstance(statement.operands[0], ptx.Register):
            return None

        def value(operand: ptx.Operand) -> int | None:
            if isinstance(operand, ptx.Immediate):
                return operand.value
            return known.get(operand.index) if isinstance(operand, ptx.Register) else None

        test = read_test(statement, tested[0], value)
        return None if test is None else (held[tested[0].index], test)

    def _fork(
        self, statement: ptx.Statement, tested: _Held, test: ValueTest, place: int, known: Known,
        held: Mapping[int, _Held],
    ) -> None:  # fmt: skip
        (predicate,) = statement.defs
        self._branch(name := self._new_label(), self._condition(tested, test), statement)
        for holds in (0, 1):
            if holds:
                self._label(name)
            self._go_on(place + 1, {**known, predicate.index: holds}, held)

    def _condition(self, tested: _Held, test: ValueTest) -> Binary:
        """The test as an expression; the type of the load says whether it has a sign."""
        load = self.code[tested.place]
        assert isinstance(load, ops.Load)
        if type_size(test.type) != type_size(load.type):
            raise _NotFollowed
        if test.operator not in ("==", "!=") and (test.type[0] == "s") is not (load.type[0] == "s"):
            raise _NotFollowed
        return Binary(test.operator, tested.register, Const(wrap(load.type, test.right)))

    def _new_label(self) -> str:
        self.labels += 1
        return f"way{self.labels}"

    def _branch(self, target: str, condition: Binary | None, statement: ptx.Statement) -> None:
        self.code.append(ops.Branch(target=target, condition=condition, span=statement.span, text=statement.text))
