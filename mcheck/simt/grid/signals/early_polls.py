"""Polls ahead of a wait: a thread looks at a word early, works, and waits for the word only if the value was not there.

    state = load_acquire(semaphore);                      // an early poll
    ...
    while (__syncthreads_and(state != wanted)) ...        // the wait

It is enough to follow executions in which the early poll fails. Take one in which it returns the wanted value, and let
the thread look once more where it would wait. What ends the wait is the same in every execution
(``mcheck.simt.grid.signals.signal_order``), so the second look may read the same write; and it orders nothing that the
early poll, which read that write before it, has not ordered already. If the code is the same otherwise, this is an
execution in which the early poll fails, with all of its events and more order. So the early poll may be left out:
nothing else depends on its value.

That nothing does is read off the code (``find_early_test``): the value is copied, and compared at one place, for
equality. It is compared there with the wanted value alone (``check_comparisons``), so that any other one fails. The
early poll has to acquire if the wait itself does, and to be morally strong with the signals. That the code is the same
otherwise is checked by an execution in which the early poll returns the wanted value: the wait is missing there, with
the barrier before or behind it in all threads of the CTA, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.instruction_forms import find_fault
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.lanes import WARP
from mcheck.simt.execution.register_reads import places_after
from mcheck.simt.grid.pairs.only_path import LEARNED
from mcheck.simt.grid.pairs.reduction import NotReducible

FAILS = 0x5A5A_5A5A_5A5A_5A5A
"""What an early poll returns that fails; the wait is for something else."""


@dataclass(frozen=True, slots=True)
class EarlyPoll:
    """An early poll that was left out: by which lane, of which word, before which place in the code of the lane, and
    whether it acquires.
    """

    lane: int
    address: int
    size: int
    place: int
    acquires: bool
    span: Span | None


def find_early_test(function: ptx.Function, at: int) -> tuple[int, ptx.Operand] | None:
    """The only place where the value of the load at ``at`` is compared, and with what, for equality; ``None`` if
    anything else is done with it but to copy it, or another load returns what it is compared with.
    """
    statement = function.body[at]
    target = statement.operands[0]
    if statement.guard is not None or not isinstance(target, ptx.Register):
        return None
    held: dict[int, frozenset[ptx.Register]] = {}
    """By place, the registers that may hold the value before it."""
    todo = [(at + 1, frozenset((target,)))]
    tests = dict[int, ptx.Operand]()
    while todo:
        k, brought = todo.pop()
        before = held.get(k, frozenset())
        if k >= len(function.body) or brought <= before:
            continue
        held[k] = now = before | brought
        one = function.body[k]
        if one.kind is Kind.INDEXED_BRANCH:
            return None  # its targets are not analysed
        if not now.isdisjoint(one.uses):
            if _is_equality(one, now):
                tests[k] = next(operand for operand in one.operands[1:3] if operand not in now)
            elif one.kind is not Kind.MOVE or not isinstance(one.operands[0], ptx.Register):
                return None
            else:
                now |= {one.operands[0]}
        elif one.guard is None:
            now -= set(one.defs)
        todo += [(following, now) for following in places_after(function, k) if now]
    if len(tests) != 1:
        return None
    place, other = next(iter(tests.items()))
    loaded = any(s.kind is Kind.LOAD and s.opcode.is_strong and other in s.defs for s in function.body)
    return None if loaded else (place, other)


def _is_equality(statement: ptx.Statement, held: frozenset[ptx.Register]) -> bool:
    if statement.kind is not Kind.COMPARISON or statement.guard is not None or find_fault(statement) is not None:
        return False
    opcode = statement.opcode
    compared = [operand in held for operand in statement.operands[1:3]]
    plain = len(opcode.parts) == 3 and opcode.mode in ("eq", "ne") and opcode.type[0] in "bsu"
    return plain and compared.count(True) == 1


def wanted_value(poll: EarlyPoll, program: Program, width: int) -> int:
    """The value that ends the wait behind an early poll; CTAs have ``width`` lanes. Raises ``NotReducible``."""
    code = next(thread.code for thread in program.threads if _lane(thread, width) == poll.lane)
    wait = code[_wait_behind(poll, code)]
    assert isinstance(wait, ops.Await)
    assert isinstance(wait.inner, ops.Load)
    if wait.inner.sem == "acquire" and not poll.acquires:
        raise NotReducible("a load ahead of a wait does not acquire, as the wait does", poll.span)
    if wait.compare is None or wait.compare[0] != "==" or not isinstance(wait.compare[1], Const):
        raise NotReducible(LEARNED, poll.span)
    top = (1 << 8 * poll.size) - 1
    value = wait.compare[1].value & top
    if value == FAILS & top:
        raise NotReducible(LEARNED, poll.span)
    return value


def check_comparisons(poll: EarlyPoll, wanted: int, compared: Iterable[int | None]) -> None:
    """Check that the lane of an early poll has ``compared`` its value with the ``wanted`` one alone; ``None`` stands
    for an unknown value. Raises ``NotReducible``.
    """
    top = (1 << 8 * poll.size) - 1
    if any(value is None or value & top != wanted for value in compared):
        raise NotReducible(LEARNED, poll.span)


def _wait_behind(poll: EarlyPoll, code: Sequence[Op]) -> int:
    """The place of the wait for the word of an early poll."""
    for place in range(poll.place, len(code)):
        op = code[place]
        if not isinstance(op, ops.Await) or op.followed or not isinstance(op.inner, ops.Load):
            continue
        if op.inner.address == Const(poll.address) and type_size(op.inner.type) == poll.size:
            return place
    raise NotReducible(LEARNED, poll.span)


def check_early_poll(poll: EarlyPoll, width: int, failed: Program, succeeded: Program) -> None:
    """Check that a program in which an early poll ``failed`` has one more wait than one in which it ``succeeded``, with
    one barrier of its CTA at most, and nothing else. CTAs have ``width`` lanes. Raises ``NotReducible``.
    """
    different = NotReducible("what a thread does differs with what it finds before it waits", poll.span)
    threads = list(zip(failed.threads, succeeded.threads, strict=True))
    mine, other = next(pair for pair in threads if _lane(pair[0], width) == poll.lane)
    place = _wait_behind(poll, mine.code)
    without = (*mine.code[:place], *mine.code[place + 1 :])
    number: int | None = None
    """Of the barrier that is missing, among those of its CTA."""
    if without != other.code:
        number = sum(isinstance(op, ops.Barrier) for op in without[:place])
        if _without_barrier(without, number) != other.code:
            raise different
    for mine_too, other in threads:
        code = mine_too.code
        if number is not None and mine_too.place.cta == mine.place.cta:
            code = _without_barrier(code, number)
        if mine_too is not mine and code != other.code:
            raise different


def _lane(thread: Thread, width: int) -> int:
    return thread.place.cta.number * width + WARP * thread.place.warp + thread.place.lane


def _without_barrier(code: tuple[Op, ...], number: int) -> tuple[Op, ...]:
    """The code without the barrier of a number, if it repeats the one directly before it."""
    places = [k for k, op in enumerate(code) if isinstance(op, ops.Barrier)]
    at = places[number] if 0 < number < len(places) else None
    if at is None or code[at] != code[at - 1]:
        return code
    return (*code[:at], *code[at + 1 :])
