"""Events of the mbarrier instructions (PTX ISA 9.7.13.15)."""

from __future__ import annotations

from mcheck.events.emit import SEM_TAG, Emitter, handles, mbarrier_event
from mcheck.events.state import State
from mcheck.executor.mbarrier import MAX_COUNT
from mcheck.graph.event import MbarrierStep
from mcheck.graph.tags import Tag
from mcheck.graph.terms import Term, reads_of
from mcheck.program import ops
from mcheck.program.ops import Op


def object_of(e: Emitter, op: Op, state: State) -> int:
    """The address of the mbarrier object that an instruction works on."""
    made = e.plan(op, state)
    return e.effect(op, made, made.mbarrier)


@handles(ops.MbarrierInit)
def _init(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierInit)
    address = object_of(e, op, state)
    mbarrier_event(e, state, op, MbarrierStep(address, "init", count=e.number(op.count, state)), (Tag.INIT,))
    return _done(state)


@handles(ops.MbarrierInval)
def _inval(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierInval)
    address = object_of(e, op, state)
    mbarrier_event(e, state, op, MbarrierStep(address, "inval"), (Tag.INVAL,))
    return _done(state)


def _done(state: State) -> list[State]:
    state.order += 1
    state.effects += 1
    return [state]


@handles(ops.MbarrierTx)
def _tx(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierTx)
    address = object_of(e, op, state)
    step = MbarrierStep(address, op.kind, tx=e.number(op.tx, state))
    tag = Tag.EXPECT if op.kind == "expect" else Tag.SIGNAL
    mbarrier_event(e, state, op, step, (tag, Tag.RLX), scope=op.scope)
    return _done(state)


@handles(ops.MbarrierArrive)
def _arrive(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierArrive)
    address = object_of(e, op, state)
    count = e.maybe(op.count, state)
    step = MbarrierStep(
        address,
        "drop" if op.drop else "arrive",
        count=1 if count is None else count,
        tx=e.maybe(op.tx, state),
        no_complete=op.no_complete,
    )
    event = mbarrier_event(e, state, op, step, (Tag.ARRIVE, SEM_TAG[op.sem]), scope=op.scope)
    e.set_register(state, op.state, ("e", event.uid))
    return _done(state)


@handles(ops.MbarrierWait)
def _wait(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierWait)
    address = object_of(e, op, state)
    parity = e.maybe(op.parity, state)
    token: Term | None = None if op.state is None else e.term(op.state, state)
    step = MbarrierStep(address, "wait", parity=parity, state=token, blocking=op.blocking)
    suspends = (Tag.TRYWAIT,) if op.blocking else ()
    event = mbarrier_event(e, state, op, step, (Tag.WAIT, *suspends, SEM_TAG[op.sem]), scope=op.scope)
    e.set_register(state, op.dst, ("e", event.uid))
    state.order += 1
    return [state]


@handles(ops.MbarrierPending)
def _pending(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.MbarrierPending)
    token = e.term(op.state, state)
    by_uid = {ev.uid: ev for ev in state.events}
    sources = [by_uid[u].mbarrier for u in reads_of(token) if u in by_uid]
    if not sources or any(m is None or not m.no_complete for m in sources):
        raise e.stop("UB211", "pending_count of a state that no .noComplete arrive returned", op)
    e.set_register(state, op.dst, ("x", "&", token, MAX_COUNT))
    return [state]
