"""Waits that a barrier decides: one thread polls a word, and ``barrier.red`` tells its CTA whether to go on.

    while (__syncthreads_and(state != wanted)) if (threadIdx.x == 0) state = load_acquire(semaphore);

One round, the last, stands for any number of them if in the others nothing happens that another thread can see. The
barrier hands the predicate of the polling thread to all, if that of every other thread is neutral: true for ``and``,
false for ``or`` (PTX ISA 9.7.13.1). So these have to hold:

* what the load returns is compared once, with what no round changes, and decides nothing but that predicate;
* after a failed attempt the thread passes one barrier and asks the same again, and does nothing else but compute;
* all other threads of the CTA that have not exited stand at the same ``barrier.red``, which has no thread count. They
  bring the neutral predicate, and where the barrier hands out that of a failed attempt they come back to it with the
  same predicate, and do nothing but compute;
* what failed rounds leave in registers decides nothing afterwards, in any of these threads.

Whoever leaves a failed round out leaves out loads, and an order between the threads of the CTA that the barrier of the
last round brings about as well. So no execution is lost, and none is added: the load may succeed at the first attempt.

``find_barrier_wait`` decides the first two when the load is reached, ``comes_back`` the last two when the barrier is
complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir.spin_loops import Step
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.register_reads import reads_only_at
from mcheck.simt.execution.waits.polling_loops import LOOKAHEAD, Known, PollingLoop, known_value
from mcheck.simt.execution.waits.value_tests import AwaitedValue, read_test

L = TypeVar("L", bound=PollingLoop)
NEUTRAL = {"and": True, "or": False}
"""The predicate with which a thread leaves the result of a reduction to the others."""


@dataclass(frozen=True, slots=True)
class BarrierWait:
    """A load that is repeated until its value satisfies ``wait``, around the barrier at ``barrier``, whose result is
    ``again`` in the failed rounds.
    """

    wait: AwaitedValue
    barrier: int
    again: bool


class BarrierLoop(PollingLoop):
    """The loop around the load at ``at``, through one ``barrier.red``: that hands on the predicate of this thread."""

    def __init__(self, function: ptx.Function, at: int) -> None:
        super().__init__(function, at)
        self.results: dict[int, set[bool]] = {}
        """By place, the results of the barriers that are passed."""

    def step(self, place: int, known: Known) -> Step[int] | None:
        """A step of a failed round (``mcheck.ir.spin_loops.Body``)."""
        if place < len(self.function.body) and place != self.at and (passed := self.pass_barrier(place, known)):
            return Step((place + 1,), passed)
        return super().step(place, known)

    def pass_barrier(self, place: int, known: Known) -> frozenset[int]:
        """Pass a barrier that hands on a known predicate; returns the registers it writes, none if it is another."""
        statement = self.function.body[place]
        if not is_deciding_barrier(statement):
            return frozenset()
        brought = known_value(statement.operands[-1], known)
        targets = frozenset(r.index for r in statement.defs)
        if brought is None:
            return frozenset()
        self.results.setdefault(place, set()).add(bool(brought))
        known |= dict.fromkeys(targets, int(bool(brought)))
        return targets

    def goes_on(self, place: int, known: Known) -> bool:
        """Whether what is known after the load leads to the barrier at ``place`` with computation alone."""
        known, k = dict(known), self.at + 1
        for _ in range(LOOKAHEAD):
            step = self.step(k, known)
            if step is None or len(step.following) != 1 or step.is_attempt:
                return False
            if k == place:
                return True
            (k,) = step.following
        return False


def is_deciding_barrier(statement: ptx.Statement) -> bool:
    """Whether this is a ``barrier.red`` of the whole CTA that reduces predicates with ``and`` or ``or``."""
    if statement.kind is not Kind.BARRIER_REDUCTION or statement.guard is not None or find_fault(statement) is not None:
        return False
    target, *others = statement.operands
    return (
        reduction_of(statement) in NEUTRAL
        and isinstance(target, ptx.Register)
        and len(others) == 2
        and isinstance(others[0], ptx.Immediate)
    )


def reduction_of(statement: ptx.Statement) -> str:
    """The operation of a ``barrier.red``."""
    return statement.opcode.choice(("and", "or", "popc")) or ""


def find_barrier_wait(function: ptx.Function, at: int, known: Mapping[int, int]) -> BarrierWait | None:
    """The wait of one thread at the load at ``at``, before which these registers are ``known``; the others of its CTA
    are assumed to be neutral at the barrier.
    """
    statement = function.body[at]
    target = statement.operands[0]
    if statement.guard is not None or not isinstance(target, ptx.Register):
        return None
    place = _find_test(function, at, known)
    if place is None or not reads_only_at(function, target, place, at):
        return None
    operands = function.body[place].operands[1:3]
    test = read_test(function.body[place], target, lambda o: known_value(o, dict(known)))
    if test is None or operands[0] == operands[1]:
        return None
    compared = [r.index for o in operands if o != target for r in operand_registers(o)]

    def make_loop() -> BarrierLoop:
        loop = BarrierLoop(function, at)
        loop.compare_with(compared)
        return loop

    loop = make_loop()
    back = {v: loop.returns({**known, target.index: v}) for v in test.examples}
    ends = test.ending_result(back)
    if ends is None:
        return None
    failing, known = follow_failures(make_loop, known, [{target.index: v} for v in back if back[v]])
    if failing is None or len(failing.results) != 1:
        return None
    ((barrier, results),) = failing.results.items()
    ways = [{**known, target.index: v} for v in back if not back[v]]
    if len(results) != 1 or failing.is_noticed(ways):
        return None
    for way in ways:  # an attempt that succeeds reaches the barrier, too, with the other result
        ending = BarrierLoop(function, at)
        if not ending.goes_on(barrier, way) or ending.results != {barrier: {not next(iter(results))}}:
            return None
    return BarrierWait(test.until(ends=ends, alone=True), barrier, next(iter(results)))


def follow_failures(
    make_loop: Callable[[], L], known: Mapping[int, int], failures: list[dict[int, int]]
) -> tuple[L | None, Mapping[int, int]]:
    """The loop that all failures repeat, and the known registers that hold the same after each: with these alone every
    round goes the way of the first.
    """
    while True:
        loop = make_loop()
        if not all(loop.returns({**known, **failure}) for failure in failures):
            return None, known
        kept = {r: v for r, v in known.items() if r not in loop.changed}
        if len(kept) == len(known):
            loop.unchanged = known.keys() - {r for failure in failures for r in failure}
            return loop, known
        known = kept


def _find_test(function: ptx.Function, at: int, known: Mapping[int, int]) -> int | None:
    """The comparison that the way of a thread from its load comes to first, with what the load returned."""
    target, state, k = function.body[at].operands[0], dict(known), at + 1
    loop = PollingLoop(function, at)
    for _ in range(LOOKAHEAD):
        if k >= len(function.body):
            return None
        statement = function.body[k]
        if target in statement.uses:
            compares = statement.kind is Kind.COMPARISON and len(statement.opcode.parts) == 3
            return k if compares and statement.guard is None and find_fault(statement) is None else None
        step = loop.step(k, state)
        if step is None or len(step.following) != 1:
            return None
        (k,) = step.following
    return None


def registers_around(function: ptx.Function, at: int) -> frozenset[int]:
    """The registers that are read close after a place, on any way: those that may decide where it leads."""
    todo, seen, found = [(at, LOOKAHEAD)], set[int](), set[int]()
    while todo:
        k, left = todo.pop()
        if k in seen or k >= len(function.body) or not left:
            continue
        seen.add(k)
        statement = function.body[k]
        found |= {r.index for r in statement.uses}
        if statement.guard is not None:
            found.add(statement.guard.register.index)
        if statement.kind is Kind.BRANCH and isinstance(label := statement.operands[0], ptx.Label):
            todo.append((function.labels[label.name], left - 1))
        todo.append((k + 1, left - 1))
    return frozenset(found)


def comes_back(function: ptx.Function, barrier: int, known: Mapping[int, int], *, again: bool) -> bool:
    """Whether a thread that stands at a barrier, where these registers are ``known``, brings the neutral predicate, and
    comes back with it, with nothing done but computation, as long as the result is ``again``.
    """
    statement = function.body[barrier]
    brought = known_value(statement.operands[-1], dict(known))
    target = statement.operands[0]
    assert isinstance(target, ptx.Register)
    if brought is None or bool(brought) is not NEUTRAL[reduction_of(statement)]:
        return False
    loop, known = follow_failures(lambda: PollingLoop(function, barrier), known, [{target.index: int(again)}])
    return loop is not None and not loop.is_noticed([{**known, target.index: int(not again)}])
