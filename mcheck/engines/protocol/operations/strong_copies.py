"""Strong copies (PTX ISA 9.4, 9.7.10.28.4.1), which are followed as weak ones.

What the model orders of weak accesses it orders of strong ones. Two strong copies that access the same bytes in no
order do not race where their scopes include each other (8.7, Q39). What they leave then depends on an order that steps
do not show, so that this is left open. A strong copy that reads what another has written may order more than weak ones
do (8.8, 8.9.5): what is found behind it may be none, so that this is left open as well.
"""

from __future__ import annotations

from mcheck.answers.advice.graph import line_of
from mcheck.answers.verdict_rules import ACCEPTED
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.operations import raced_values
from mcheck.engines.protocol.state.access_history import Record
from mcheck.ir.ops import BulkCopy
from mcheck.ir.scopes import scopes_are_mutual

IN_FLIGHT = "RACE014"
MAY_ORDER = "a strong copy reads what another one has written, which may order more than is followed"
FOUND_BEHIND = "there is a finding behind a strong copy that reads what another one has written, which may order it"


def are_strong(old: Record, new: Record) -> bool:
    """Whether two accesses are of strong copies."""
    a, b = old.event.op, new.event.op
    return isinstance(a, BulkCopy) and a.is_strong and isinstance(b, BulkCopy) and b.is_strong


def are_morally_strong(m: Machine, old: Record, new: Record) -> bool:
    """Whether the scopes of two strong copies include each other's thread (8.7)."""
    a, b = (m.agents[record.agent].placement for record in (old, new))
    return scopes_are_mutual(old.event.op.scope, a, new.event.op.scope, b)  # type: ignore[attr-defined]


def are_in_flight(m: Machine, old: Record, new: Record, flags: list[str]) -> bool:
    """Whether one of two morally strong accesses reads what the other one writes then, if the model flags that."""
    flagged = any(axiom.name == IN_FLIGHT for axiom in m.setup.tape.checks)
    return flagged and old.write != new.write and not ACCEPTED.issuperset(flags)


def leave_open(m: Machine, old: Record, new: Record, flags: list[str]) -> None:
    """Note what is left open of two morally strong accesses, of which the model flags this if they are weak."""
    unordered = not ACCEPTED.issuperset(flags)
    observes = old.write != new.write and (unordered or _may_hand_over(m, old, new))
    if unordered:
        lines = sorted({line_of(old.event.op), line_of(new.event.op)})
        m.not_followed = (
            f"strong copies access the same bytes in no order (line {' and line '.join(map(str, lines))}), and not all "
            "orders are followed"
        )
    if observes or unordered:
        m.inexact_reason = MAY_ORDER
        if m.findings_left_open is None:
            m.findings_left_open = len(m.problems)


def _may_hand_over(m: Machine, old: Record, new: Record) -> bool:
    """Whether a read that the model orders after a write may hand over more than this order does: not where one thread
    has issued both, and it alone may wait for the read.
    """
    read = new if old.write else old
    alone = old.agent == new.agent and m.agents[old.agent].is_single_thread
    return not (alone and getattr(read.event.op, "mbar", None) is None)


def note_narrow_scopes(m: Machine, old: Record, new: Record, flags: list[str]) -> None:
    """Note that what is found behind two strong copies whose scopes are too narrow may be missing a scope, or more. In
    no order, another execution has other findings behind them.
    """
    if old.write == new.write:
        return
    if m.findings_left_open is None:
        m.findings_left_open = len(m.problems)
    if not ACCEPTED.issuperset(flags):
        raced_values.note_unfollowed_order(m, old, new)
