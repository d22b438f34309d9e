"""Joint arrivals: the lanes of an agent that add to one word by one instruction, or wait for it, in one step.

A kernel in which every thread arrives at a grid barrier has as many agents as threads, and a window with the additions
of all. In the execution X of ``mcheck.engines.protocol.determined_waits``, which stands for all, the lanes may as well
arrive one directly after the other, and then wait one directly after the other. Here that is one step of an agent, for
an integer ``add`` to a word at a constant address whose result nobody uses, and for an awaited strong load of one.

*Which writes a wait observes.* The agent's addition is one write, of what all lanes add, and a wait observes all of it
or nothing. Let a wait of X, lane by lane, observe fewer additions of an agent than this step says. Then these make the
number that it waits for without the addition d of another lane; they come before d, so the model does not put them
after it, and the check for d fails: what may come before an addition of one lane includes those of all other lanes of
the step. So the check holds for the step only if the wait observes what it would lane by lane.

*What is ordered.* Whoever observes the step observes a chain that ends with the last lane, so it acquires what each
lane has released, and the steps before it in each. The lanes themselves are less ordered than the steps of one thread:
a lane's addition follows its own earlier steps, but of those of other lanes only what it has observed, or what is
before a barrier that both have passed (``Causality.known_to_each_lane``, ``FirstEnds.joint``). That is what a wait, an
addition, and the additions that may come before another one are told.

*Which events stand for the lanes.* Two lanes enter the window, in a chain: the one reads what the other has written. A
lane in between has the relations of the first one: observed through the chain, and acquiring nothing, for X leaves the
reads of unused atomics without an acquire. Exchanging it with the first lane changes which of them comes first in
coherence order; neither the causality order nor a race depends on that, as all accesses to the word are checked to be
morally strong additions and waits. So a race of any two lanes is one of these two, as for other agents.

A word that is accessed otherwise, a result that is used, an operand that differs by lane, a guard: the lanes are told
apart, and this execution is not taken for all.
"""

from __future__ import annotations

from mcheck.base.records import replace
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.incremental.entries import Entry, to_mask
from mcheck.engines.protocol.operations.tracked_locations import (
    enter_access,
    note_dependent_operations,
    record_partial_write,
    wake,
    without_acquire,
    word_at,
)
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import Word, Write
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.type_sizes import type_size

ADD = "add"


def arrive_together(m: Machine, agent: Agent, op: ops.Atomic, address: int) -> None:
    """Let the lanes of an agent add to a word, one directly after the other; split them where they are told apart."""
    amount = m.uniform_value(agent, op.srcs[0])
    used = any(op.dst is not None and op.dst.name in m.setup.needed_registers[t] for t in agent.threads)
    one_by_one = m.waits is None or used or agent.single_representative or not m.setup.contents_matter
    if one_by_one or op.op != ADD or not isinstance(amount, int):
        raise Split([(t,) for t in agent.threads])
    read_event, write_event = m.emit(agent, 0, op)[:2]
    word = word_at(m, read_event.address, type_size(op.type))
    before = word.writes[-1].value
    if before is None or any(w.kind != ADD for w in word.writes[1:]):
        raise Split([(t,) for t in agent.threads])
    total = (before + amount * len(agent.threads)) % (1 << 8 * word.size)
    _enter_additions(m, agent, word, read_event, write_event)
    word.writes[-1].value = total
    m.memory.store(address, word.size, total)
    record_partial_write(m, agent, address, word.size)
    agent.effect_count += 1
    if op.dst is not None:
        for lane in range(len(agent.lanes)):
            m.set_register(agent, lane, op.dst.name, op.type, None)


def _enter_additions(m: Machine, agent: Agent, word: Word, read_event: Event, write_event: Event) -> None:
    """Enter the additions of the representatives in a chain, and the last of them as the write of all."""
    assert m.waits is not None
    note_dependent_operations(m, agent, word, write_event, ADD, agent.current_time())
    m.waits.on_write(m, agent, word)
    if m.causality is not None:
        m.causality.add_release(agent, write_event)
    latest = word.writes[-1].event_set
    entries: tuple[Entry, ...] = ()
    for thread in agent.representatives:
        lane = replace(agent, threads=(thread,))
        read = enter_access(m, lane, without_acquire(read_event), {"rf": latest}).event_set
        own = [{"rmw": read, "data": read}]
        entries = enter_access(m, lane, write_event, {"co": word.write_events}, part=1, own=own).entries
        latest = to_mask(entries)
        word.write_events |= latest
    position = len(m.trace) - 1
    word.writes.append(Write(agent.index, agent.step, None, agent.current_time(), entries, write_event, ADD, position))
    word.version += 1
    wake(m, word)
