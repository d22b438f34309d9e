"""Loops that repeat a load, or an atomic, until its value compares with a known one. Which values end them is found out
by trying some.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet

from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.module import operand_registers
from mcheck.simt.execution.register_reads import may_change, reads_only_at
from mcheck.simt.execution.waits.polling_loops import Known, PollingLoop
from mcheck.simt.execution.waits.value_tests import AwaitedValue, find_sign_tests, find_tests, read_test


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
        if not fails and len(examples) > 1:
            continue  # nothing is repeated, whatever the result
        if not _decides_alone(loop, place, {**given, **env}, examples, fails):
            continue
        alone = reads_only_at(function, target, place, place)
        if len(examples) < 2 and not fails:  # no value fails, and nothing is repeated
            return test.until(ends=True in examples, alone=alone)
        ends = test.ending_result(back)
        if ends is not None:
            return test.until(ends=ends, alone=alone)
    return _find_awaited_sign(loop, value, given)


def _find_awaited_sign(
    loop: PollingLoop, value: Callable[[ptx.Operand], int | None], given: Known
) -> AwaitedValue | None:
    """The condition of a loop that repeats a load until its sign bit is another one, or the same."""
    target = loop.poll.operands[0]
    assert isinstance(target, ptx.Register)
    top = 1 << 31
    for operand in find_sign_tests(loop.function, loop.at).values():
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
