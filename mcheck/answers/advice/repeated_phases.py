"""A wait for a parity that its thread has waited for before: the earlier phase lets it through (9.7.13.15.16)."""

from __future__ import annotations

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, Step, site_of
from mcheck.base.phrase import Phrase, Site, Thing, say
from mcheck.base.records import dataclass
from mcheck.findings.fix import Change, Fix, IdleWait, Property
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.memory import SHARED_WINDOW


@dataclass(frozen=True, slots=True)
class RepeatedWait:
    """A wait at ``site`` of a thread for the phase of ``bar`` with a ``parity`` that its wait before was for."""

    bar: Thing
    parity: int
    site: Site

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
            new=str(1 - self.parity),
            old=str(self.parity),
            subject=(self.bar,),
        )
        twice = f"it waits for parity {self.parity} twice in a row, so the completed phase lets it through"
        label = f"returns at once: the wait of the round before was for parity {self.parity}, too"
        return Fix((change,), why=(f"{twice} (`phase ^= 1` after each round of a ring)",)).noted(
            IdleWait(self.site, (label,))
        )


def find_repeated_wait(g: ExecutionGraph) -> RepeatedWait | None:
    """The wait before an access that races with a copy, if it is for the parity for which the thread has waited last.

    The two waits are for the mbarrier that the copy signals. Between them the thread has accessed the bytes, or
    executed the statement of the access, and the thread that issues the copy knows of that: the bytes were handed back,
    so the second wait is meant for a later phase. Where a thread reads the bytes of one phase twice, they were not
    handed back in between.
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
    if used is None:
        return None
    waits = [(e.step, op) for e in before if (op := wait_for(e, bar)) is not None]
    first = next((op for step, op in reversed(waits) if step < used), None)
    again = next((op for step, op in waits if step > used), None)
    if first is None or again is None or first.parity != again.parity or not isinstance(again.parity, Const):
        return None
    return RepeatedWait(g.thing_at(bar), again.parity.value, site_of(again))


def signalling_copy(g: ExecutionGraph) -> tuple[GraphAccess, GraphAccess, int] | None:
    """The copy and the other access of a race of these two, and the address of the mbarrier that the copy signals. The
    other access may be a wgmma, whose thread waits before it issues it.
    """
    copy, access = (g.old, g.new) if getattr(g.old.op, "mbar", None) is not None else (g.new, g.old)
    signalled = getattr(copy.op, "mbar", None)
    if not copy.asynchronous or not isinstance(signalled, Const):
        return None
    if access.asynchronous and not isinstance(access.op, ops.Wgmma):
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
