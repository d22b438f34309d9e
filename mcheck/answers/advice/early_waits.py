"""A first wait for parity 1, which an mbarrier whose phase 0 is not over lets through (9.7.13.15.16)."""

from __future__ import annotations

from mcheck.answers.advice.graph import ExecutionGraph, GraphAccess, Signal, Step, site_of
from mcheck.answers.advice.repeated_phases import is_mbarrier_at, signalling_copy, wait_for
from mcheck.base.phrase import Phrase, Site, Thing, say
from mcheck.base.records import dataclass
from mcheck.findings.fix import Change, Fix, IdleWait, Property
from mcheck.ir import ops
from mcheck.ir.expr import Const


@dataclass(frozen=True, slots=True)
class EarlyWait:
    """A wait at ``site``, before an access, for the phase of ``bar`` before the first one."""

    bar: Thing
    site: Site
    before: Site

    @property
    def lack(self) -> Phrase:
        """What is wrong with it, as a clause of the message."""
        return say("{} waits for the phase before the first one of {}", self.site, self.bar)

    @property
    def fix(self) -> Fix:
        """Parity 0."""
        change = Change(
            what=Property.PARITY, sites=(self.site,), new="0", old="1", subject=(self.bar,), before=self.before
        )
        why = "while the first phase is not over, a wait for parity 1 returns at once"
        label = "returns at once: parity 1 is that of the phase before the first one"
        return Fix((change,), why=(why,)).noted(IdleWait(self.site, (label,)))


def find_early_wait(g: ExecutionGraph) -> EarlyWait | None:
    """The wait before a read that races with the copy meant for it, if it is for the phase before the first one.

    It is the only wait of its thread for the mbarrier that the copy signals, and the copy belongs to phase 0: to come
    behind that phase would be to come behind the copy. Where it is still to arrive, it does if the read does not know
    of its signal, or if until the read nobody but the thread that issues the copy arrives there, and that with the
    bytes.
    """
    found = signalling_copy(g)
    if found is None:
        return None
    copy, access, bar = found
    if access.write:
        return None
    before = [e for e in g.own_steps(access.agent) if e.step < access.step]
    waits = [op for e in before if (op := wait_for(e, bar)) is not None]
    if [wait.parity for wait in waits] != [Const(1)]:
        return None
    unknown = copy is g.old and waits[0].sem != "relaxed"
    unknown = unknown and any(_is_first_and_unknown(s, access) for s in copy.signals)
    if not unknown and not _is_of_first_phase(g, copy, access, bar):
        return None
    return EarlyWait(g.thing_at(bar), site_of(waits[0]), site_of(access.op))


def _is_of_first_phase(g: ExecutionGraph, copy: GraphAccess, access: GraphAccess, bar: int) -> bool:
    """Whether a copy signals the mbarrier in its first phase."""
    if arrived := [s for s in copy.signals if s.bound is not None]:
        return all(s.phase == 0 for s in arrived)
    issue = g.steps[copy.position]
    others = (e for e in g.steps[: max(access.position, copy.position)] if e is not issue and e.signal < 0)
    return all(_only_announces(e, bar, copy.agent) for e in others)


def _is_first_and_unknown(signal: Signal, access: GraphAccess) -> bool:
    """Whether a signal counts in phase 0, and an access does not come after it."""
    return signal.phase == 0 and (signal.bound is None or access.time[signal.clock] <= signal.bound)


def _only_announces(step: Step, address: int, issuer: int) -> bool:
    """Whether a step leaves the mbarrier at an address alone, or is the ``issuer`` that announces bytes there."""
    op = ops.performed_operation(step.op)
    if isinstance(op, ops.MbarrierArrive):
        same = not isinstance(op.address, Const) or is_mbarrier_at(op.address, address)
        return not same or (step.agent == issuer and op.tx is not None)
    return not is_mbarrier_at(getattr(op, "mbar", None), address)
