"""A wait for a parity that its thread has waited for before: the earlier phase lets it through (9.7.13.15.16)."""

from __future__ import annotations

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, Step, site_of
from mcheck.base.phrase import Phrase, Site, Thing, say
from mcheck.base.records import dataclass
from mcheck.findings.fix import Change, Fix, IdleWait, Property
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.memory import SHARED_WINDOW
from mcheck.ir.ops import Op


@dataclass(frozen=True, slots=True)
class RepeatedWait:
    """A wait at ``site`` of a thread for the phase of ``bar`` with a ``parity`` that its wait before was for;
    ``always``: and each of its waits. ``before``: the access that comes too early behind it.
    """

    bar: Thing
    parity: int
    site: Site
    always: bool
    before: Site | None = None

    @property
    def lack(self) -> Phrase:
        """What is wrong with it, as a clause of the message."""
        return say("{} waits for the same phase of {} twice", self.site, self.bar)

    @property
    def fix(self) -> Fix:
        """The other parity."""
        change = Change(
            what=Property.PARITY,
            sites=(self.site,),
            new="" if self.always else str(1 - self.parity),
            old=str(self.parity),
            subject=(self.bar,),
            before=self.before,
        )
        if self.always:
            why = f"it is {self.parity} in every round, so the completed phase lets each later wait through"
        else:
            twice = f"it waits for parity {self.parity} twice in a row, so the completed phase lets it through"
            why = f"{twice} (`phase ^= 1` after each round of a ring)"
        label = f"returns at once: the wait of the round before was for parity {self.parity}, too"
        return Fix((change,), why=(why,)).noted(IdleWait(self.site, (label,)))


def find_repeated_wait(g: ExecutionGraph) -> RepeatedWait | None:
    """The wait before one of the accesses, if it is for the parity for which the thread has waited last, and the thread
    has used the stage in between: the second wait is meant for a later phase.
    """
    return _before_use(g) or _before_refill(g)


def _before_use(g: ExecutionGraph) -> RepeatedWait | None:
    """The wait of the thread that accesses what a copy fills, for the mbarrier that this signals. Between the two waits
    the thread has accessed the bytes, or executed the statement of the access, and the thread that issues the copy
    knows of that: the bytes were handed back. Where a thread reads the bytes of one phase twice, they were not.
    """
    found = signalling_copy(g)
    if found is None:
        return None
    copy, access, bar = found
    before = [e for e in g.own_steps(access.agent) if e.step < access.step]
    same = {e.step for e in before if e.op.span == access.op.span}
    same |= {a.step for a in g.others if a.agent == access.agent and not a.asynchronous and a.step < access.step}
    told = g.steps[copy.position].time[access.agent]
    used = max((step for step in same if step <= told), default=None)
    return None if used is None else _repeated(g, access, bar, used)


def _before_refill(g: ExecutionGraph) -> RepeatedWait | None:
    """The wait of the thread that copies, if it has filled the same stage between the two."""
    for copy in (g.old, g.new):
        if not (copy.asynchronous and copy.write):
            continue
        before = [e for e in g.own_steps(copy.agent) if e.step < copy.step]
        to = _destination(copy.op)
        used = None if to is None else max((e.step for e in before if _destination(e.op) == to), default=None)
        waits = () if used is None else (e.op for e in before if e.step > used)
        bars = dict.fromkeys(bar.value for op in waits if isinstance(bar := _awaited(op), Const))
        found = next((wait for bar in bars if (wait := _repeated(g, copy, bar, used or 0)) is not None), None)
        if found is not None:
            return found
    return None


def _repeated(g: ExecutionGraph, access: GraphAccess, bar: int, used: int) -> RepeatedWait | None:
    """The first wait for an mbarrier between a step and an access of one thread, if the last one before that step was
    for the same parity.
    """
    before = [e for e in g.own_steps(access.agent) if e.step < access.step]
    waits = [(e.step, op) for e in before if (op := wait_for(e, bar)) is not None]
    first = next((op for step, op in reversed(waits) if step < used), None)
    again = next((op for step, op in waits if step > used), None)
    if first is None or again is None or first.parity != again.parity or not isinstance(again.parity, Const):
        return None
    waited = (
        op for op in map(ops.performed_operation, g.agents[access.agent].code) if isinstance(op, ops.MbarrierWait)
    )
    theirs = [op.parity for op in waited if is_mbarrier_at(op.address, bar)]
    always = len(theirs) > 1 and len(set(theirs)) == 1
    return RepeatedWait(g.thing_at(bar), again.parity.value, site_of(again), always, site_of(access.op))


def _destination(op: Op) -> Expr | None:
    """Where a copy writes in shared memory."""
    inner = ops.performed_operation(op)
    if isinstance(inner, ops.TensorCopy):
        return inner.shared if inner.kind == "load" else None
    return inner.dst if isinstance(inner, ops.BulkCopy | ops.CpAsync) else None


def _awaited(op: Op) -> Expr | None:
    wait = ops.performed_operation(op)
    return wait.address if isinstance(wait, ops.MbarrierWait) else None


def signalling_copy(g: ExecutionGraph) -> tuple[GraphAccess, GraphAccess, int] | None:
    """The copy and the other access of a race of these two, and the address of the mbarrier that the copy signals. The
    other access may be asynchronous as well, a wgmma or the store of a stage, whose thread waits before it issues it.
    """
    copy, access = (g.old, g.new) if getattr(g.old.op, "mbar", None) is not None else (g.new, g.old)
    signalled = getattr(copy.op, "mbar", None)
    if not copy.asynchronous or not isinstance(signalled, Const):
        return None
    if access.asynchronous and getattr(access.op, "mbar", None) is not None:
        return None
    return copy, access, signalled.value


def is_mbarrier_at(operand: Expr | None, address: int) -> bool:
    """Whether an operand is the known address of an mbarrier, through any window."""
    return isinstance(operand, Const) and (operand.value - address) % SHARED_WINDOW == 0


def wait_for(step: Step, address: int) -> ops.MbarrierWait | None:
    """The wait for a known parity of the mbarrier at an address, through any window, if a step is one."""
    op = ops.performed_operation(step.op)
    if not isinstance(op, ops.MbarrierWait) or not isinstance(op.parity, Const):
        return None
    return op if is_mbarrier_at(op.address, address) else None
