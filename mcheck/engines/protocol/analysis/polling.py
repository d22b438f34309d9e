"""Polling loops: loops that are equivalent to ``await``, and polls whose result only saves a wait.

A loop that only polls leaves with the result true, however often it polled; a poll whose result only decides whether a
wait for the same phase follows leads to the same state either way. Neither needs a second execution.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.base.records import dataclass
from mcheck.ir import ops
from mcheck.ir.alu import UNCOMPUTED, width
from mcheck.ir.constant_propagation import evaluate_constant, evaluate_guard, propagate
from mcheck.ir.def_use import registers_of
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary
from mcheck.ir.liveness import defined_and_used, is_any_live
from mcheck.ir.ops import Op
from mcheck.ir.program import Thread
from mcheck.ir.spin_loops import COMPARISONS, NEGATED, Computation, SpinLoop, Step

MAX_DISTANCE = 64
"""How far after a poll its use is searched."""


def is_spin_loop(thread: Thread, pc: int, asked: frozenset[str] = frozenset()) -> bool:
    """Return whether the poll at ``pc`` is repeated without side effects as long as its result is false.

    The branches must depend on the result alone, and no register that the path back writes may be read before it is
    written again, or have a final value that is ``asked`` for.
    """
    op = thread.code[pc]
    if not isinstance(op, ops.MbarrierWait) or op.dst is None or op.guard is not None:
        return False
    loop = SpinLoop(_ThreadBody(thread, frozenset(defined_and_used(op)[1])), pc, {op.dst.name}, MAX_DISTANCE)
    if not loop.leads_back({op.dst.name: 0}):
        return False
    changed = loop.left_behind()
    return changed is not None and not is_any_live(thread, pc, set(changed), set(asked))


@dataclass(frozen=True, slots=True)
class _ThreadBody:
    """The operations around a poll (``mcheck.ir.spin_loops.Body``)."""

    thread: Thread
    asked: frozenset[str]

    def step(self, place: int, known: dict[str, int]) -> Step[str] | None:
        code = self.thread.code
        if place >= len(code):
            return None
        op = code[place]
        runs = evaluate_guard(op.guard, known)
        if runs is None or not (op.facets.computes or isinstance(op, ops.Branch)):
            return None
        if isinstance(op, ops.Branch) and runs:
            taken = 1 if op.condition is None else evaluate_constant(op.condition, known)
            return None if taken is None else Step((self.thread.labels[op.target] if taken else place + 1,))
        if not isinstance(op, ops.Alu) or not runs:
            return Step((place + 1,))
        propagate(op, known)
        return Step((place + 1,), {r.name for r in op.dsts if r is not None})

    def computed_before(self, place: int) -> Iterable[Computation[str]]:
        code, start = self.thread.code, place
        while start and code[start - 1].facets.computes and not isinstance(code[start - 1], ops.Label):
            start -= 1
        for op in code[start:place]:
            what = None
            if isinstance(op, ops.Alu) and op.guard is None and op.op not in UNCOMPUTED:
                what = op.op, op.type, op.src_type, op.srcs
            defined, used = defined_and_used(op)
            yield Computation(what, tuple(sorted(used)), tuple(sorted(defined)))


def find_awaited_value(code: tuple[Op, ...], labels: dict[str, int], pc: int) -> tuple[str, Expr, str | None] | None:
    """Return what a loop of a load and a test waits for: an operator, a value, and the type of a conversion, if any."""
    op = code[pc]
    if not isinstance(op, ops.Load) or len(op.dsts) != 1 or op.dsts[0] is None or pc + 2 >= len(code):
        return None
    test = code[pc + 1]
    if not isinstance(test, ops.Alu) or not test.op.startswith("setp.") or test.guard is not None:
        return _find_compared_value(code, labels, pc, op.dsts[0].name)
    name = test.op.partition(".")[2]
    operator = COMPARISONS.get(name)
    if operator is None or len(test.dsts) != 1 or test.dsts[0] is None or test.srcs[0] != op.dsts[0]:
        return None
    bits, held = name in ("eq", "ne") and width(test.type) == width(op.type), registers_of(test.srcs[1])
    if op.dsts[0].name in held or (held and not bits):
        return None
    back = _back_edge(code, labels, pc, pc + 2)
    if back is None:
        return None
    sense = _taken_when(back, test.dsts[0].name)
    if sense is None:
        return None
    return NEGATED[operator] if sense else operator, test.srcs[1], op.type if bits else None


def _find_compared_value(
    code: tuple[Op, ...], labels: dict[str, int], pc: int, name: str
) -> tuple[str, Expr, None] | None:
    """Return the same for a branch that compares the register itself, as in the table form."""
    back = _back_edge(code, labels, pc, pc + 1)
    if back is None or back.guard is not None or not isinstance(back.condition, Binary):
        return None
    condition = back.condition
    if condition.op in NEGATED and condition.left == Reg(name) and name not in registers_of(condition.right):
        return NEGATED[condition.op], condition.right, None
    return None


def _back_edge(code: tuple[Op, ...], labels: dict[str, int], pc: int, at: int) -> ops.Branch | None:
    """Return the branch at ``at`` if it goes to a label directly before ``pc``."""
    back = code[at]
    if not isinstance(back, ops.Branch):
        return None
    head = labels[back.target]
    if head >= pc or not all(isinstance(code[k], ops.Label) for k in range(head, pc)):
        return None
    return back


def _taken_when(branch: ops.Branch, name: str) -> bool | None:
    """Return the value of predicate ``name`` for which the branch is taken, ``None`` for another predicate."""
    if branch.guard is not None:
        if branch.guard.reg.name != name or branch.condition is not None:
            return None
        return not branch.guard.negated
    match branch.condition:
        case Reg(other) if other == name:
            return True
        case Unary("!", Reg(other)) if other == name:
            return False
    return None


def is_redundant_poll(code: tuple[Op, ...], labels: dict[str, int], pc: int) -> bool:
    """Return whether the result of the poll at ``pc`` only decides if a wait for the same phase is executed."""
    op = code[pc]
    if not isinstance(op, ops.MbarrierWait) or op.dst is None or op.parity is None:
        return False
    name = op.dst.name
    used = False
    k = pc + 1
    while k < min(len(code), pc + MAX_DISTANCE):
        now = code[k]
        if isinstance(now, ops.Branch) and _taken_when(now, name) is True:
            target = labels[now.target]
            if target <= k or not _is_equivalent_wait(op, code, labels, range(k + 1, target)):
                return False
            used, k = True, target
            continue
        if now.guard is not None and now.guard.reg.name == name:
            if not now.guard.negated or not _is_same_wait(op, now):
                return False
            used = True
        elif isinstance(now, ops.Branch):
            return False
        else:
            defined, reads = defined_and_used(now)
            if name in reads:
                return False
            if name in defined:
                return used
        k += 1
    return used and k >= len(code)


def _is_equivalent_wait(poll: ops.MbarrierWait, code: tuple[Op, ...], labels: dict[str, int], places: range) -> bool:
    """Return whether some places hold only a wait for the polled phase, possibly written as a loop."""
    at = [k for k in places if not isinstance(code[k], ops.Label)]
    if len(at) == 1:
        return _is_same_wait(poll, code[at[0]])
    again = code[at[0]] if len(at) == 2 else None
    if not isinstance(again, ops.MbarrierWait) or again.guard is not None or again.dst != poll.dst:
        return False
    back = _back_edge(code, labels, at[0], at[1])
    if back is None or poll.dst is None or labels[back.target] < places[0]:
        return False
    return _taken_when(back, poll.dst.name) is False and _test_same_phase(poll, again)


def _is_same_wait(poll: ops.MbarrierWait, other: Op) -> bool:
    inner = ops.performed_operation(other)
    return isinstance(other, ops.Await) and isinstance(inner, ops.MbarrierWait) and _test_same_phase(poll, inner)


def _test_same_phase(one: ops.MbarrierWait, other: ops.MbarrierWait) -> bool:
    """Return whether two operations test the same phase of the same object."""
    return (
        isinstance(one.address, Const)
        and isinstance(one.parity, Const)
        and (other.address, other.parity, other.sem, other.scope) == (one.address, one.parity, one.sem, one.scope)
    )
