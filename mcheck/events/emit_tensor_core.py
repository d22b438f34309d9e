"""Events of the operations on tensor memory (PTX ISA 9.7.16; open questions Q26 to Q28).

All are asynchronous and go through the async proxy. Those of a thread's pipe (mma, cp, shift) take effect in the order
of their issue: a marker in program order, which they complete to, leads to the issues that follow it.
"""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.events.emit import Emitter, handles
from mcheck.events.emit_async import groups_of, put_issue, put_read, put_signal, put_write
from mcheck.events.thread_state import AsyncRecord, State
from mcheck.ir import ops


@handles(ops.TensorCore)
def _tensor_core(e: Emitter, op: ops.TensorCore, state: State) -> list[State]:
    made = e.effect_of(op, state)
    piped = op.kind in ("mma", "cp", "shift")
    tags = (Tag.PIPE,) if piped else ()
    issue = put_issue(e, op, state)
    memory = [put_read(e, op, state, issue, a.address, a.size, "async", *tags) for a in made.accesses]
    memory += [put_write(e, op, state, issue, s.address, s.size, "async", s.value, *tags) for s in made.stores]
    uids = tuple(event.uid for event in memory)
    if piped:
        state.piped.append(AsyncRecord(uids, (), "tcgen05"))
    marker = e.event(state, op, (Tag.PIPE if piped else Tag.GROUPWAIT,))
    state.completes += [(uid, marker.uid) for uid in uids]
    state.order += 1
    return [state]


@handles(ops.TensorMove)
def _move(e: Emitter, op: ops.TensorMove, state: State) -> list[State]:
    """Of one lane; ``tcgen05.wait`` completes all of the thread (9.7.16.8)."""
    made = e.effect_of(op, state)
    issue = put_issue(e, op, state)
    memory = [put_read(e, op, state, issue, a.address, a.size, "async").uid for a in made.accesses]
    memory += [put_write(e, op, state, issue, s.address, s.size, "async", s.value).uid for s in made.stores]
    groups_of(state, op.family).open.append(AsyncRecord(tuple(memory), (), op.family))
    return [state]


@handles(ops.TensorCommit)
def _commit(e: Emitter, op: ops.TensorCommit, state: State) -> list[State]:
    """An arrive-on, with a count of 1, when all that the thread has issued to its pipe is complete (9.7.16.11)."""
    made = e.effect_of(op, state)
    issue = put_issue(e, op, state)
    memory = [state.events[number] for record in state.piped for _, number in record.reads]
    for signal in made.signals:
        put_signal(e, op, state, issue, signal.mbar, 0, memory, kind="async-arrive", extra=(Tag.COMMIT,))
    return [state]
