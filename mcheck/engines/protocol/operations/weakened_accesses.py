"""Strong accesses that are followed as weak ones (``mcheck.engines.protocol.analysis.weakened_accesses``)."""

from __future__ import annotations

from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.state.access_history import Record
from mcheck.ir.ops import is_weakened
from mcheck.ir.scopes import scopes_are_mutual

FOLLOWED = "a weakened access touches a word whose value decides something"
"""Why an answer does not count: the analysis has left no such access weak, as far as it knows the words."""


def are_morally_strong(m: Machine, old: Record, new: Record, *, complete: bool) -> bool:
    """Whether two accesses to the same bytes are weakened ones that were morally strong (8.7), so that they do not
    race, and that nothing depends on their order.
    """
    one, other = old.event.op, new.event.op
    if not (complete and is_weakened(one) and is_weakened(other)):
        return False
    a, b = (m.agents[record.agent].placement for record in (old, new))
    if not scopes_are_mutual(one.scope, a, other.scope, b):  # type: ignore[attr-defined]
        return False
    if m.setup.touches_word([(new.event.address, new.event.address + new.event.size)]):
        m.not_followed = FOLLOWED
    return True
