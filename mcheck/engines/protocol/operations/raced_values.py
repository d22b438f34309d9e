"""Values that decide something and are not those of the order of the steps alone.

Memory holds what the latest step has written, and a read returns that. Of words that strong accesses or plain stores
write whole, every write is followed that a read may return (``mcheck.engines.protocol.operations.tracked_locations``).
Of all other memory (what copies write, parts of words, computed addresses) a read may return something else only where
causality does not order it behind the write, or two writes (8.10.6), and the models from ptx-9.0 on flag that as a
race. Writes that race need not have any order (8.9.6), where steps always have one. So where a race is flagged, and
what it leaves decides something, there are executions that are not followed. They have the same race, and may have
other findings. Under a model with other axioms, or other races, it is not
known what orders two accesses of different threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.answers.verdict_rules import ACCEPTED
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.model_equivalence import has_equivalent_races
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.operations.mbarrier_reordering import quote
from mcheck.engines.protocol.state.access_history import Record
from mcheck.ir.def_use import written_registers
from mcheck.ir.ops import Await


def note_other_value(
    m: Machine, old: Record, new: Record, flags: Sequence[str], *, same: bool, across: bool
) -> None:  # fmt: skip
    """Note that what decides something may be another value than the latest, after two conflicting accesses of which
    the model flags this. ``same``: they access the same bytes; ``across``: different lanes of one agent may.
    """
    both_exact = same and old.entries[0].exact and new.entries[0].exact
    if m.reordering is not None or (both_exact and not (old.write and new.write)):
        return  # a read and a write of one word, of which each order is followed
    if has_equivalent_races(m.setup.tape):
        raced = not ACCEPTED.issuperset(flags)
    else:
        raced = across or old.agent != new.agent or old.asynchronous or new.asynchronous
    if raced and _decides(m, old, new):
        note_unfollowed_order(m, old, new)


def note_unfollowed_order(m: Machine, old: Record, new: Record) -> None:
    """Note two accesses of which one order is followed, and another one may have other findings."""
    m.reordering = m.reordering or f"not all orders of {quote(old.event.op)} and {quote(new.event.op)} are followed"


def _decides(m: Machine, old: Record, new: Record) -> bool:
    if old.write and new.write:
        deciding = m.setup.find_deciding_objects()
        base, _ = m.history_at(new.event.address)
        return deciding is None or base in deciding
    return _is_decisive(m, new if old.write else old)


def _is_decisive(m: Machine, read: Record) -> bool:
    """Whether something may depend on what a read returns."""
    if Tag.TMAP in read.event.tags:
        return False  # mcheck.engines.protocol.stale_tensormaps
    if read.asynchronous:
        return not m.setup.ignores_copied_data and m.setup.find_deciding_objects() is None
    agent = m.agents[read.agent]
    registers = m.setup.sliced_registers[agent.threads[0]]
    waits = agent.pc < len(agent.code) and agent.code[agent.pc]  # reads that do not end a wait are no steps
    awaited = isinstance(m.trace[read.position].op, Await) or (
        isinstance(waits, Await) and waits.inner.span == read.event.op.span
    )
    return awaited or any(name in registers for name, _ in written_registers(read.event.op))
